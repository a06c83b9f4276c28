//! Three consumers of a group: one works, one falls silent, one leaves.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin heartbeat_sessions
//! ```

use std::time::Duration;

use anyhow::{Result, anyhow};
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::heartbeat_sessions::Sessions;
use tickwheel_examples::story::Story;

fn main() -> Result<()> {
    // A coordinator takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let teller = story.clone();
    let sessions = Sessions::new(&timer, Duration::from_secs(10), move |group, member| {
        teller.tell(&format!("{member} of {group} was silent for 10 s: gone"));
    });
    let known = |result: Result<(), _>| result.map_err(|error| anyhow!("refused: {error:?}"));
    for member in ["anna", "ben", "carl"] {
        known(sessions.join("billing", member))?;
    }

    for second in 1..=16 {
        clock.advance(Duration::from_secs(1));
        if second % 3 == 0 {
            known(sessions.heartbeat("billing", "anna"))?;
        }
        if second == 4 {
            known(sessions.commit("billing", "ben", 700))?;
            story.tell("ben commits 700: a sign of life");
        }
        if second == 5 {
            sessions.leave("billing", "carl");
            story.tell("carl leaves");
        }
    }
    story.tell(&format!("a heartbeat of ben now: {:?}", sessions.heartbeat("billing", "ben")));
    story.tell(&format!("{} member, {} timeout", sessions.count(), timer.pending()));
    Ok(())
}
