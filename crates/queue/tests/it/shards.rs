//! A queue of several shards answers as a queue of one shard does.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use tickwheel_queue::{
    Ack, Act, Acted, Body, ById, Cancel, ChangeQueue, Extra, Forecast, Get, Grid, ImportOutcome, ImportTask,
    ImportTasks, Key, Lease, Leased, ListAllSchedules, ListAllTasks, ListLeases, ListQueues, Nack, OnLease,
    Put, PutSchedule, Queue, QueueChange, QueueName, QueueSettings, Schedule, ScheduleName, State,
    TargetRecord, Timestamp, TokenAnswer,
};
use tickwheel_queue::{Cadence, Existing, ImportError};

fn queue(shards: u32) -> Queue {
    let start = Timestamp::from_ms(1_893_456_000_000).expect("after 1970");
    Queue::options().shards(shards).virtual_clock_at(start).open_memory().expect("open")
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a key")
}

/// Names of queues of which each shard of four has one at least.
fn names() -> Vec<QueueName> {
    (0..16).map(|n| name(&format!("q{n}"))).collect()
}

fn keys(leased: &[Leased]) -> Vec<String> {
    leased.iter().map(|leased| format!("{}/{}", leased.queue, leased.key)).collect()
}

/// Returns two queues of different shards.
fn two_queues(queue: &Queue) -> (QueueName, QueueName) {
    let names = names();
    let other = names.iter().find(|name| queue.shard_of(name) != queue.shard_of(&names[0]));
    (names[0].clone(), other.expect("16 queues are in more than one shard").clone())
}

#[test]
fn each_shard_has_queues_and_an_id_names_its_shard() {
    let queue = queue(4);
    let mut seen = BTreeMap::new();
    for name in names() {
        let task = queue.put(Put::new(&name, key("k"))).wait().expect("put").task;
        let shard = queue.shard_of(&name).number();
        assert_eq!(task.id % 4, u64::from(shard), "{name}");
        *seen.entry(shard).or_insert(0) += 1;
        let get = ById { id: task.id, act: Act::Get, within: None, if_version: None, worker: None };
        let Acted::Task(found) = queue.by_id(get).wait().expect("found") else { panic!("a task") };
        assert_eq!((found.queue, found.key), (name, key("k")));
    }
    assert!(seen.len() == 4, "{seen:?}");
}

#[test]
fn a_lease_over_several_shards_takes_the_first_tasks_and_gives_the_rest_back() {
    let queue = queue(4);
    for (n, name) in names().iter().enumerate() {
        let mut put = Put::new(name, key("k"));
        put.terms.priority = 100 - n as u32;
        queue.put(put).wait().expect("put");
    }
    let lease = Lease::of(names()).max(3);
    let first = queue.lease(lease.clone(), Duration::ZERO).wait().expect("leased");
    assert_eq!(keys(&first), ["q15/k", "q14/k", "q13/k"]);
    let second = queue.lease(lease.clone().max(16), tickwheel_testing::HANG_TIME).wait().expect("leased");
    let expected: Vec<String> = (0..13).rev().map(|n| format!("q{n}/k")).collect();
    assert_eq!(keys(&second), expected);
    assert!(second.iter().all(|leased| leased.attempt == 1), "what was given back is no attempt");
    assert!(queue.lease(lease, Duration::ZERO).wait().expect("empty").is_empty());
}

#[test]
fn a_wait_over_several_shards_ends_with_the_first_task() {
    let queue = queue(4);
    let (a, b) = two_queues(&queue);
    for of in [&a, &b] {
        let waiting = queue.lease(Lease::of([a.clone(), b.clone()]), tickwheel_testing::HANG_TIME);
        let waiter = std::thread::spawn(move || waiting.wait());
        while queue.queue(of).wait().expect("a view").waiting == 0 {
            std::thread::yield_now();
        }
        queue.put(Put::new(of, key("k"))).wait().expect("put");
        let leased = waiter.join().expect("no panic").expect("leased");
        assert_eq!(keys(&leased), [format!("{of}/k")]);
        let ack = Ack::new(of, [leased[0].token]);
        assert_eq!(queue.ack(ack).wait().expect("acked"), [TokenAnswer::Acked]);
        for of in [&a, &b] {
            while queue.queue(of).wait().expect("a view").waiting != 0 {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn a_wait_over_several_shards_can_be_ended_or_dropped() {
    let queue = queue(4);
    let (a, b) = two_queues(&queue);
    let lease = Lease::of([a.clone(), b.clone()]);
    let waiting = queue.lease(lease.clone(), Duration::MAX);
    waiting.end_wait();
    assert!(waiting.wait().expect("ended").is_empty(), "the wait ended before its round began");

    // A wait that has begun.
    let mut waiting = Box::pin(queue.lease(lease.clone(), Duration::MAX));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    while queue.queue(&a).wait().expect("a view").waiting == 0 {
        assert!(waiting.as_mut().poll(&mut context).is_pending());
    }
    waiting.end_wait();
    let answer = loop {
        if let std::task::Poll::Ready(answer) = waiting.as_mut().poll(&mut context) {
            break answer;
        }
    };
    assert!(answer.expect("ended").is_empty());

    // A caller that has gone keeps no task.
    let mut waiting = Box::pin(queue.lease(lease, Duration::MAX));
    while queue.queue(&b).wait().expect("a view").waiting == 0 {
        assert!(waiting.as_mut().poll(&mut context).is_pending());
    }
    queue.put(Put::new(&a, key("k"))).wait().expect("put");
    queue.put(Put::new(&b, key("k"))).wait().expect("put");
    drop(waiting);
    for of in [&a, &b] {
        while queue.get(Get::new(of, key("k"))).wait().expect("live").state != State::Ready {
            std::thread::yield_now();
        }
        assert_eq!(queue.get(Get::new(of, key("k"))).wait().expect("live").attempt, 0);
    }
}

#[test]
fn tasks_that_are_given_back_go_to_their_shards() {
    let queue = queue(4);
    for name in names() {
        queue.put(Put::new(&name, key("k"))).wait().expect("put");
    }
    let all = Lease::of(names()).max(16);
    let leased = queue.lease(all.clone(), Duration::ZERO).wait().expect("leased");
    assert_eq!(leased.len(), 16);
    queue.give_back(leased.iter().map(|leased| leased.token).collect());
    let again = queue.lease(all, Duration::ZERO).wait().expect("leased");
    assert_eq!(again.len(), 16);
    assert!(again.iter().all(|leased| leased.attempt == 1));
}

#[test]
fn a_virtual_clock_passes_the_instants_of_all_shards_in_their_order() {
    let queue = queue(4);
    let start = queue.now();
    for (n, name) in names().iter().enumerate() {
        let after = Duration::from_secs(100 - 3 * n as u64);
        queue.put(Put::new(name, key("k")).after(after)).wait().expect("put");
    }
    for n in (0..16_u64).rev() {
        let fired = queue.advance_to_next(Timestamp::MAX).wait().expect("moved");
        assert_eq!(fired.ms_since(start), 1_000 * (100 - 3 * n));
        let leased = queue.lease(Lease::of(names()).max(16), Duration::ZERO).wait().expect("leased");
        assert_eq!(keys(&leased), [format!("q{n}/k")]);
        let ack = Ack::new(&leased[0].queue, [leased[0].token]);
        queue.ack(ack).wait().expect("acked");
    }
    let end = queue.advance(Duration::from_secs(3_600)).wait().expect("moved");
    assert_eq!(end, queue.now());
}

#[test]
fn lists_and_sums_are_those_of_all_shards() {
    let (one, four) = (queue(1), queue(4));
    for queue in [&one, &four] {
        for (n, name) in names().iter().enumerate() {
            for k in 0..=n {
                let put = Put::new(name, key(&k.to_string())).after(Duration::from_secs(60 * k as u64));
                queue.put(put).wait().expect("put");
            }
            let settings = QueueSettings { max_in_flight: Some(n as u64 + 1), ..QueueSettings::default() };
            let change = QueueChange::Settings(settings);
            queue.change_queue(ChangeQueue { queue: name.clone(), change }).wait().expect("changed");
            let target = TargetRecord { value: name.as_str().as_bytes().into(), retry: None };
            queue.change_target(name, Some(target)).wait().expect("changed");
            let hourly = std::sync::Arc::new(Schedule::new(Cadence::Every { ms: 3_600_000 }));
            let schedule = ScheduleName::new("hourly").expect("a name");
            queue.put_schedule(PutSchedule::new(name, schedule, hourly)).wait().expect("put");
        }
    }
    // Queues, page by page.
    for max in [1, 3, 500] {
        let pages = |queue: &Queue| {
            let mut found = Vec::new();
            let mut list = ListQueues { max, ..ListQueues::default() };
            loop {
                let page = queue.queues(list.clone()).wait().expect("a page");
                assert!(page.queues.len() <= max);
                found.extend(page.queues.iter().map(|counts| (counts.queue.clone(), counts.scheduled)));
                let Some(next) = page.next else { return found };
                list.after = Some(next);
            }
        };
        assert_eq!(pages(&four), pages(&one), "pages of {max}");
    }
    // Schedules, page by page.
    let schedules = |queue: &Queue| {
        let mut found = Vec::new();
        let mut list = ListAllSchedules { prefix: "".into(), after: None, max: 5 };
        loop {
            let page = queue.all_schedules(list.clone()).wait().expect("a page");
            found.extend(page.iter().map(|view| (view.queue.clone(), view.name.clone())));
            if page.len() < 5 {
                return found;
            }
            list.after = found.last().cloned();
        }
    };
    assert_eq!(schedules(&four), schedules(&one));
    assert_eq!(
        four.targets().wait().expect("targets").iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(),
        one.targets().wait().expect("targets").iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    );
    let grid = Grid::Even { width_ms: 60_000, buckets: 20 };
    let forecast = |queue: &Queue| {
        let forecast = Forecast { queue: None, from: None, grid: grid.clone() };
        queue.forecast(forecast).wait().expect("a forecast")
    };
    assert_eq!((forecast(&four).from, forecast(&four).counts), (forecast(&one).from, forecast(&one).counts));
    assert_eq!(four.wheel().wait().expect("a wheel").tasks, one.wheel().wait().expect("a wheel").tasks);
    let sums = |queue: &Queue| {
        let stats = queue.stats(ListQueues { max: 2, ..ListQueues::default() }).wait().expect("figures");
        (stats.scheduled_total, stats.added_total, stats.schedules, stats.page.queues.len())
    };
    assert_eq!(sums(&four), sums(&one));
    // All tasks, page by page: each one once, whatever the order of the shards.
    let tasks = |queue: &Queue| {
        let mut found = Vec::new();
        let mut list = ListAllTasks { max: 7, after: None };
        loop {
            let page = queue.all_tasks(list.clone()).wait().expect("a page");
            found.extend(page.tasks.iter().map(|task| (task.queue.clone(), task.key.clone(), task.due_at)));
            let Some(next) = page.next else { break };
            list.after = Some(next);
        }
        found.sort();
        found
    };
    assert_eq!(tasks(&four), tasks(&one));
    // Leases, page by page.
    for queue in [&one, &four] {
        assert_eq!(
            queue
                .lease(Lease::of(names()).max(64), tickwheel_testing::HANG_TIME)
                .wait()
                .expect("leased")
                .len(),
            16
        );
    }
    let leases = |queue: &Queue| {
        let mut found = Vec::new();
        let mut list = ListLeases { queue: None, worker: None, after: None, max: 3 };
        loop {
            let page = queue.leases(list.clone()).wait().expect("a page");
            found.extend(page.leases.iter().map(|lease| lease.queue.clone()));
            let Some(next) = page.next else { break };
            list.after = Some(next);
        }
        found.sort();
        found
    };
    assert_eq!(leases(&four), leases(&one));
    let beyond = tickwheel_queue::TaskCursor::before(9, Timestamp::EPOCH);
    let page = four.all_tasks(ListAllTasks { max: 7, after: Some(beyond) }).wait().expect("a page");
    assert!(page.tasks.is_empty() && page.next.is_none(), "a cursor of another data set");
}

#[test]
fn jobs_are_in_one_shard() {
    let queue = queue(4);
    let first = queue.begin_job(b"a".as_slice()).wait().expect("begun");
    let second = queue.begin_job(b"b".as_slice()).wait().expect("begun");
    assert!(second > first);
    queue.keep_job(first, b"c".as_slice()).wait().expect("kept");
    assert_eq!(queue.jobs().wait().expect("jobs").len(), 2);
    queue.forget_job(first).wait().expect("forgotten");
    assert_eq!(queue.jobs().wait().expect("jobs").len(), 1);
}

#[test]
fn an_import_goes_to_all_shards_and_ends_before_the_first_task_that_is_refused() {
    let queue = queue(4);
    let task = |name: &QueueName, k: &str| ImportTask {
        id: 0,
        queue: name.clone(),
        key: key(k),
        due_at: queue.now(),
        put_at: Timestamp::EPOCH,
        priority: 1024,
        attempts: 2,
        body: std::sync::Arc::new(Body::bytes(*b"1")),
        extra: Extra::default(),
    };
    let import =
        |tasks, existing| ImportTasks { tasks, existing, on_lease: OnLease::Refuse, ids_below: None };
    let tasks: Vec<_> = names().iter().map(|name| task(name, "k")).collect();
    let imported = queue.import(import(tasks, Existing::Refuse)).wait().expect("imported");
    assert_eq!((imported.outcomes.len(), imported.refused), (16, None));
    let mut tasks: Vec<_> = names().iter().map(|name| task(name, "other")).collect();
    tasks[5] = task(&names()[5], "k");
    let imported = queue.import(import(tasks.clone(), Existing::Refuse)).wait().expect("imported");
    assert_eq!(imported.outcomes.len(), 5, "the tasks before the refused one");
    assert!(matches!(imported.refused, Some(ImportError::Live { .. })), "{:?}", imported.refused);
    for (n, name) in names().iter().enumerate() {
        let is_there = queue.get(Get::new(name, key("other"))).wait().is_ok();
        assert_eq!(is_there, n < 5, "none behind the refused one: {name}");
    }
    let imported = queue.import(import(tasks, Existing::Skip)).wait().expect("imported");
    let added = |outcome: &&ImportOutcome| matches!(outcome, ImportOutcome::Added { .. });
    assert_eq!(imported.outcomes.iter().filter(added).count(), 10);
    // All shards keep the ids below the bound free, also those that get no task at first.
    let young = self::queue(4);
    let with_id = |id: u64, name: &QueueName| ImportTask { id, ..task(name, "k") };
    let (a, b) = two_queues(&young);
    let id_of = |name: &QueueName| u64::from(young.shard_of(name).number()) + 40;
    let first = ImportTasks { ids_below: Some(100), ..import(vec![with_id(id_of(&a), &a)], Existing::Skip) };
    let kept = [ImportOutcome::Added { kept_id: true }];
    assert_eq!(young.import(first).wait().expect("imported").outcomes, kept);
    young.put(Put::new(&b, key("other"))).wait().expect("put");
    let second = ImportTasks { ids_below: Some(100), ..import(vec![with_id(id_of(&b), &b)], Existing::Skip) };
    assert_eq!(young.import(second).wait().expect("imported").outcomes, kept);
    let nothing = queue.import(import(Vec::new(), Existing::Refuse)).wait().expect("imported");
    assert_eq!((nothing.outcomes.len(), nothing.refused), (0, None));
}

#[test]
fn a_closed_queue_has_closed_all_shards() {
    let queue = queue(4);
    let (a, b) = two_queues(&queue);
    let waiting = queue.lease(Lease::of([a.clone(), b.clone()]), Duration::MAX);
    queue.close();
    // The call came before the stop or after it.
    assert!(waiting.wait().map_or(true, |leased| leased.is_empty()));
    for of in [&a, &b] {
        assert!(queue.put(Put::new(of, key("k"))).wait().is_err());
    }
    assert!(!queue.health().ready);
}

/// The real clock has one thread for each shard, as far as there are processors.
#[test]
fn shards_on_several_threads_serve_many_callers() {
    let queue = Queue::options().shards(7).open_memory().expect("open");
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let queue = queue.clone();
            scope.spawn(move || {
                for n in 0..50 {
                    for name in names() {
                        let put = Put::new(&name, key(&format!("{caller}-{n}")));
                        queue.put(put).wait().expect("put");
                    }
                }
            });
        }
        for _ in 0..2 {
            let queue = queue.clone();
            scope.spawn(move || {
                loop {
                    let leased = queue
                        .lease(Lease::of(names()).max(32), tickwheel_testing::HANG_TIME)
                        .wait()
                        .expect("leased");
                    assert!(!leased.is_empty(), "a wait of a minute ended");
                    let mut by_queue: BTreeMap<QueueName, Vec<_>> = BTreeMap::new();
                    let ends = leased.iter().filter(|leased| leased.key.as_str().starts_with("end"));
                    let mut ends: Vec<_> = ends.map(|leased| leased.token).collect();
                    if ends.pop().is_some() {
                        // An end is for one worker.
                        queue.give_back(ends);
                        return;
                    }
                    for leased in &leased {
                        by_queue.entry(leased.queue.clone()).or_default().push(leased.token);
                    }
                    for (name, tokens) in by_queue {
                        let answers = queue.ack(Ack::new(&name, tokens)).wait().expect("acked");
                        assert!(answers.iter().all(|answer| *answer == TokenAnswer::Acked));
                    }
                    let stats = queue.stats(ListQueues::default()).wait().expect("figures");
                    if stats.acked_total == 4 * 50 * 16 {
                        // One for each worker.
                        for end in ["end-0", "end-1"] {
                            // The other worker may have seen the same total.
                            let _leased = queue.put(Put::new(&names()[0], key(end))).wait();
                        }
                    }
                }
            });
        }
    });
    let stats = queue.stats(ListQueues::default()).wait().expect("figures");
    assert_eq!(stats.acked_total, 4 * 50 * 16, "each task is acked once");
}

#[derive(Clone, Debug)]
enum Op {
    Put { queue: usize, key: u8, after_s: u64, priority: u32 },
    Cancel { queue: usize, key: u8 },
    Lease { queues: Vec<usize>, max: usize },
    AckFirst,
    NackFirst,
    GiveBackFirst,
    Advance { s: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let queue = 0..16_usize;
    prop_oneof![
        4 => (queue.clone(), 0..4_u8, 0..20_u64, 0..3_u32)
            .prop_map(|(queue, key, after_s, priority)| Op::Put { queue, key, after_s, priority }),
        1 => (queue.clone(), 0..4_u8).prop_map(|(queue, key)| Op::Cancel { queue, key }),
        4 => (prop::collection::vec(queue, 1..8), 1..6_usize)
            .prop_map(|(queues, max)| Op::Lease { queues, max }),
        2 => Just(Op::AckFirst),
        1 => Just(Op::NackFirst),
        1 => Just(Op::GiveBackFirst),
        2 => (1..15_u64).prop_map(|s| Op::Advance { s }),
    ]
}

/// Makes the calls, and returns what a caller sees, without ids, tokens and versions.
fn seen(queue: &Queue, ops: &[Op]) -> Vec<String> {
    let names = names();
    let mut hands: Vec<Leased> = Vec::new();
    let mut seen = Vec::new();
    for (nth, op) in (0..).zip(ops) {
        seen.push(match op {
            Op::Put { queue: of, key: k, after_s, priority } => {
                let after = Duration::from_secs(*after_s) + Duration::from_millis(nth);
                let mut put = Put::new(&names[*of], key(&k.to_string())).after(after);
                put.terms.priority = *priority;
                match queue.put(put).wait() {
                    Ok(stored) => format!("created {} due {}", stored.created, stored.task.due_at),
                    Err(error) => error.to_string().split(['(', ':']).next().unwrap_or_default().to_owned(),
                }
            }
            Op::Cancel { queue: of, key: k } => {
                format!("{}", queue.cancel(Cancel::new(&names[*of], key(&k.to_string()))).wait().is_ok())
            }
            Op::Lease { queues, max } => {
                let of: Vec<QueueName> = queues.iter().map(|of| names[*of].clone()).collect();
                let leased = queue.lease(Lease::of(of).max(*max), Duration::ZERO).wait().expect("leased");
                let told: Vec<_> = leased
                    .iter()
                    .map(|leased| (leased.queue.clone(), leased.key.clone(), leased.attempt, leased.due_at))
                    .collect();
                hands.extend(leased);
                // The put that came first goes first among equals, but two shards cannot compare their puts.
                let mut told: Vec<String> = told.iter().map(|told| format!("{told:?}")).collect();
                told.sort();
                format!("{told:?}")
            }
            Op::AckFirst | Op::NackFirst | Op::GiveBackFirst if hands.is_empty() => String::new(),
            Op::AckFirst => {
                let leased = hands.remove(0);
                format!("{:?}", queue.ack(Ack::new(&leased.queue, [leased.token])).wait().expect("answered"))
            }
            Op::NackFirst => {
                let leased = hands.remove(0);
                let nack = Nack::new(&leased.queue, [leased.token]);
                format!("{:?}", queue.nack(nack).wait().expect("answered").len())
            }
            Op::GiveBackFirst => {
                queue.give_back(vec![hands.remove(0).token]);
                String::new()
            }
            Op::Advance { s } => {
                format!("{}", queue.advance(Duration::from_secs(*s)).wait().expect("moved"))
            }
        });
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn several_shards_answer_as_one(ops in prop::collection::vec(op(), 1..60), shards in 2..6_u32) {
        // Tasks with one due time and one priority have an order only within a shard. Here each put has a due time of its own: the puts
        // are whole seconds apart, and each adds its place in the list (ms).
        let ops: Vec<Op> = ops
            .into_iter()
            .flat_map(|op| [op, Op::Advance { s: 1 }])
            .collect();
        prop_assert_eq!(seen(&queue(shards), &ops), seen(&queue(1), &ops));
    }
}
