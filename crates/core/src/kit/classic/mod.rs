//! Textbook queues: five ways to wait for a deadline, each short enough to be read in one sitting.
//!
//! These types are here to be understood, and to check one another. **The queue to use is [`Wheel`](crate::Wheel).** All of them, and
//! `Wheel` too, obey the laws of [`TimerQueue`](crate::TimerQueue): no entry fires early, entries with equal deadlines fire in order of
//! insertion, and a handle finds its own entry or nothing. If the textbook version of a type breaks one of these laws, the documentation of
//! the type says so, and the type keeps the law.
//!
//! Read them in this order. n is the number of entries, s the number of slots, l the number of levels, b the number of buckets in use.
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
//! `SortedList` and `HeapQueue` compare deadlines, so their cost grows with n. The wheels compute the slot from the deadline instead, so
//! their cost grows with the distance of the deadline. Each of the three wheels pays for distance in another way: `SimpleWheel` refuses far
//! deadlines, `HashedWheel` waits for rounds, and `HierarchicalWheel` has levels.
//!
//! # Where they come from
//! George Varghese and Tony Lauck compared seven schemes in "Hashed and hierarchical timing wheels", at SOSP in 1987. The paper is often
//! dated 1997, which is the year of the journal version (IEEE/ACM Transactions on Networking). The types above are schemes 2, 3, 4, 6 and
//! 7.
//!
//! # How they are alike
//! Entries are in a slab and never move; a handle is the entry's place in the slab and a generation. Each generation is used once in each
//! place, so a stale handle is stale for ever. A cancelled entry is removed at once, and its place is the next one to be taken. So the
//! memory follows the highest number of entries that there was. There may be 2^32 - 1 entries; further insertions are refused as
//! [`Full`](crate::Refusal::Full). A slot takes 16 bytes, also if it is empty.

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
