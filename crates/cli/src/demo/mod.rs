//! The shop: a play with a real server, and an account of it that does not believe the server.
//!
//! [`plan`] is what will happen to each order, [`shop`] and [`workers`] make it happen over HTTP, [`server`] is the process
//! that is killed, [`ledger`] is what was seen, [`verdict`] judges that, [`report`] prints it, [`stage`] runs the whole.

mod histogram;
mod ledger;
mod plan;
mod report;
mod server;
mod shop;
mod stage;
mod verdict;
mod workers;

pub(crate) use stage::play;
