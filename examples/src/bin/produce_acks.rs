//! Three writes to a broker: one that all replicas copy, one whose follower is slow, and one during which the leader moves.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin produce_acks
//! ```

use std::time::Duration;

use anyhow::Result;
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::produce_acks::Broker;
use tickwheel_examples::story::Story;

fn main() -> Result<()> {
    // A broker takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let broker = Broker::new(&timer, 2);
    broker.lead(1, [7]);
    broker.lead(2, [7, 8]);
    let write = |name: &'static str, partitions: &[u32]| {
        let story = story.clone();
        let records = partitions.iter().map(|&partition| (partition, 100));
        broker.write(records, Duration::from_secs(30), move |answers| {
            story.tell(&format!("{name}: {answers:?}"));
        })
    };

    write("first", &[1, 2])?;
    clock.advance(Duration::from_millis(5));
    broker.copied(1, 7, 100);
    broker.copied(2, 7, 100);
    story.tell("follower 7 has both partitions, 8 has nothing yet");
    clock.advance(Duration::from_millis(5));
    broker.copied(2, 8, 100);

    write("second", &[1, 2])?;
    broker.copied(1, 7, 200);
    broker.copied(2, 7, 200);
    clock.advance(Duration::from_secs(20));
    write("third", &[2])?;
    clock.advance(Duration::from_secs(10));
    story.tell("partition 2 moves to another broker");
    broker.resign(2);
    story.tell(&format!("{} writes wait, {} timeouts", broker.waiting(), timer.pending()));
    Ok(())
}
