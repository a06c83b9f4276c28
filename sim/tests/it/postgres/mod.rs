//! The store on PostgreSQL above a simulated database.

mod conformance;
mod fence;
mod pumped;
mod seeds;
mod statements;
