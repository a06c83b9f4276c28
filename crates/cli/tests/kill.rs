//! A server under load, killed with SIGKILL at random moments, again and again: nothing acknowledged is lost, nothing comes
//! early, nothing comes whose cancel was acknowledged, nothing comes again whose ack was acknowledged.
//!
//! `TICKWHEEL_KILLS` says how often (20 if it does not), `TICKWHEEL_KILL_SEED` which workload (1). A failure prints both.

mod kill {
    pub(crate) mod history;
    pub(crate) mod load;
    pub(crate) mod random;
    pub(crate) mod verdict;
}
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tickwheel_api::client::Client;

use kill::history::History;
use kill::load::{Load, WORKERS, WRITERS};
use kill::random::Random;
use kill::verdict::Verdict;
use server::Server;

const KILLS: usize = 20;
/// Between a server's being ready and its kill: 20 to 320 ms, around the time of a few commits and a first checkpoint.
const LIFE_MS: (u64, u64) = (20, 300);
/// How long everything may take to be delivered once nobody kills any more.
const DRAIN: Duration = Duration::from_secs(60);

#[test]
fn nothing_is_lost_or_early_or_delivered_after_its_cancel() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
    };
    let kills = usize::try_from(number("TICKWHEEL_KILLS", KILLS as u64)).expect("a count");
    let seed = number("TICKWHEEL_KILL_SEED", 1);

    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let data = data.to_str().expect("UTF-8");
    let mut server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
    let address = server.address().to_owned();

    let history = Arc::new(History::default());
    let stop_writing = Arc::new(AtomicBool::new(false));
    let stop_working = Arc::new(AtomicBool::new(false));
    let client = Client::new(&server.url).expect("the server's own URL");
    let load = Load { client, history: Arc::clone(&history), seed };
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (load, stop) = (load.clone(), Arc::clone(&stop_writing));
            thread::spawn(move || load.write(number, &stop))
        })
        .collect();
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (load, stop) = (load.clone(), Arc::clone(&stop_working));
            thread::spawn(move || load.work(&stop))
        })
        .collect();

    let mut random = Random::new(seed);
    let (mut with_calls, mut calls) = (0, 0);
    for _ in 0..kills {
        // The one wait for time: the moment of a kill is meant to be anywhere.
        thread::sleep(Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1)));
        let in_flight = history.in_flight();
        server.kill();
        with_calls += usize::from(in_flight > 0);
        calls += in_flight;
        server = Server::start(&["--data", data, "--listen", &address]);
    }

    stop_writing.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().expect("a writer");
    }
    let draining = Instant::now();
    while history.open() > 0 && draining.elapsed() < DRAIN {
        thread::sleep(Duration::from_millis(20));
    }
    stop_working.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().expect("a worker");
    }
    assert!(server.stop(Signal::TERM).success(), "the last server stops gracefully");

    let verdict = Verdict::of(&history);
    println!(
        "{kills} kills, {with_calls} of them with calls in flight ({calls} calls); seed {seed}; {verdict}"
    );
    assert!(verdict.broken.is_empty(), "seed {seed}, {kills} kills:\n{}", verdict.broken.join("\n"));
    assert!(
        with_calls * 10 >= kills * 3,
        "only {with_calls} of {kills} kills met calls in flight: no test of anything"
    );
    assert!(verdict.delivered > kills && verdict.cancelled > kills, "too little happened: {verdict}");
}
