//! The doors: each parses its clients' requests, calls the service and prints the answers.
//!
//! A new door is a folder here and one line in [`plans`](plans::plans).

pub(crate) mod beanstalk;
pub(crate) mod http;
pub(crate) mod plan;
pub(crate) mod plans;
#[cfg(test)]
mod resp;
