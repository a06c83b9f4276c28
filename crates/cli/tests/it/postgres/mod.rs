//! The `tickwheel` program on a real PostgreSQL.

mod adoptions;
mod clock;
mod demo;
mod portable;
mod takeovers;
mod transactions;
mod words;
