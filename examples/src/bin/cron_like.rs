//! A report each minute and a poller of an inbox, on a machine that once stands still for almost four minutes.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin cron_like
//! ```

use std::time::Duration;

use anyhow::Result;
use tickwheel::{Job, ManualClock, Missed, Timer};
use tickwheel_examples::cron_like::Jobs;
use tickwheel_examples::story::{Story, pass};

fn main() -> Result<()> {
    // A service takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let mut jobs = Jobs::new(&timer);
    let teller = story.clone();
    jobs.every("report", Duration::from_secs(60), Missed::Skip, move || teller.tell("report"))?;
    let (teller, slow) = (story.clone(), clock.clone());
    jobs.poll("inbox", Duration::from_secs(45), move || {
        teller.tell("inbox: 10 seconds of work");
        slow.advance(Duration::from_secs(10));
    })?;

    pass(&clock, Duration::from_secs(120));
    story.tell("the machine stands still");
    clock.advance(Duration::from_secs(230));
    story.tell("and goes on: one report makes up for all, and the grid stays");
    pass(&clock, Duration::from_secs(60));
    jobs.stop("inbox");
    story.tell(&format!("left: {jobs:?}"));
    pass(&clock, Duration::from_secs(60));
    Ok(())
}
