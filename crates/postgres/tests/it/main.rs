//! The tests with a real PostgreSQL. They say so loudly where there is none, and are skipped.

mod clock;
mod fence;
mod inbox;
mod kit;
mod outages;
mod ownership;
mod plans;
mod replication;
mod roles;
mod rollups;
mod schema;
mod servers;
mod space;
mod store;

/// A process that other tests start: this program once more, with this test alone.
#[test]
#[ignore = "it does the work of a process that another test starts"]
fn process() {
    kit::Work::run();
}
