//! A cache of sessions that expire 30 minutes after they were last written.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin expiring_cache
//! ```

use std::time::Duration;

use anyhow::Result;
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::expiring_cache::Cache;
use tickwheel_examples::story::Story;

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

fn main() -> Result<()> {
    // A server takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let sessions = Cache::new(&timer);
    sessions.put("anna", 1, HALF_AN_HOUR)?;
    sessions.put("ben", 1, HALF_AN_HOUR)?;
    story.tell(&format!("{} sessions", sessions.kept()));

    clock.advance(Duration::from_secs(20 * 60));
    sessions.put("anna", 2, HALF_AN_HOUR)?;
    story.tell("anna puts something into her basket");

    clock.advance(Duration::from_secs(10 * 60));
    story.tell(&format!("anna: {:?}, ben: {:?}", sessions.get(&"anna"), sessions.get(&"ben")));

    clock.advance(Duration::from_secs(20 * 60));
    story.tell(&format!(
        "anna: {:?}, {} sessions, {} timeouts",
        sessions.get(&"anna"),
        sessions.kept(),
        timer.pending()
    ));
    Ok(())
}
