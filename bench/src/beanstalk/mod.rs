//! `tickwheel-bench beanstalk`: the server beside beanstalkd, through one load tool, `tickwheel bench beanstalk`.
//!
//! - `server`: a process of either kind, and what the system tells of it. `load`: the load tool, one round at a time.
//! - `life`: many jobs that wait: memory, wake-ups, a kill and a start. `run`: the rounds.

mod life;
mod load;
mod run;
mod server;

pub(crate) use run::{BeanstalkArguments, run};
