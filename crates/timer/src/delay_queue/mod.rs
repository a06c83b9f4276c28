//! The delay queue: [`DelayQueue`] and its parts.
//!
//! - `elements`: the elements in order. No clock, no lock, no waiter. `handle`: names one of them.
//! - `line`: the waiters, in order of arrival. `called`: those to be woken.
//! - `state`: both together, and the rules by which an element meets a waiter. `shared`: the lock around it.
//! - `wait`: one waiter; it leaves the line whichever way it ends. `next` awaits it, `park` blocks on it.
//! - `queue`: the public type. `closed`: the refusal.

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
