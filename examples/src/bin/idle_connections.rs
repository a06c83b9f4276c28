//! Connections that close when they are idle: three with traffic of their own, then 10,000 with a lot of it.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin idle_connections
//! ```

use std::time::Duration;

use anyhow::{Result, ensure};
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::idle_connections::Connections;
use tickwheel_examples::story::Story;

fn main() -> Result<()> {
    // A server takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let teller = story.clone();
    let connections = Connections::new(&timer, Duration::from_secs(60), move |number| {
        teller.tell(&format!("connection {number} is idle: closed"));
    });
    for number in 1..=3 {
        connections.open(number)?;
    }
    clock.advance(Duration::from_secs(40));
    ensure!(connections.heard(2), "it was opened 40 s ago");
    story.tell("connection 2 was heard");
    ensure!(connections.close(3), "it was opened 40 s ago");
    story.tell("connection 3 said goodbye");
    clock.advance(Duration::from_secs(20));
    clock.advance(Duration::from_secs(40));
    ensure!(!connections.heard(2), "a packet that comes too late is told so");

    // A packet each second on each of 10,000 connections, for a minute and a half.
    let before = timer.metrics();
    for number in 0..10_000 {
        connections.open(number)?;
    }
    for _ in 0..90 {
        clock.advance(Duration::from_secs(1));
        for number in 0..10_000 {
            ensure!(connections.heard(number), "it was heard a second ago");
        }
    }
    let entries = timer.metrics().accepted - before.accepted;
    story.tell(&format!(
        "{} connections are open, 900000 packets later, with {entries} timeouts",
        connections.count()
    ));
    Ok(())
}
