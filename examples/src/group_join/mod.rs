//! A group of consumers that comes together, shares its work, and does so again when a member joins or is missing: the join and
//! sync of Kafka's coordinator.
//!
//! | phase | who is awaited | how long | when time is up |
//! |---|---|---|---|
//! | empty | no member | | |
//! | joining, from empty | each new member | the initial delay, and again while a member came, at most the rebalance time in all | those who came are the group |
//! | joining, again | all members, to join again | the rebalance time | who did not is no member any more |
//! | syncing | the leader's plan, and each member's question for it | the rebalance time | who is missing is no member any more, the others join again |
//! | stable | no member | | |
//!
//! Each waiting phase is one operation in the purgatory, with the number of its phase: an operation that ends after its phase did
//! has nothing left to do. So no phase can be waited in without a timeout, nor ended twice.

mod group;
mod state;
#[cfg(test)]
mod tests;

pub use group::{Group, Rules};
pub use state::{Beat, Joined, Plan, SyncError};
