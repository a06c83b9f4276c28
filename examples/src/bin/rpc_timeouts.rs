//! Remote calls with timeouts: an answer in time, one that comes after a second attempt, and a server that is gone.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin rpc_timeouts
//! ```

use std::time::Duration;

use anyhow::Result;
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::rpc_timeouts::{Client, Patience};
use tickwheel_examples::story::{Story, pass};

fn main() -> Result<()> {
    // A service takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);

    let patience =
        Patience { timeout: Duration::from_secs(1), attempts: 3, pause: Duration::from_millis(200) };
    let wire = story.clone();
    let client =
        Client::new(&timer, patience, move |id, request| wire.tell(&format!("#{id} sent: {request}")));
    let call = |request: &str| {
        let (name, story) = (request.to_owned(), story.clone());
        client.call(request, move |result| story.tell(&format!("{name}: {result:?}")));
    };

    call("stock");
    call("price");
    call("rating");
    pass(&clock, Duration::from_millis(30));
    client.answer(1, "12 left");

    // The server of the other two is slow: #2 and #3 time out, and are sent again as #4 and #5.
    pass(&clock, Duration::from_millis(1_230));
    let heard = client.answer(2, "9.90");
    story.tell(&format!("the answer to #2 is late, heard: {heard}"));
    client.answer(4, "9.95");

    pass(&clock, Duration::from_secs(10));
    story.tell(&format!(
        "{} on their way, {} late, {} timers",
        client.waiting(),
        client.late(),
        timer.pending()
    ));
    Ok(())
}
