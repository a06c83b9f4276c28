//! The engine over a memory store, with clocks that the tests move.

mod acks;
mod by_id;
mod by_key;
mod dead;
mod figures;
mod flow;
mod forecast;
mod holders;
mod imports;
mod inbox;
mod jobs;
mod leases;
mod listed;
mod near;
mod rules;
mod schedules;
mod several;
mod shards;
mod states;
mod targets;
mod terms;
mod timeline;
mod twins;
mod wheel;
mod world;
