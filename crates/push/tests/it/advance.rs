//! A virtual clock that is moved while targets send: each message is sent once, at its own instant, although real time passes meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tickwheel_push::dispatch::{Order, Plan};
use tickwheel_push::{Attempt, Message, Outcome, Push, Sink, Target};
use tickwheel_queue::{
    AdvanceError, ChangeQueue, Due, Key, ListQueues, Put, Queue, QueueChange, QueueName, QueueSettings, Rate,
    Timestamp,
};

const DAY_MS: u64 = 86_400_000;

/// Confirms each message after some polls of the executor, and remembers it with the time on the virtual clock at its confirmation.
struct Slow {
    queue: Queue,
    confirmed: Mutex<Vec<(String, Timestamp)>>,
    /// The number of first attempts of each message that fail.
    fails: u32,
}

impl Sink for Slow {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            if message.attempt <= self.fails {
                return Outcome::task_failed("not yet").into();
            }
            let key = message.leased.key.as_str().to_owned();
            self.confirmed.lock().expect("no panic").push((key, self.queue.now()));
            Outcome::Delivered.into()
        })
    }
}

struct World {
    queue: Queue,
    name: QueueName,
    push: Push,
    sink: Arc<Slow>,
    start: Timestamp,
}

impl World {
    fn new(fails: u32, plan: Plan) -> Self {
        let queue = Queue::options().virtual_clock().open_memory().expect("a queue");
        let name = QueueName::new("close").expect("a name");
        let sink = Arc::new(Slow { queue: queue.clone(), confirmed: Mutex::default(), fails });
        let (push, _) = Push::new(&queue);
        push.set(&name, Target { plan, ..Target::new(Arc::clone(&sink) as Arc<dyn Sink>) });
        let start = queue.now();
        Self { queue, name, push, sink, start }
    }

    fn put(&self, key: &str, after_ms: u64) {
        let put = Put::new(&self.name, Key::new(key).expect("a key"));
        self.queue.put(Put { due: Due::After { ms: after_ms }, ..put }).wait().expect("a put");
    }

    /// The keys that were confirmed, each with the time since the start (ms).
    fn confirmed(&self) -> Vec<(String, u64)> {
        let confirmed = self.sink.confirmed.lock().expect("no panic");
        confirmed.iter().map(|(key, at)| (key.clone(), at.ms_since(self.start))).collect()
    }
}

#[tokio::test]
async fn the_clock_waits_at_each_instant_until_its_messages_are_settled() {
    let world = World::new(0, Plan { concurrency: 2, ..Plan::default() });
    for (key, hours) in [("b", 100), ("a", 1), ("c", 350), ("now", 0)] {
        world.put(key, hours * 3_600_000);
    }
    let now = world.push.advance(Duration::from_millis(15 * DAY_MS)).await;
    assert_eq!(now, Ok(world.start.saturating_plus_ms(15 * DAY_MS)));
    let expected = [("now", 0), ("a", 3_600_000), ("b", 360_000_000), ("c", 1_260_000_000)];
    assert_eq!(world.confirmed(), expected.map(|(key, ms)| (key.to_owned(), ms)));
    let counts = world.queue.queues(ListQueues::default()).wait().expect("open").queues;
    assert_eq!((counts[0].scheduled, counts[0].ready, counts[0].leased), (0, 0, 0));
}

#[tokio::test]
async fn it_waits_for_the_tasks_that_a_rate_or_a_retry_holds_back() {
    let world = World::new(1, Plan { concurrency: 2, ..Plan::default() });
    let rate = Some(Rate { tasks: 1, per_ms: 1_000, burst: 1 });
    let change = QueueChange::Settings(QueueSettings { rate, ..QueueSettings::default() });
    world.queue.change_queue(ChangeQueue { queue: world.name.clone(), change }).wait().expect("settings");
    ["a", "b", "c"].iter().for_each(|key| world.put(key, DAY_MS));
    world.push.advance(Duration::from_millis(20 * DAY_MS)).await.expect("virtual");
    let mut keys: Vec<String> = world.confirmed().into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c"], "each is confirmed once");
}

/// The end of each message lets the next one be leased, at the same instant.
#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_one_instant_is_sent_at_this_instant() {
    for order in [Order::None, Order::Queue, Order::Group] {
        for _ in 0..20 {
            let world = World::new(0, Plan { concurrency: 1, order, ..Plan::default() });
            ["a", "b", "c", "d", "e"].iter().for_each(|key| world.put(key, DAY_MS));
            world.put("last", 11 * DAY_MS);
            world.push.advance(Duration::from_millis(10 * DAY_MS)).await.expect("virtual");
            let expected = ["a", "b", "c", "d", "e"].map(|key| (key.to_owned(), DAY_MS));
            assert_eq!(world.confirmed(), expected, "{order:?}");
        }
    }
}

#[tokio::test]
async fn without_targets_it_moves_as_the_queue_does_and_a_real_clock_is_refused() {
    let queue = Queue::options().virtual_clock().open_memory().expect("a queue");
    let (push, _) = Push::new(&queue);
    let start = queue.now();
    assert_eq!(push.advance(Duration::from_secs(5)).await, Ok(start.saturating_plus_ms(5_000)));
    let beyond = push.advance(Duration::from_secs(u64::MAX)).await;
    assert!(matches!(beyond, Err(AdvanceError::TooFar { .. })), "{beyond:?}");
    let real = Queue::options().open_memory().expect("a queue");
    assert_eq!(Push::new(&real).0.advance(Duration::from_secs(1)).await, Err(AdvanceError::NotVirtual));
}
