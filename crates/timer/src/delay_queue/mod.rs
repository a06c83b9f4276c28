//! The delay queue: [`DelayQueue`] and its parts.
//!
//! - `elements`: the elements in order, without clock, lock or waiters. `handle`: names an element.
//! - `line`: the waiters, in order of arrival. `called`: the wakers to call.
//! - `state`: elements and waiters together, and the rules by which a waiter gets an element. `shared`: the lock around the state.
//! - `wait`: one waiter; it leaves the line when it ends for any reason. `next` awaits it, `park` blocks on it.
//! - `queue`: the public type. `closed`: the error of a push into a closed queue.

mod called;
mod closed;
mod elements;
mod handle;
mod line;
mod next;
mod park;
mod queue;
mod shared;
mod state;
mod wait;

pub use closed::Closed;
pub use handle::DelayHandle;
pub use next::Next;
pub use queue::DelayQueue;
