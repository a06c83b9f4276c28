//! The store on PostgreSQL above a simulated database.

mod conformance;
mod pumped;
mod seeds;
