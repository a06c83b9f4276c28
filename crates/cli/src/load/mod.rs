//! A load for servers that speak the protocol of beanstalkd, this one and others: as many commands under way as are wanted, and how long each
//! was.

mod pipe;
mod plan;
mod round;

pub(crate) use plan::{Mode, Plan};
pub(crate) use round::{Round, greet, measure};
