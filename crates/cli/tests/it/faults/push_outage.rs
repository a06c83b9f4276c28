//! The other side of a target is down for a while, in each way in which it can be. No outage loses a task. An outage that cannot be the
//! fault of the tasks uses up no attempt. The backlog arrives afterwards at the rate of its queue.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::{
    BreakerBody, PayloadBody, PutBody, PutQuery, RateBody, RetryBody, SettingsBody, TargetBody, TargetKind,
    TargetState, TargetView,
};
use tickwheel_client::blocking::Client;

use crate::faults::needs::{Need, has_for, number, say};
use crate::faults::push::until_empty;
use crate::faults::receiver::{DONE, Receiver, Reply};
use crate::faults::redis::Redis;
use crate::faults::report::wait_for;
use crate::faults::server::{Home, Server};

/// The number of tasks in each queue.
const TASKS: u64 = 250;
/// The rate of each queue (tasks for each second), and its burst.
const RATE: u64 = 200;
const BURST: u64 = 10;
/// The largest number of messages within a second. Delays of the network and of threads bring some together.
const ARRIVALS_MAX: usize = (RATE + BURST + RATE / 10) as usize;
/// The number of failures in a row that open the breaker, and of messages under way. Both are the defaults.
const FAILURES: u64 = 10;
const CONCURRENCY: u64 = 8;
/// The name of a receiver that has no address during its outage.
const NAME: &str = "tickwheel-receiver.invalid";
const STREAM: &str = "due";

/// The way in which the other side is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Nothing listens.
    Refused,
    /// The name of the receiver has no address.
    Unresolved,
    /// Each connection is closed before a request is read.
    Reset,
    /// The receiver answers 503.
    Unavailable,
    /// The broker does not run.
    Broker,
    /// The receiver answers 500.
    Error,
    /// The receiver does not answer.
    Silence,
}

impl Fault {
    /// Whether the tasks may be the cause, so that attempts count.
    fn may_be_of_tasks(self) -> bool {
        matches!(self, Self::Error | Self::Silence)
    }

    fn queue(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// A message that arrived.
#[derive(Clone, Debug)]
struct Arrival {
    key: String,
    /// The attempt; `None`: the message does not tell.
    attempt: Option<u32>,
    at_ms: u64,
}

/// The length of the outage is `TICKWHEEL_OUTAGE` (3 s by default).
#[test]
fn an_outage_loses_no_task_and_uses_up_no_attempt_unless_tasks_may_be_its_cause() {
    let outage = Outage::new(Duration::from_secs(number("TICKWHEEL_OUTAGE", 3)));
    let mut faults = vec![Fault::Refused, Fault::Reset, Fault::Unavailable, Fault::Error, Fault::Silence];
    let can_mount = has_for("a name without an address", &[Need::Program("unshare"), Need::Mounting]);
    faults.extend(can_mount.then_some(Fault::Unresolved));
    faults
        .extend(has_for("a broker that is down", &[Need::Program("redis-server")]).then_some(Fault::Broker));
    let mut redis = Redis::stopped();
    let config = outage.directory.path().join("tickwheel.toml");
    let connection =
        format!("[push.connections.main]\nkind = \"redis\"\naddresses = [\"{}\"]\n", redis.address());
    std::fs::write(&config, connection).expect("a file");
    let names = [&outage.hosts, &outage.resolver].map(|path| path.to_str().expect("UTF-8"));
    let script =
        r#"mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/resolv.conf && shift && exec "$@""#;
    let wrapper = ["unshare", "--mount", "sh", "-c", script, names[0], names[1]];
    let mut command = outage.home.command(if can_mount { &wrapper } else { &[] });
    command.args(["--push-allow", "127.0.0.0/8", "--push-allow", NAME, "--config"]).arg(config);
    let server = outage.home.start_as(&mut command);

    thread::scope(|scope| {
        for fault in faults {
            let (outage, server) = (&outage, &server);
            let redis = (fault == Fault::Broker).then(|| std::mem::replace(&mut redis, Redis::stopped()));
            scope.spawn(move || outage.run(server, fault, redis));
        }
    });
}

struct Outage {
    lasts: Duration,
    breaker: BreakerBody,
    directory: tempfile::TempDir,
    home: Home,
    /// The files that the server reads in place of `/etc/hosts` and `/etc/resolv.conf`.
    hosts: PathBuf,
    resolver: PathBuf,
    begun: Instant,
}

impl Outage {
    fn new(lasts: Duration) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::below(directory.path());
        let [hosts, resolver] = ["hosts", "resolv.conf"].map(|name| directory.path().join(name));
        File::create(&hosts).expect("a file");
        // Nothing listens there, so a look-up fails at once.
        std::fs::write(&resolver, "nameserver 127.77.77.77\n").expect("a file");
        // A short outage needs a breaker that tries again soon.
        let (open_ms, open_max_ms) =
            if lasts < Duration::from_secs(60) { (200, 800) } else { (1_000, 60_000) };
        let failures = u32::try_from(FAILURES).expect("a small number");
        let breaker = BreakerBody { failures, open_ms, open_max_ms: Some(open_max_ms) };
        Self { lasts, breaker, directory, home, hosts, resolver, begun: Instant::now() }
    }

    fn open_max(&self) -> Duration {
        Duration::from_millis(self.breaker.open_max_ms.expect("it is set"))
    }

    /// The largest number of probes in this time.
    fn probes(&self, time: Duration) -> u64 {
        let (mut open, mut passed, mut probes) =
            (Duration::from_millis(self.breaker.open_ms), Duration::ZERO, 0);
        loop {
            passed += open;
            if passed > time {
                return probes;
            }
            open = (open * 2).min(self.open_max());
            probes += 1;
        }
    }

    fn run(&self, server: &Server, fault: Fault, mut redis: Option<Redis>) {
        let queue = fault.queue();
        let client = Client::new(&server.url).expect("the server's own URL");
        let is_down = Arc::new(AtomicBool::new(true));
        let arrivals = Arc::<Mutex<Vec<Arrival>>>::default();
        let receive = {
            let (is_down, arrivals, begun) = (Arc::clone(&is_down), Arc::clone(&arrivals), self.begun);
            move |address: &str| {
                let (is_down, arrivals) = (Arc::clone(&is_down), Arc::clone(&arrivals));
                let is_reset = Arc::clone(&is_down);
                let admits = move || fault != Fault::Reset || !is_reset.load(Ordering::SeqCst);
                Receiver::start_at(address, admits, move |hook| {
                    if is_down.load(Ordering::SeqCst) {
                        return match fault {
                            Fault::Unavailable => Reply::Status("503 Down"),
                            Fault::Error => Reply::Status("500 Broken"),
                            Fault::Silence => Reply::Silence,
                            Fault::Refused | Fault::Unresolved | Fault::Reset | Fault::Broker => {
                                panic!("no request arrives: {hook:?}")
                            }
                        };
                    }
                    let at_ms = u64::try_from(begun.elapsed().as_millis()).expect("a short time");
                    let (key, attempt) = (hook.key.clone(), Some(hook.attempt));
                    arrivals.lock().expect("no panic").push(Arrival { key, attempt, at_ms });
                    DONE
                })
            }
        };
        // No other program uses this address, so the port stays free.
        let free =
            || TcpListener::bind("127.7.7.7:0").and_then(|listener| listener.local_addr()).expect("a port");
        let address = match fault {
            Fault::Refused => free(),
            _ => receive("127.0.0.1:0").address,
        };
        let host = if fault == Fault::Unresolved { NAME.to_owned() } else { address.ip().to_string() };
        self.set_target(&client, fault, format!("http://{host}:{}/hook", address.port()));
        for n in 0..TASKS {
            let body =
                PutBody { payload: PayloadBody::json(format!("\"{n}\"").into_bytes()), ..PutBody::default() };
            client.put(&queue, &n.to_string(), &body, PutQuery::default(), None).expect("a healthy server");
        }

        let begun = Instant::now();
        let view = || client.target(&queue).expect("a healthy server");
        wait_for("a target that is open", || is_open(&view()).then_some(()));
        while begun.elapsed() < self.lasts {
            assert!(
                arrivals.lock().expect("no panic").is_empty(),
                "{queue}: a message arrived in the outage"
            );
            thread::sleep(Duration::from_millis(100));
        }
        // The end comes while nothing is under way, so that no attempt is half in the outage. A broker that is down has none.
        let earlier = view().attempts;
        let before = wait_for("a probe that failed", || {
            let view = view();
            let has_just_opened = view.attempts != earlier || fault == Fault::Broker;
            (is_open(&view) && has_just_opened).then_some(view)
        });
        let (lasted, ended) = (self.begun.elapsed(), Instant::now());
        is_down.store(false, Ordering::SeqCst);
        match fault {
            Fault::Refused => drop(receive(&address.to_string())),
            Fault::Unresolved => {
                let mut hosts = File::options().append(true).open(&self.hosts).expect("the file");
                writeln!(hosts, "127.0.0.1 {NAME}").expect("written");
            }
            Fault::Broker => redis.as_mut().expect("it has one").start(),
            Fault::Reset | Fault::Unavailable | Fault::Error | Fault::Silence => {}
        }

        let arrived = || match &redis {
            Some(redis) => of_stream(redis),
            None => arrivals.lock().expect("no panic").clone(),
        };
        let arrived = wait_for("all tasks", || {
            let arrived = arrived();
            (arrived.len() as u64 >= TASKS).then_some(arrived)
        });
        let drained = ended.elapsed();
        until_empty(server, &queue);
        let after = view();
        let keys: std::collections::BTreeSet<&str> =
            arrived.iter().map(|arrival| arrival.key.as_str()).collect();
        assert_eq!(
            (keys.len() as u64, arrived.len() as u64),
            (TASKS, TASKS),
            "{queue}: each task arrives once"
        );
        let most = most_in_a_second(&arrived);
        let probes = self.probes(lasted);
        say(&format!(
            "outage by {queue}: {:.1?}; {} attempts were given back and {} used up, at most {probes} probes; {TASKS} tasks arrived within \
             {drained:.1?} after it, at most {most} in a second; none lost",
            begun.elapsed() - drained,
            after.attempts.given_back,
            after.attempts.failed
        ));
        assert!(most <= ARRIVALS_MAX, "{queue}: {most} messages within a second, at a rate of {RATE}/s");
        assert_eq!((after.attempts.acked, after.attempts.dead), (TASKS, 0), "{queue}");
        let again: u64 =
            arrived.iter().filter_map(|arrival| arrival.attempt).map(|nth| u64::from(nth) - 1).sum();
        if fault.may_be_of_tasks() {
            let used_up_max = FAILURES + CONCURRENCY + probes;
            assert!(after.attempts.failed <= used_up_max, "{queue}: more than {used_up_max}: {after:?}");
            assert!(before.attempts.failed >= FAILURES, "{queue}: the failures count: {before:?}");
            assert_eq!(again, after.attempts.failed, "{queue}: the attempts that the messages tell");
        } else {
            assert_eq!((after.attempts.failed, again), (0, 0), "{queue}: attempts were used up: {after:?}");
            assert!(before.attempts.given_back > 0, "{queue}: nothing was tried: {before:?}");
        }
    }

    fn set_target(&self, client: &Client, fault: Fault, url: String) {
        let settings = SettingsBody {
            rate: Some(RateBody { tasks: RATE, per_ms: 1_000 }),
            burst: Some(BURST),
            ..SettingsBody::default()
        };
        client.configure(&fault.queue(), &settings).expect("settings");
        let retry = RetryBody { max_attempts: Some(16), base_ms: 100, max_ms: 1_000, ..RetryBody::default() };
        let target = if fault == Fault::Broker {
            let (connection, stream) = (Some("main".to_owned()), Some(STREAM.to_owned()));
            TargetBody { connection, stream, ..TargetBody::of_kind(TargetKind::Redis) }
        } else {
            // After the outage, an answer may not take longer.
            let timeout_ms = (fault == Fault::Silence).then_some(4_000);
            TargetBody { url: Some(url), timeout_ms, ..TargetBody::of_kind(TargetKind::Webhook) }
        };
        let target = TargetBody {
            concurrency: Some(CONCURRENCY),
            breaker: Some(self.breaker),
            retry: Some(retry),
            ..target
        };
        client.put_target(&fault.queue(), &target, None).expect("a target");
    }
}

fn is_open(view: &TargetView) -> bool {
    view.state == TargetState::Open
}

fn of_stream(redis: &Redis) -> Vec<Arrival> {
    let entries = redis.entries(STREAM).into_iter();
    entries.map(|(at_ms, key)| Arrival { key, attempt: None, at_ms }).collect()
}

/// The largest number of messages that arrived within a second.
fn most_in_a_second(arrived: &[Arrival]) -> usize {
    let mut times: Vec<u64> = arrived.iter().map(|arrival| arrival.at_ms).collect();
    times.sort_unstable();
    let within = |first: &u64| times.iter().filter(|at| (*first..*first + 1_000).contains(at)).count();
    times.iter().map(within).max().unwrap_or_default()
}
