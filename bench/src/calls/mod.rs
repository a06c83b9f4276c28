//! `calls`: how long a call keeps the thread to itself that serves others too.
//!
//! - `watched`: a server with one thread for calls, and a probe on it that notes the longest stretch of work between two of its turns.
//! - `bodies`: the largest and worst inputs. `cases`, `lists`, `beanstalk`: the calls. `run`: the rounds.

mod beanstalk;
mod bodies;
mod cases;
mod lists;
mod run;
mod watched;

pub(crate) use run::{CallsArguments, run};
