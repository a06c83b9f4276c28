//! A group of consumers: two come together, a third one joins, and one of the first two is missing when they share the work.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin group_join
//! ```

use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tickwheel::{Job, ManualClock, Timer};
use tickwheel_examples::group_join::{Group, Joined, Plan, Rules};
use tickwheel_examples::story::{Story, pass};

fn main() -> Result<()> {
    // A coordinator takes `Timer::new()` instead; with this clock the story takes no time.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    let story = Story::by(&clock);
    let rules = Rules { initial_delay: Duration::from_secs(3), rebalance: Duration::from_secs(10) };
    let group = Group::new(&timer, rules);

    story.tell("anna joins, and ben two seconds later: the wait goes on, from 3 s to 6 s");
    let anna = group.join("anna");
    pass(&clock, Duration::from_secs(2));
    let ben = group.join("ben");
    when(&clock, &story, &anna)?;
    drop(ben);

    let plan = Plan::from([("anna", "partition 1"), ("ben", "partition 2")].map(owned));
    let part = |name, plan| group.sync(name, plan).map_err(|error| anyhow!("{name}: {error:?}"));
    let bens = part("ben", None)?;
    part("anna", Some(plan))?;
    story.tell(&format!("ben is to work on {:?}", bens.try_recv()?));

    story.tell("carla joins, and so all have to, again");
    let carla = group.join("carla");
    story.tell(&format!("anna hears {:?}, and joins; ben is asleep", group.heartbeat("anna")));
    drop(group.join("anna"));
    when(&clock, &story, &carla)?;

    story.tell("anna brings a plan, and carla is silent for 10 s");
    part("anna", Some(Plan::from([("anna", "all")].map(owned))))?;
    pass(&clock, Duration::from_secs(10));
    let heard = ["anna", "ben", "carla"].map(|name| group.heartbeat(name));
    story.tell(&format!("anna, ben and carla hear {heard:?}"));
    let alone = group.join("anna");
    when(&clock, &story, &alone)
}

/// Lets time pass until a member hears of its group.
fn when(clock: &ManualClock, story: &Story, joined: &Receiver<Joined>) -> Result<()> {
    loop {
        if let Ok(joined) = joined.try_recv() {
            story.tell(&format!("{joined:?}"));
            return Ok(());
        }
        pass(clock, Duration::from_millis(1));
    }
}

fn owned((name, part): (&str, &str)) -> (String, String) {
    (name.to_owned(), part.to_owned())
}
