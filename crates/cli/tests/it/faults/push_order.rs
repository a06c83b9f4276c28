//! The order of a target while its receiver fails at random and its server is killed: no task overtakes another one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::{
    BreakerBody, Due, PutBody, PutQuery, RetryBody, TargetBody, TargetKind, TargetOrder, Terms,
};
use tickwheel_client::blocking::Client;
use tickwheel_testing::is_long;

use crate::faults::history::wall_ms;
use crate::faults::needs::{number, say};
use crate::faults::push::until_empty;
use crate::faults::receiver::{DONE, Hook, Receiver, Reply};
use crate::faults::server::{Home, Server, kill_start};
use crate::kit::Random;

const QUEUE: &str = "ordered";
/// The range of the time from the start of the load to the kill (ms).
const LIFE_MS: (u64, u64) = (50, 350);
/// The percentage of requests that are answered with 500, and with 503.
const FAILED: u64 = 30;
const UNAVAILABLE: u64 = 3;
/// The longest time that the receiver takes for an answer (ms).
const ANSWER_MS: u64 = 4;
/// The writer waits while the receiver has this many tasks to come.
const BEHIND_MAX: usize = 60;
/// Two tasks of a group have due times that are less than this apart (ms).
const STEP_MS: u64 = 20;

/// A group and the place of a task in it.
type Place = (u64, u64);

/// Everything that the process of the tests knows.
#[derive(Default)]
struct Notes {
    /// The tasks whose put was acknowledged.
    put: BTreeSet<Place>,
    /// The tasks that were answered with a 2xx.
    done: BTreeSet<Place>,
    /// The last task of each group that was received.
    newest: BTreeMap<u64, u64>,
    inversions: Vec<String>,
    requests: u64,
    failed: u64,
    /// Requests with a task that had been answered with a 2xx before.
    duplicates: u64,
}

impl Notes {
    /// Takes in a request. Returns its answer.
    fn answer(&mut self, hook: &Hook, random: &mut Random) -> Reply {
        let place @ (group, nth) = place_of(&hook.key);
        self.requests += 1;
        let newest = self.newest.entry(group).or_insert(nth);
        if nth < *newest {
            self.inversions.push(format!("{} came after the task {newest} of its group: {hook:?}", hook.key));
        }
        *newest = nth.max(*newest);
        let mut before = self.put.range((group, 0)..place);
        if let Some(waiting) = before.find(|before| !self.done.contains(before)) {
            self.inversions.push(format!("{} came before {waiting:?} was done: {hook:?}", hook.key));
        }
        match random.below(100) {
            chance if chance < FAILED => {
                self.failed += 1;
                Reply::Status("500 Not today")
            }
            chance if chance < FAILED + UNAVAILABLE => {
                self.failed += 1;
                Reply::Status("503 Not now")
            }
            _ => {
                // The answer may get lost, so the next task of the group may come once this is noted.
                self.duplicates += u64::from(!self.done.insert(place));
                DONE
            }
        }
    }
}

fn key_of((group, nth): Place) -> String {
    format!("{group}-{nth}")
}

fn place_of(key: &str) -> Place {
    let (group, nth) = key.split_once('-').expect("a key of this test");
    (group.parse().expect("a number"), nth.parse().expect("a number"))
}

/// The number of rounds is `TICKWHEEL_KILLS` (8 by default); `TICKWHEEL_FAULT_SEED` chooses the load, the failures and the kills (1 by default).
#[test]
fn no_task_of_a_group_overtakes_another_one() {
    keeps(TargetOrder::Group, 6);
}

/// As above, with half of the rounds.
#[test]
fn no_task_of_a_queue_overtakes_another_one() {
    keeps(TargetOrder::Queue, 1);
}

fn keeps(order: TargetOrder, groups: u64) {
    let rounds = number("TICKWHEEL_KILLS", 8);
    let rounds = if order == TargetOrder::Queue { rounds.div_ceil(2) } else { rounds };
    let seed = number("TICKWHEEL_FAULT_SEED", 1);
    let begun = Instant::now();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let notes = Arc::<Mutex<Notes>>::default();
    let receiver = Receiver::start({
        let (notes, chances) = (Arc::clone(&notes), Mutex::new(Random::new(seed)));
        move |hook| {
            let mut chances = chances.lock().expect("no panic");
            let reply = notes.lock().expect("no panic").answer(hook, &mut chances);
            let delay = Duration::from_millis(chances.below(ANSWER_MS + 1));
            drop(chances);
            thread::sleep(delay);
            reply
        }
    });
    let command = || {
        let mut command = home.command(&[]);
        command.arg("--push-allow").arg(receiver.address.to_string());
        command
    };
    let server = home.start_as(&mut command());
    set_target(&server, &receiver, order);
    server.kill();

    let mut random = Random::new(seed);
    let mut writer = Writer { groups, next: 0, due_ms: vec![0; usize::try_from(groups).expect("few")] };
    let mut kills = 0;
    for _ in 0..rounds {
        let server = home.start_as(&mut command());
        let life = Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1));
        let client = Client::new(&server.url).expect("the server's own URL");
        thread::scope(|scope| {
            let (writer, notes, mut random) = (&mut writer, &*notes, Random::new(random.below(u64::MAX)));
            scope.spawn(move || while writer.put(&client, notes, &mut random) {});
            // A kill may come at any moment, so this is the test's only wait for a time.
            thread::sleep(life);
            server.kill();
        });
        receiver.settle();
        kills += 1;
        for _ in 0..random.below(3) {
            kill_start(&mut random, &mut command());
            receiver.settle();
            kills += 1;
        }
        assert_eq!(notes.lock().expect("no panic").inversions, <[String; 0]>::default(), "seed {seed}");
    }

    let server = home.start_as(&mut command());
    until_empty(&server, QUEUE);
    let notes = notes.lock().expect("no panic");
    assert_eq!(notes.inversions, <[String; 0]>::default(), "seed {seed}");
    let lost: Vec<_> = notes.put.difference(&notes.done).collect();
    assert!(lost.is_empty(), "LOST: {lost:?}");
    say(&format!(
        "push, order {}: seed {seed}, {rounds} rounds, {:?}: {kills} kills, {} puts acknowledged, {} requests, {} of them failed and {} \
         of them with a task that was done; no inversion, none lost",
        order.name(),
        begun.elapsed(),
        notes.put.len(),
        notes.requests,
        notes.failed,
        notes.duplicates
    ));
    // How much is sent is a matter of chance in a short run.
    assert!(!is_long() || notes.put.len() as u64 >= 10 * rounds, "too few tasks: no test of an order");
    assert!(!is_long() || notes.failed * 5 >= notes.requests, "too few requests failed: no test of failures");
}

fn set_target(server: &Server, receiver: &Receiver, order: TargetOrder) {
    let retry = RetryBody { max_attempts: None, base_ms: 5, max_ms: 40, ..RetryBody::default() };
    let target = TargetBody {
        url: Some(format!("http://{}/hook", receiver.address)),
        order: Some(order),
        retry: Some(retry),
        // The breaker opens now and then, so that tasks are also kept and given back while it is open.
        breaker: Some(BreakerBody { failures: 4, open_ms: 10, open_max_ms: Some(40) }),
        ..TargetBody::of_kind(TargetKind::Webhook)
    };
    let client = Client::new(&server.url).expect("the server's own URL");
    client.put_target(QUEUE, &target, None).expect("a target");
}

/// The one client that puts tasks, group by group. Each task is due at the time of the one before it in its group, or later.
struct Writer {
    groups: u64,
    next: u64,
    /// The due time of the last task of each group.
    due_ms: Vec<i64>,
}

impl Writer {
    /// Puts the next task. Returns whether the server answered.
    fn put(&mut self, client: &Client, notes: &Mutex<Notes>, random: &mut Random) -> bool {
        let is_behind = || {
            let notes = notes.lock().expect("no panic");
            notes.put.len() > notes.done.len() + BEHIND_MAX
        };
        if is_behind() {
            thread::sleep(Duration::from_millis(2));
            // A call shows whether the server is still there.
            return client.queue(QUEUE).is_ok();
        }
        let place @ (group, _) = (self.next % self.groups, self.next / self.groups);
        self.next += 1;
        let last_ms = &mut self.due_ms[usize::try_from(group).expect("few")];
        let step = i64::try_from(random.below(STEP_MS)).expect("a short time");
        *last_ms = (*last_ms).max(wall_ms() - 5) + step;
        let terms = Terms { group: Some(format!("g{group}")), ..Terms::default() };
        let body = PutBody { due: Due::At(*last_ms), terms, ..PutBody::default() };
        let is_put = client.put(QUEUE, &key_of(place), &body, PutQuery::default(), None).is_ok();
        if is_put {
            notes.lock().expect("no panic").put.insert(place);
        }
        is_put
    }
}
