//! The wheel to use, and its parts.
//!
//! # Where an entry is
//! The *base* is the first tick that has not passed. The *ring* of a deadline is chosen by the highest byte in which the deadline differs
//! from the base. There are four rings of 256 *slots*; their slots span 1, 256, 65,536 and 2^24 ticks. A deadline whose high word (upper 32
//! bits) differs from that of the base is in a slot for its high word (a *top*). Coarser rings are farther from the base.
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
//! A ring is a *fan* of 256 slots. The finer slots of an open slot are a fan, too. The slot of the *few* is a separate slot. It has the
//! entries with the high word of the base, as long as there are at most 16 of them and no ring has been made. These entries need no ring.
//!
//! A waiting entry does not move unless it is rescheduled, so its handle is its place and its generation. The wheel finds an entry in
//! exactly one of two ways:
//!
//! - *At home*: the entry's chunk belongs to the entry's slot. The wheel stores nothing else about the entry, so an insertion and a cancel
//!   touch the entry's own cache line and little more. If the entry is rescheduled to a later deadline, it stays at its place, and goes to
//!   its new slot when the old slot is opened.
//! - *Filed*: the list of the entry's slot has a record, which is the place of the entry. The entry's *card* has the position of the
//!   record, its *seat*, so that a cancel can remove the record. Entries of slots with few entries are filed and live together in the
//!   commons. When a slot is *opened*, its chunks go to the drain with their entries, and these entries are filed in finer slots. So firing
//!   walks one list and touches chunks whose entries are due at about the same time.
//!
//! # When a slot is opened
//! On each level, the slot that the base reaches next is opened in equal parts while time comes nearer to it, so that no single tick pays
//! for the whole slot. A slot with 2^20 entries is opened, too, and takes no more entries. See `opening`.
//!
//! # The files
//! - `queue`: [`Wheel`], the public type.
//! - `filing`: adds, removes and moves entries.
//! - `opening`: slots are opened as the base moves.
//! - `firing`: fires the due entries in the order of their insertion.
//! - `tree`: slots, in rings and fans. The tree does not know the entries.
//! - `chunk`: the memory of the entries, and its holes. `spot`: one place of a chunk. `home`: the chunks of one owner. `card`: additional
//!   data of filed entries.
//! - `list`: records in blocks of one cache line.
//! - `ring`: [`Ring`], the slots of a level that have entries, for a picture.
//! - `bits`: a set of slots. `number`: the count of insertions. `id`: the numbers that name the other parts.

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
mod ring;
mod spot;
#[cfg(test)]
mod tests;
mod tree;

pub use queue::Wheel;
pub use ring::Ring;
