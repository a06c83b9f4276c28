//! A load generator for servers that speak the protocol of beanstalkd, this one or another. It keeps a chosen number of commands under way
//! and measures the duration of each.

mod pipe;
mod plan;
mod round;

pub(crate) use plan::{Mode, Plan};
pub(crate) use round::{Round, greet, measure};
