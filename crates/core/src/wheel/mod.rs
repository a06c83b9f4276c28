//! The wheel to use, and its parts.
//!
//! # Where an entry is
//! A deadline belongs to the *ring* of the highest byte in which it differs from the *base*, the
//! first tick that has not passed: four rings of 256 *slots*, of 1, 256, 65,536 and 2^24 ticks. What
//! differs in the high word is in a slot of its own for each high word. Coarser rings are farther.
//!
//! ```text
//!              ring 0              ring 1                    ring 2                tops
//!        ┌─┬─┬─┬─┬─┬─┬─┐   ┌─────┬─────┬─────┬─────┐   ┌───────┬───────┐     ┌──────────────┐
//!  base ►│ │•│ │•│•│ │ │   │     │slot │     │slot │   │ slot  │       │  …  │high word: slot│
//!        └─┴│┴─┴│┴│┴─┴─┘   └─────┴──│──┴─────┴──│──┘   └───│───┴───────┘     └───────│──────┘
//!           │   │ │                 │           │          │                         │
//!         records: places of      list of     home: chunks whose             the same: a list
//!         entries, 4 bytes        up to 16    entries are due in             or chunks
//!         each, in blocks         records     this slot, or later
//!           │   │ │                 │           │
//!           ▼   ▼ ▼                 ▼           ▼
//!        ┌──────────────────┐  ┌─────────┐   ┌─────────┬─────────┐
//!        │ drain: chunks of │  │ commons │   │ chunk   │ chunk   │   64 entries each: value,
//!        │ slots opened     │  │         │   │ • • ○ • │ • ○ • • │   deadline, generation;
//!        └──────────────────┘  └─────────┘   └─────────┴─────────┘   ○ holes, last made first
//! ```
//!
//! A ring is a *fan* of 256 slots side by side, and so are the finer slots of a slot that is open. As
//! long as no more than 16 entries are in the high word of the base, they need no ring: they are in the
//! list of a slot apart, that of the *few*.
//!
//! An entry never moves while it waits, but for a reschedule, so its handle is its place and its
//! generation. It is found in one of two ways, and never in both:
//!
//! - *At home*: its chunk belongs to its slot. Nothing else is stored about it, so an insertion and
//!   a cancel touch the entry's own cache line and little more. If its deadline is moved to later,
//!   the entry stays, and goes to its new slot when the old one is opened.
//! - *Filed*: a record, the number of its place, is in the list of its slot. The entry's *card*
//!   says where the record is, its *seat*, so that a cancel can take it out. That is how the entries of slots
//!   with few live together in the commons, and how a slot is *opened*: its chunks go to the drain
//!   as they are, and the entries are filed in finer slots. Expiry then walks one list and touches
//!   chunks that belong together.
//!
//! # When a slot is opened
//! The slot next to the base, on each level, is opened in equal parts while time comes nearer to
//! it, so that no single tick has to pay for all of it. A slot that has got 2^20 entries is opened,
//! too, and grows no more. See `opening`.
//!
//! # The files
//! - `queue`: [`Wheel`], the public type.
//! - `filing`: taking an entry in, taking it out, moving it.
//! - `opening`: slots are opened as the base moves.
//! - `firing`: what is due, in the order of insertion.
//! - `tree`: slots, in rings and fans. Knows no entries.
//! - `chunk`: the memory of the entries, their holes; `spot`: one place of it; `home`: the chunks of
//!   one owner; `card`.
//! - `list`: records in blocks of one cache line.
//! - `bits`, `number`, `id`: a set of slots, the count of insertions, and the ids by which all of these
//!   name one another.

mod bits;
mod card;
mod chunk;
mod filing;
mod firing;
mod home;
mod id;
#[cfg(test)]
mod invariants;
mod list;
mod number;
mod opening;
mod queue;
mod spot;
#[cfg(test)]
mod tests;
mod tree;

pub use queue::Wheel;
