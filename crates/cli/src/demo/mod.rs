//! The demo: clients of a real server, and an account of the results that uses only what the clients saw.
//!
//! [`plan`] decides the events of each order. [`shop`] and [`workers`] carry them out over HTTP, and [`server`] is the
//! process that is killed. [`place`] is where it keeps the tasks, and [`clock`] the clock by which they are due. [`ledger`] holds the observations, [`verdict`] judges them, [`report`] prints the result,
//! and [`stage`] runs the whole.

mod clock;
mod histogram;
mod ledger;
mod place;
mod plan;
mod report;
mod server;
mod shop;
mod stage;
mod verdict;
mod workers;

pub(crate) use stage::play;
