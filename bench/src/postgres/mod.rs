//! `tickwheel-bench postgres`: a queue on PostgreSQL, beside the database alone and beside a table of jobs in plain SQL, in one run.
//!
//! - `plan`: what was asked for. `server`: a PostgreSQL of the run's own, or a given one. `base`: a database for one measurement.
//! - `link`: a bare connection.
//! - `subject`: the seam behind which each implementation stands. `ours`, `raw`, `peer`: the same work through the queue, through plain SQL in our tables, and through a table of jobs.
//! - `rates`: tasks in a second. `single`: one put at a time. `held`: commits beside a snapshot that stays open.
//! - `goals`: the goals. `run`: the rounds.

mod base;
mod goals;
mod held;
mod link;
mod ours;
mod peer;
mod plan;
mod rates;
mod raw;
mod run;
mod server;
mod single;
mod subject;

pub(crate) use plan::PostgresArguments;
pub(crate) use run::run;
