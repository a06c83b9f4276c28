//! The task machine over a memory store, with clocks that the tests move.

mod dead;
mod flow;
mod forecast;
mod near;
mod rules;
mod schedules;
mod states;
mod terms;
mod timeline;
mod twins;
mod world;
