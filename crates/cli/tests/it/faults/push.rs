//! A server that pushes to a webhook is killed at any moment: with requests under way, and while it recovers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::{Due, PayloadBody, PutBody, PutQuery, QueueCounts, TargetBody, TargetKind};
use tickwheel_client::blocking::Client;
use tickwheel_testing::is_long;

use crate::faults::history::wall_ms;
use crate::faults::needs::{number, say};
use crate::faults::receiver::{DONE, Hook, Receiver, Reply};
use crate::faults::report::wait_for;
use crate::faults::server::{Home, Server, kill_start};
use crate::kit::Random;

const QUEUE: &str = "pushed";
const WRITERS: u64 = 2;
/// The range of the time from the start of the load to the kill (ms).
const LIFE_MS: (u64, u64) = (20, 330);
/// In one of this number of rounds, the server is killed when a request has arrived and has no answer yet.
const HELD_EVERY: u64 = 3;
/// The longest wait for such a request.
const HELD_MAX: Duration = Duration::from_secs(2);
/// At most this many kills during recoveries follow a kill under load.
const DEPTH: u64 = 2;
/// The longest time from a put to the due time of its task (ms). It is longer than a life.
const DELAY_MS: u64 = 900;
/// The longest time that the receiver takes for an answer (ms), and for one of this number of them.
const ANSWER_MS: u64 = 8;
const SLOW_MS: u64 = 200;
const SLOW_EVERY: u64 = 10;

/// A task that a writer asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    due_ms: i64,
    is_acknowledged: bool,
}

/// A request, as the receiver noted it.
#[derive(Clone, Debug)]
struct Noted {
    hook: Hook,
    at_ms: i64,
    is_answered: bool,
}

/// Everything that the process of the tests knows. It is not killed.
#[derive(Default)]
struct Notes {
    asked: Mutex<BTreeMap<String, Asked>>,
    received: Mutex<Vec<Noted>>,
    /// The next request is told here and gets no answer.
    held: Mutex<Option<mpsc::Sender<()>>>,
}

#[derive(Debug, Default)]
struct Totals {
    kills: u64,
    in_recovery: u64,
    held: u64,
    acknowledged: usize,
    unanswered: usize,
    received: usize,
    duplicates: usize,
    /// The number of tasks that may have been under way at the kills.
    under_way: usize,
}

/// The number of rounds is `TICKWHEEL_KILLS` (10 by default); `TICKWHEEL_FAULT_SEED` chooses the load and the moments of the kills (1 by default).
#[test]
fn each_acknowledged_task_reaches_its_target_and_only_those_under_way_at_a_kill_twice() {
    let rounds = number("TICKWHEEL_KILLS", 10);
    let seed = number("TICKWHEEL_FAULT_SEED", 1);
    let begun = Instant::now();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let notes = Arc::<Notes>::default();
    let receiver = Receiver::start({
        let (notes, delays) = (Arc::clone(&notes), Mutex::new(Random::new(seed)));
        move |hook| notes.answer(hook, &delays)
    });
    let command = || {
        let mut command = home.command(&[]);
        command.arg("--push-allow").arg(receiver.address.to_string());
        command
    };
    let mut random = Random::new(seed);
    let (mut totals, mut judge) = (Totals::default(), Judge::default());
    let server = home.start_as(&mut command());
    set_target(&server, &receiver);
    server.kill();

    for round in 0..rounds {
        let server = home.start_as(&mut command());
        let life = Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1));
        let is_held = round % HELD_EVERY == 1;
        let done = notes.load(server, &mut random, round, |server| {
            // A kill may come at any moment, so this is the test's only wait for a time.
            thread::sleep(life);
            if is_held {
                let (told, held) = mpsc::channel();
                *notes.held.lock().expect("no panic") = Some(told);
                totals.held += u64::from(held.recv_timeout(HELD_MAX).is_ok());
            }
            server.kill();
            // There may have been no request in time.
            *notes.held.lock().expect("no panic") = None;
        });
        totals.kills += 1;
        judge.killed(&notes, &receiver, done, &mut totals);
        for _ in 0..random.below(DEPTH + 1) {
            totals.in_recovery += u64::from(kill_start(&mut random, &mut command()));
            totals.kills += 1;
            judge.killed(&notes, &receiver, 0, &mut totals);
        }
        if round % 100 == 99 {
            say(&format!("{:>6} s: {totals}", begun.elapsed().as_secs()));
        }
    }

    let server = home.start_as(&mut command());
    until_empty(&server, QUEUE);
    judge.life_ended(&notes, &mut totals);
    notes.check();
    say(&format!("push: seed {seed}, {rounds} rounds, {:?}: {totals}", begun.elapsed()));
    // How often a kill meets something is a matter of chance in a short run.
    assert!(
        !is_long() || totals.held * 2 * HELD_EVERY >= rounds,
        "too few kills met a request without an answer"
    );
    assert!(
        !is_long() || totals.duplicates as u64 * 2 >= totals.held,
        "a request without an answer comes again"
    );
    assert!(
        !is_long() || totals.in_recovery * 10 >= totals.kills,
        "too few kills met a recovery: no test of it"
    );
}

fn set_target(server: &Server, receiver: &Receiver) {
    let url = Some(format!("http://{}/hook", receiver.address));
    let target = TargetBody { url, ..TargetBody::of_kind(TargetKind::Webhook) };
    let client = Client::new(&server.url).expect("the server's own URL");
    client.put_target(QUEUE, &target, None).expect("a target");
}

/// The number of live tasks.
pub(crate) fn live(counts: &QueueCounts) -> u64 {
    counts.scheduled + counts.ready + counts.leased
}

/// Waits until no task is left, and checks that none is dead.
pub(crate) fn until_empty(server: &Server, queue: &str) {
    let client = Client::new(&server.url).expect("the server's own URL");
    let counts = wait_for("an empty queue", || {
        let counts = client.queue(queue).expect("a healthy server").counts;
        (live(&counts) == 0).then_some(counts)
    });
    assert_eq!(counts.dead, 0, "no task has used up its attempts");
}

impl Notes {
    fn answer(&self, hook: &Hook, delays: &Mutex<Random>) -> Reply {
        let noted = Noted { hook: hook.clone(), at_ms: wall_ms(), is_answered: false };
        let nth = {
            let mut received = self.received.lock().expect("no panic");
            received.push(noted);
            received.len() - 1
        };
        if let Some(told) = self.held.lock().expect("no panic").take() {
            // The test may have stopped waiting. It kills the server in any case.
            let _late = told.send(());
            return Reply::Silence;
        }
        let delay = {
            let mut delays = delays.lock().expect("no panic");
            let longest = if delays.below(SLOW_EVERY) == 0 { SLOW_MS } else { ANSWER_MS };
            delays.below(longest + 1)
        };
        thread::sleep(Duration::from_millis(delay));
        self.received.lock().expect("no panic")[nth].is_answered = true;
        DONE
    }

    /// Lets writers put tasks until `kill` has ended the server. Returns the number of tasks that were certainly done before.
    fn load(&self, server: Server, random: &mut Random, round: u64, kill: impl FnOnce(Server)) -> u64 {
        let (url, is_over) = (server.url.clone(), AtomicBool::new(false));
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let client = Client::new(&url).expect("the server's own URL");
                let mut random = Random::new(random.below(u64::MAX));
                scope.spawn(move || {
                    (0..)
                        .take_while(|n| self.put(&client, &mut random, format!("{round}-{writer}-{n}")))
                        .count()
                });
            }
            let (client, is_over) = (Client::new(&url).expect("the server's own URL"), &is_over);
            let looks = scope.spawn(move || {
                let mut done = 0;
                while !is_over.load(Ordering::Relaxed) {
                    // The puts are counted first, so the difference is not larger than the number of tasks that are done.
                    let put = self.acknowledged();
                    let Ok(queue) = client.queue(QUEUE) else { break };
                    done = done.max(put.saturating_sub(live(&queue.counts)));
                    thread::sleep(Duration::from_millis(1));
                }
                done
            });
            kill(server);
            is_over.store(true, Ordering::Relaxed);
            looks.join().expect("no panic")
        })
    }

    /// Puts a task. Returns whether the server answered.
    fn put(&self, client: &Client, random: &mut Random, key: String) -> bool {
        let delay = match random.below(4) {
            0 | 1 => 0,
            2 => random.below(30),
            _ => random.below(DELAY_MS),
        };
        let due_ms = wall_ms() + i64::try_from(delay).expect("a short time");
        let payload = PayloadBody::json(format!("\"{key}\"").into_bytes());
        let body = PutBody { due: Due::At(due_ms), payload, ..PutBody::default() };
        let note = |is_acknowledged| {
            self.asked.lock().expect("no panic").insert(key.clone(), Asked { due_ms, is_acknowledged });
        };
        note(false);
        let is_put = client.put(QUEUE, &key, &body, PutQuery::default(), None).is_ok();
        note(is_put);
        is_put
    }

    fn acknowledged(&self) -> u64 {
        self.asked.lock().expect("no panic").values().filter(|asked| asked.is_acknowledged).count() as u64
    }

    /// The number of these keys whose put was acknowledged.
    fn acknowledged_of(&self, keys: &BTreeSet<String>) -> usize {
        let asked = self.asked.lock().expect("no panic");
        keys.iter().filter(|key| asked.get(*key).is_some_and(|asked| asked.is_acknowledged)).count()
    }

    /// Checks all requests against all puts.
    fn check(&self) {
        let asked = self.asked.lock().expect("no panic");
        let received = self.received.lock().expect("no panic");
        let mut ids = BTreeMap::<&str, &str>::new();
        for Noted { hook, at_ms, .. } in &*received {
            let asked = asked.get(&hook.key).unwrap_or_else(|| panic!("nothing like this was put: {hook:?}"));
            assert!(*at_ms >= asked.due_ms, "EARLY: {hook:?} at {at_ms}, due {}", asked.due_ms);
            let id = ids.entry(&hook.key).or_insert(&hook.id);
            assert_eq!(*id, hook.id, "the id of {} changed", hook.key);
            assert_eq!(hook.body, format!("\"{}\"", hook.key).into_bytes(), "the payload of {}", hook.key);
        }
        assert_eq!(ids.values().collect::<BTreeSet<_>>().len(), ids.len(), "two tasks have one id");
        let told = asked.iter().filter(|(_, asked)| asked.is_acknowledged);
        // A request without an answer is no delivery.
        let answered = received.iter().filter(|noted| noted.is_answered).map(|noted| &noted.hook.key);
        let answered: BTreeSet<&String> = answered.collect();
        let lost: Vec<_> = told.clone().filter(|(key, _)| !answered.contains(key)).collect();
        assert!(lost.is_empty(), "LOST: {lost:?}");
    }
}

/// Counts the requests that came again, life by life.
#[derive(Default)]
struct Judge {
    /// The keys that were received before this life of the server.
    before: BTreeSet<String>,
    /// The number of requests in the notes at the begin of this life.
    noted: usize,
    /// The number of acknowledged tasks that were certainly done.
    done: u64,
    /// The number of acknowledged tasks that may come again in this life.
    under_way: usize,
}

impl Judge {
    /// A server was killed. `done`: the number of tasks that were certainly done before.
    fn killed(&mut self, notes: &Notes, receiver: &Receiver, done: u64, totals: &mut Totals) {
        receiver.settle();
        self.life_ended(notes, totals);
        self.done = self.done.max(done);
        self.under_way =
            notes.acknowledged_of(&self.before) - usize::try_from(self.done).expect("a small number");
        totals.under_way += self.under_way;
    }

    /// Checks the requests of a life: no task came twice, and those of earlier lives were under way at the kill.
    fn life_ended(&mut self, notes: &Notes, totals: &mut Totals) {
        let received = notes.received.lock().expect("no panic");
        let mut of_life = BTreeSet::new();
        for Noted { hook, .. } in &received[self.noted..] {
            assert!(of_life.insert(hook.key.clone()), "{} came twice without a kill", hook.key);
        }
        // A put without an answer is not in the count of those that are done.
        let again = of_life.intersection(&self.before).cloned().collect();
        let again = notes.acknowledged_of(&again);
        assert!(again <= self.under_way, "{again} tasks came again, and {} were under way", self.under_way);
        totals.duplicates += again;
        self.noted = received.len();
        totals.received = received.len();
        totals.acknowledged = usize::try_from(notes.acknowledged()).expect("a small number");
        totals.unanswered = notes.asked.lock().expect("no panic").len() - totals.acknowledged;
        self.before.append(&mut of_life);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills, {} of them in a recovery and {} with a request that was held; {} puts acknowledged and {} without an answer; \
             {} requests, {} of them again, of at most {} under way; none lost, none early",
            self.kills,
            self.in_recovery,
            self.held,
            self.acknowledged,
            self.unanswered,
            self.received,
            self.duplicates,
            self.under_way
        )
    }
}
