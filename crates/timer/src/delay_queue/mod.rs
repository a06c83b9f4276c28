//! The delay queue: [`DelayQueue`] and what stands behind it.
//!
//! - `elements`: what waits for its delay, in order. No clock, no lock, no waiter. `handle`: the claim on one of them.
//! - `line`: who waits for an element, in order of arrival. `called`: those whose turn it is, to be woken.
//! - `state`: both together, and the rules by which an element meets a waiter. `shared`: the lock around it.
//! - `wait`: one who waits; it leaves the line whichever way it ends. `next` awaits it, `park` blocks on it.
//! - `queue`: the door. `closed`: the refusal.

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
