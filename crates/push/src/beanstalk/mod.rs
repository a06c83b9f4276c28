//! Beanstalkd: messages as jobs of a tube.
//!
//! - `connection`: the server, and the way there.
//! - `pipeline`: the puts that are under way on one connection.
//! - `plan`: the tube, and the terms of the jobs.
//! - `answer`: the meaning of the answers.
//! - `sender`: the sink.
//! - `kind`: the kind in the table of the kinds. It is a module of the table, because a program without the client has it as well.
//! - `target`: connections and targets, made from their settings.

mod answer;
mod connection;
mod pipeline;
mod plan;
mod sender;
mod target;

pub use connection::{BeanstalkConnection, BeanstalkLive};
pub use plan::{BeanstalkPlan, BeanstalkPlanError};
pub use sender::BeanstalkSink;
