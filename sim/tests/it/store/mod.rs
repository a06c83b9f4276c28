//! The store on a simulated disk.

mod crash;
mod full;
mod levels;
mod world;
