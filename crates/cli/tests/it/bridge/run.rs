//! Runs with kills: nothing is lost, nothing is early, and each duplicate has its reason. `scripts/bridge` makes the long ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tickwheel_client::blocking::Client;
use tokio::time::sleep;

use crate::bridge::consumer::{bind, consume};
use crate::bridge::ledger::Ledger;
use crate::bridge::programs::{Program, count};
use crate::bridge::publisher::{Load, publish};
use crate::bridge::start::server_at;
use crate::rabbit::Broker;

/// The messages that the bridge may have received and not acked when a program is killed.
const PREFETCH: usize = 1_000;
/// The messages that may be published and not confirmed when a program is killed.
const CONCURRENCY: usize = 512;

/// A program that is killed and started again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Victim {
    Bridge,
    Server,
    Broker,
}

/// The programs of a run.
struct World {
    broker: Arc<Broker>,
    folder: TempDir,
    exchange: String,
    /// The server and its address; `None`: the bridge keeps the messages itself.
    server: Option<(Program, String)>,
    bridge: Program,
}

impl World {
    fn start(broker: &Arc<Broker>, exchange: &str, has_server: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = has_server.then(|| {
            let at = format!("127.0.0.1:{}", tickwheel_testing::free_port());
            (server_at(broker, folder.path(), &at), at)
        });
        let bridge =
            start_bridge(broker, folder.path(), exchange, server.as_ref().map(|(_, at)| at.as_str()));
        Self { broker: Arc::clone(broker), folder, exchange: exchange.to_owned(), server, bridge }
    }

    fn kill(&mut self, victim: Victim) {
        let folder = self.folder.path();
        match victim {
            Victim::Bridge => {
                self.bridge.kill();
                let server = self.server.as_ref().map(|(_, at)| at.as_str());
                self.bridge = start_bridge(&self.broker, folder, &self.exchange, server);
            }
            Victim::Server => {
                if let Some((server, at)) = &mut self.server {
                    server.kill();
                    *server = server_at(&self.broker, folder, at);
                }
            }
            Victim::Broker => {
                self.broker.kill();
                self.broker.run();
            }
        }
    }

    /// Returns the number of messages that are not published and not dead, if a server has them.
    fn waiting(&self) -> u64 {
        let Some((_, at)) = &self.server else { return 0 };
        let client = Client::new(&format!("http://{at}")).expect("a client");
        let counts = client.queue(&format!("rabbit/{}", self.exchange)).expect("the server answers").counts;
        assert_eq!(counts.dead, 0, "messages were given up");
        counts.scheduled + counts.ready + counts.leased
    }
}

fn start_bridge(broker: &Broker, folder: &Path, exchange: &str, server: Option<&str>) -> Program {
    let data: PathBuf = folder.join("bridge");
    let url = server.map(|at| format!("http://{at}"));
    let mut options = vec!["--exchange", exchange];
    match &url {
        Some(url) => options.extend(["--server", url, "--connection", "main"]),
        None => options.extend(["--data", data.to_str().expect("UTF-8")]),
    }
    Program::bridge(broker, &options)
}

/// Waits until a condition holds.
async fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < limit, "{what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Plays a load, and kills programs on the way. The numbers are shares of the way (percent).
#[expect(clippy::print_stderr, reason = "the result of a run is for the person who waits for it")]
async fn play(
    broker: &Arc<Broker>,
    load: Load,
    has_server: bool,
    kills: &[(usize, Victim)],
    limit: Duration,
) {
    let begun = Instant::now();
    let exchange = load.exchange.clone();
    let mut world = tokio::task::block_in_place(|| World::start(broker, &exchange, has_server));
    let queue = format!("{exchange}.consumer");
    bind(&broker.uri(), &queue, &format!("{exchange}.due"), &["eu", "us"]).await;
    let ledger = Arc::new(Ledger::default());
    let consumer = tokio::spawn(consume(broker.uri(), queue, Arc::clone(&ledger)));
    let publisher = tokio::spawn(publish(broker.uri(), load.clone(), Arc::clone(&ledger)));
    let all = usize::try_from(load.messages).expect("a number");
    for (percent, victim) in kills {
        let share = || {
            let (confirmed, arrived) = ledger.so_far();
            (confirmed + arrived) * 50 / all
        };
        until(&format!("the way to {percent} %"), limit, || share() >= *percent).await;
        eprintln!("at {} %: kill -9 of the {victim:?}", share());
        tokio::task::block_in_place(|| world.kill(*victim));
    }
    publisher.await.expect("all are published");
    until("all messages arrive", limit, || ledger.so_far().1 >= all).await;
    tokio::task::block_in_place(|| {
        let begun = Instant::now();
        while world.waiting() > 0 {
            assert!(begun.elapsed() < limit, "copies stay");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let last = tokio::task::block_in_place(|| world.bridge.stop());
    assert_eq!((count(&last, "waiting"), count(&last, "dead"), count(&last, "refused")), (0, 0, 0), "{last}");
    consumer.abort();
    let verdict = ledger.verdict();
    let place = if has_server { "--server" } else { "--data" };
    eprintln!("bridge {place}: {verdict}; the last bridge: {last}; {:.1?} in all", begun.elapsed());
    assert_eq!((verdict.published, verdict.arrived), (all, all));
    assert_eq!((verdict.early, verdict.lost), (0, 0));
    assert_eq!(verdict.strange, Vec::<String>::new());
    let limit: usize = kills.iter().map(|_| PREFETCH + CONCURRENCY).sum();
    assert!(verdict.of_kills <= limit, "{} duplicates, more than were on their way", verdict.of_kills);
}

/// Returns the number of messages of a long run, if one is asked for.
fn long() -> Option<u64> {
    let text = std::env::var("TICKWHEEL_BRIDGE_MESSAGES").ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("TICKWHEEL_BRIDGE_MESSAGES is no number: {text}")))
}

fn short(exchange: &str) -> Load {
    let pause = Duration::from_millis(200);
    Load { exchange: exchange.to_owned(), messages: 600, delay_ms_max: 2_000, pause }
}

async fn long_run(has_server: bool) {
    let Some(messages) = long() else { return };
    let Some(broker) = Broker::start() else { return };
    use Victim::{Bridge, Broker as Rabbit, Server};
    let kills = [
        (8, Bridge),
        (16, Server),
        (24, Rabbit),
        (34, Bridge),
        (44, Server),
        (54, Rabbit),
        (64, Bridge),
        (72, Server),
        (80, Bridge),
        (88, Rabbit),
        (94, Server),
    ];
    let kills: Vec<_> = kills.into_iter().filter(|(_, victim)| has_server || *victim != Server).collect();
    let load = Load {
        exchange: "orders".to_owned(),
        messages,
        delay_ms_max: 60_000,
        pause: Duration::from_millis(50),
    };
    play(&broker, load, has_server, &kills, Duration::from_secs(1_800)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_with_a_directory_loses_nothing_when_it_is_killed() {
    let Some(broker) = Broker::shared() else { return };
    let kills = [(20, Victim::Bridge), (60, Victim::Bridge)];
    play(&broker, short("kills.data"), false, &kills, tickwheel_testing::HANG_TIME).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_with_a_server_loses_nothing_when_both_are_killed() {
    let Some(broker) = Broker::shared() else { return };
    let kills = [(15, Victim::Bridge), (35, Victim::Server), (55, Victim::Bridge), (75, Victim::Server)];
    play(&broker, short("kills.server"), true, &kills, tickwheel_testing::HANG_TIME).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_kills_no_message_comes_twice() {
    let Some(broker) = Broker::shared() else { return };
    for (exchange, has_server) in [("quiet.data", false), ("quiet.server", true)] {
        play(&broker, short(exchange), has_server, &[], tickwheel_testing::HANG_TIME).await;
    }
}

/// Only with `TICKWHEEL_BRIDGE_MESSAGES`: minutes.
#[tokio::test(flavor = "multi_thread")]
async fn long_with_a_directory() {
    long_run(false).await;
}

/// Only with `TICKWHEEL_BRIDGE_MESSAGES`: minutes.
#[tokio::test(flavor = "multi_thread")]
async fn long_with_a_server() {
    long_run(true).await;
}
