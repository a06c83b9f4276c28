//! The doors: each parses what its clients say, calls the service and prints the answer.

pub(crate) mod beanstalk;
pub(crate) mod http;
