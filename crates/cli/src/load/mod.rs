//! A load for servers that speak the protocol of beanstalkd, this one and others: a chosen number of commands under
//! way, and the duration of each.

mod pipe;
mod plan;
mod round;

pub(crate) use plan::{Mode, Plan};
pub(crate) use round::{Round, greet, measure};
