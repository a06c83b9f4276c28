//! A reader that asks for a kilobyte at a time, and waits half a second at most.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin fetch_min_bytes
//! ```

use std::time::Duration;

use anyhow::Result;
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::fetch_min_bytes::{Broker, Place};
use tickwheel_examples::story::Story;

fn main() -> Result<()> {
    // A broker takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let broker = Broker::new(&timer);
    broker.lead(1, 1);
    broker.lead(2, 1);
    let fetch = |from: u64| {
        let story = story.clone();
        let place = Place { epoch: 1, from, bytes_max: 4_096 };
        broker.fetch([(1, place), (2, place)], 1_024, Duration::from_millis(500), move |answers| {
            story.tell(&format!("fetched {answers:?}"));
        })
    };

    fetch(0)?;
    clock.advance(Duration::from_millis(100));
    broker.append(1, 700);
    story.tell("700 bytes in partition 1");
    clock.advance(Duration::from_millis(100));
    story.tell("700 bytes in partition 2: enough");
    broker.append(2, 700);

    fetch(700)?;
    clock.advance(Duration::from_millis(500));

    fetch(700)?;
    clock.advance(Duration::from_millis(200));
    story.tell("partition 2 has a new leader");
    broker.resign(2);
    story.tell(&format!("{} fetches wait, {} timeouts", broker.waiting(), timer.pending()));
    Ok(())
}
