//! The textbook: five ways to wait for a deadline, each plain enough to be read in one sitting.
//!
//! These types are here to be understood, and to check one another. **The queue to use is
//! [`Wheel`](crate::Wheel).** All of them, and `Wheel` too, obey the laws of
//! [`TimerQueue`](crate::TimerQueue): never early, equal deadlines in order of insertion, a handle
//! that finds its own entry or nothing. Some textbook systems break one of these laws; the type
//! then says so and keeps the law.
//!
//! Read them in this order. n is the number of entries, s of slots, l of levels, b of buckets in
//! use.
//!
//! | queue | idea | insert | cancel | next wake | a jump, besides what fires | reaches |
//! |---|---|---|---|---|---|---|
//! | [`SortedList`] | the nearest stands in front | O(n) | O(1) | O(1) | nothing | the end of time |
//! | [`HeapQueue`] | a tree, half sorted | O(log n) | O(log n) | O(1) | nothing | the end of time |
//! | [`SimpleWheel`] | a slot for each tick | O(1) | O(1) | O(s) | O(s) | s - 1 ticks |
//! | [`HashedWheel`] | the same slot, rounds later | O(1) | O(1) | O(s + n) | O(s + n) | the end of time |
//! | [`HierarchicalWheel`] | coarse slots for what is far | O(l + log b) | O(log b) | O(log b), early by up to l stops | O(l) for an entry, at most l times in its life | its last turn, or the end of time |
//! | [`Wheel`](crate::Wheel) | the one to use; its page has the costs | | | | | the end of time |
//!
//! All of them fire the same values at the same times:
//!
//! ```
//! use tickwheel_core::TimerQueue;
//! use tickwheel_core::classic::*;
//!
//! let queues: [Box<dyn TimerQueue<char>>; 5] = [
//!     Box::new(SortedList::new(0)),
//!     Box::new(HeapQueue::new(0)),
//!     Box::new(SimpleWheel::new(0, 100)),
//!     Box::new(HashedWheel::new(0, 8)),
//!     Box::new(HierarchicalWheel::new(0, 1, 8)),
//! ];
//! for mut queue in queues {
//!     let a = queue.insert(90, 'a').unwrap();
//!     queue.insert(50, 'b').unwrap();
//!     queue.insert(7, 'c').unwrap();
//!     let a = queue.reschedule(a, 50).unwrap(); // and keeps its place before b
//!     assert_eq!(queue.deadline(a), Some(50));
//!     let mut fired = vec![];
//!     queue.advance(99, &mut |deadline, value| fired.push((deadline, value)));
//!     assert_eq!(fired, [(7, 'c'), (50, 'a'), (50, 'b')]);
//! }
//! ```
//!
//! The first two compare deadlines, and so their cost grows with n. The wheels compute the place
//! from the deadline instead. The cost of a wheel grows with distance, and each of the three wheels
//! pays it in another way: by refusal, by rounds, or by levels.
//!
//! # Where they come from
//! George Varghese and Tony Lauck compared seven schemes in "Hashed and hierarchical timing
//! wheels", at SOSP in 1987. It is often dated 1997; that is the version in the journal (IEEE/ACM
//! Transactions on Networking). The types above are schemes 2, 3, 4, 6 and 7.
//!
//! # How they are alike
//! Entries live in a slab and never move; the handle is the entry's place and its generation there.
//! A generation is used once in each place, so a stale handle is stale for ever. A cancelled entry
//! is gone at once, and its place is the next one to be taken: memory follows the highest number
//! of entries there ever was. There may be 2^32 - 1 entries, and then the answer is
//! [`Full`](crate::Refusal::Full). A slot takes 16 bytes, used or not.

mod deadline;
mod hashed_wheel;
mod heap_queue;
mod hierarchical_wheel;
mod level;
mod list;
mod simple_wheel;
mod slab;
mod sorted_list;

pub use hashed_wheel::{HashedPlacement, HashedWheel};
pub use heap_queue::HeapQueue;
pub use hierarchical_wheel::{HierarchicalWheel, Placement};
pub use simple_wheel::SimpleWheel;
pub use sorted_list::SortedList;
