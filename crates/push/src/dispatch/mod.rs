//! The decisions of a dispatcher: which tasks are leased, what is sent, and what becomes of each task. All of it is pure: time, leases and
//! outcomes come in as arguments, and calls of the queue go out as effects. So the simulator runs the same code as the server.
//!
//! - `dispatcher`: the state machine of one target.
//! - `breaker`: how many messages may be under way to a target that fails.
//! - `given_back`: how often a task was given back because of its target.
//! - `settling`: acks that wait a moment for others.

mod breaker;
mod dispatcher;
mod given_back;
mod settling;

pub(crate) use dispatcher::InHand;

pub use breaker::{Breaker, BreakerPlan, BreakerState};
pub use dispatcher::{Dispatcher, Effect, Order, Plan, SendNo, Sending};
