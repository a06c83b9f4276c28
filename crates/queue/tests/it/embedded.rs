//! The embedded queue as a program uses it: over a directory, from many threads, waited for and awaited.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tickwheel_queue::{
    Ack, AdvanceError, Cadence, Cancel, CancelError, Cancelled, Extend, Get, Key, Lease, List, ListQueues,
    Nack, OpenError, Patch, Put, PutError, PutSchedule, Queue, QueueName, Retry, Schedule, ScheduleError,
    ScheduleName, State, StoreError, TARGET_BYTES_MAX, TargetRecord, Timestamp, TokenAnswer, Unavailable,
    VIRTUAL_END_MS,
};

fn name(name: &str) -> QueueName {
    QueueName::new(name).expect("a good name")
}

fn key(key: &str) -> Key {
    Key::new(key).expect("a good key")
}

/// A virtual clock, so that no test waits.
const HOUR_MS: u64 = 3_600_000;

fn open(directory: &Path) -> Queue {
    Queue::options().virtual_clock().open(directory).expect("a fresh directory opens")
}

fn put(queue: &Queue, line: &QueueName, text: &str, delay_ms: u64) {
    let put =
        Put::new(line, key(text)).after(Duration::from_millis(delay_ms)).payload(text.as_bytes().to_vec());
    queue.put(put).wait().expect("taken");
}

fn keys(queue: &Queue, line: &QueueName) -> Vec<String> {
    let leased = queue.lease(Lease::new(line).max(1_000), Duration::ZERO).wait().expect("open");
    leased.into_iter().map(|leased| leased.key.as_str().to_owned()).collect()
}

/// A future is polled by hand: no executor, no timer.
struct Unparker(std::thread::Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unparker(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn what_was_put_is_there_after_closing_and_opening_again() {
    let directory = tempfile::tempdir().expect("a place for files");
    let close = name("close");
    let queue = open(directory.path());
    // A virtual clock goes on from the time of the machine, if that is later than its own. So a slow machine must not make them due.
    put(&queue, &close, "a", HOUR_MS);
    put(&queue, &close, "b", 2 * HOUR_MS);
    put(&queue, &close, "c", 3 * HOUR_MS);
    assert_eq!(queue.cancel(Cancel::new(&close, key("b"))).wait(), Ok(Cancelled::Cancelled));
    queue.close();

    let queue = open(directory.path());
    assert!(queue.health().ready);
    let task = queue.get(Get::new(&close, key("a"))).wait().expect("there");
    assert_eq!((task.state, task.body.payload.as_slice()), (State::Scheduled, b"a".as_slice()));
    assert_eq!(queue.cancel(Cancel::new(&close, key("b"))).wait(), Err(CancelError::NotFound));
    queue.advance(Duration::from_millis(5 * HOUR_MS)).wait().expect("virtual");
    assert_eq!(keys(&queue, &close), ["a", "c"]);
}

#[test]
fn done_is_remembered_over_a_restart() {
    let directory = tempfile::tempdir().expect("a place for files");
    let close = name("close");
    let queue = open(directory.path());
    put(&queue, &close, "a", 0);
    queue.advance(Duration::from_millis(1)).wait().expect("virtual");
    let leased = queue.lease(Lease::new(&close), Duration::ZERO).wait().expect("open");
    assert_eq!(queue.ack(Ack::new(&close, [leased[0].token])).wait(), Ok(vec![TokenAnswer::Acked]));
    drop(queue);
    let queue = open(directory.path());
    assert_eq!(queue.cancel(Cancel::new(&close, key("a"))).wait(), Err(CancelError::Done));
}

#[test]
fn a_lease_goes_on_over_a_graceful_close() {
    let directory = tempfile::tempdir().expect("a place for files");
    let close = name("close");
    let queue = open(directory.path());
    put(&queue, &close, "a", 0);
    queue.advance(Duration::from_millis(1)).wait().expect("virtual");
    let lease = Lease::new(&close).lasting(Duration::from_secs(3_600));
    let leased = queue.lease(lease, Duration::ZERO).wait().expect("open");
    let token = leased[0].token;
    queue.close();
    let queue = open(directory.path());
    assert_eq!(keys(&queue, &close), Vec::<String>::new());
    let extended = queue.extend(Extend::new(&close, [token], Duration::from_secs(60))).wait();
    assert_eq!(extended, Ok(vec![TokenAnswer::Extended]));
    assert_eq!(queue.ack(Ack::new(&close, [token])).wait(), Ok(vec![TokenAnswer::Acked]));
}

#[test]
fn a_second_owner_of_a_directory_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a place for files");
    let _queue = open(directory.path());
    let refused = Queue::options().virtual_clock().open(directory.path()).expect_err("it is taken");
    assert!(matches!(refused, OpenError::Store(StoreError::Locked { .. })), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(&directory.path().display().to_string()), "{text}");
}

#[test]
fn a_directory_belongs_to_one_kind_of_clock() {
    let directory = tempfile::tempdir().expect("a place for files");
    drop(open(directory.path()));
    let refused = Queue::open(directory.path()).expect_err("it lives by a virtual clock");
    assert!(matches!(refused, OpenError::Store(StoreError::WrongClock { .. })), "{refused:?}");
}

#[test]
fn a_virtual_clock_goes_on_where_it_was() {
    let directory = tempfile::tempdir().expect("a place for files");
    let queue = open(directory.path());
    let far = queue.advance(Duration::from_secs(400 * 86_400)).wait().expect("virtual");
    queue.close();
    let queue = open(directory.path());
    assert_eq!(queue.now(), far);
}

#[test]
fn advance_answers_when_all_that_fell_due_is_ready() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let confirm = name("confirm");
    for n in 0..2_500_u64 {
        put(&queue, &confirm, &format!("order:{n}"), n * 500_000);
    }
    queue.advance(Duration::from_secs(15 * 86_400)).wait().expect("virtual");
    let counts = queue.queues(ListQueues::default()).wait().expect("open").queues;
    assert_eq!((counts[0].scheduled, counts[0].ready), (0, 2_500));
    let stats = queue.stats(ListQueues::default()).wait().expect("open");
    assert_eq!(stats.lateness[0], 2_500, "each became ready at its own instant: {:?}", stats.lateness);
}

#[test]
fn the_next_instant_is_where_something_falls_due() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let (line, start) = (name("q"), queue.now());
    put(&queue, &line, "a", 10_000_000);
    put(&queue, &line, "b", 20_000_000);
    let end = start.plus_ms(15_000_000).expect("in range");
    assert_eq!(queue.advance_to_next(end).wait(), Ok(start.plus_ms(10_000_000).expect("in range")));
    assert_eq!(queue.advance_to_next(end).wait(), Ok(end), "nothing more until then");
    assert_eq!(keys(&queue, &line), ["a"]);
}

#[test]
fn a_real_clock_is_not_moved_by_hand_and_a_virtual_one_not_beyond_time() {
    let real = Queue::options().open_memory().expect("memory");
    assert_eq!(real.advance(Duration::from_secs(1)).wait(), Err(AdvanceError::NotVirtual));
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let refused = queue.advance(Duration::from_secs(u64::MAX)).wait();
    assert!(matches!(refused, Err(AdvanceError::TooFar { .. })), "{refused:?}");
    let beyond = Timestamp::from_ms(VIRTUAL_END_MS + 1).expect("in range");
    let refused = queue.advance_to_next(beyond).wait();
    assert!(matches!(refused, Err(AdvanceError::TooFar { .. })), "{refused:?}");
}

#[test]
fn answers_can_be_awaited_on_any_executor() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let line = name("q");
    block_on(async {
        let stored =
            queue.put(Put::new(&line, key("a")).after(Duration::from_secs(60))).await.expect("taken");
        assert!(stored.created);
        let moved =
            queue.patch(Patch::new(&line, key("a")).after(Duration::from_secs(1))).await.expect("live");
        assert_eq!(moved.id, stored.task.id);
        queue.advance(Duration::from_secs(1)).await.expect("virtual");
        let leased = queue.lease(Lease::new(&line), Duration::from_secs(60)).await.expect("open");
        let back = queue.nack(Nack::new(&line, [leased[0].token]).after(Duration::from_secs(5))).await;
        assert_eq!(back, Ok(vec![TokenAnswer::Nacked]));
    });
}

#[test]
fn a_waiting_lease_wakes_for_a_put_of_another_thread() {
    let queue = Queue::options().open_memory().expect("memory");
    let line = name("q");
    let waiting = queue.lease(Lease::new(&line), Duration::from_secs(60));
    std::thread::scope(|scope| {
        scope.spawn(|| queue.put(Put::new(&line, key("a"))).wait().expect("taken"));
        assert_eq!(waiting.wait().expect("open")[0].key, key("a"));
    });
}

#[test]
fn a_task_falls_due_on_the_real_clock_and_never_early() {
    let queue = Queue::options().open_memory().expect("memory");
    let line = name("q");
    let stored = queue.put(Put::new(&line, key("a")).after(Duration::from_millis(30))).wait().expect("taken");
    let leased = queue.lease(Lease::new(&line), Duration::from_secs(60)).wait().expect("open");
    assert!(queue.now() >= stored.task.due_at);
    assert!(leased[0].ready_at >= stored.task.due_at);
}

#[test]
fn a_wait_ends_empty_when_its_time_is_over() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let leased = queue.lease(Lease::new(&name("q")), Duration::from_millis(5)).wait();
    assert_eq!(leased, Ok(vec![]), "waits are real time, also beside a virtual clock");
}

#[test]
fn a_wait_that_is_ended_is_answered() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let waiting = queue.lease(Lease::new(&name("q")), Duration::MAX);
    waiting.end_wait();
    assert_eq!(waiting.wait(), Ok(vec![]));
    let line = name("q");
    let waiting = queue.lease(Lease::new(&line), Duration::MAX);
    put(&queue, &line, "a", 0);
    queue.advance(Duration::from_millis(1)).wait().expect("virtual");
    waiting.end_wait();
    assert_eq!(waiting.wait().expect("open").len(), 1, "what it was given it has");
}

#[test]
fn a_dropped_lease_gives_back_what_it_was_granted() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let line = name("q");
    drop(queue.lease(Lease::new(&line), Duration::from_secs(60)));
    put(&queue, &line, "a", 0);
    queue.advance(Duration::from_millis(1)).wait().expect("virtual");
    let granted = queue.lease(Lease::new(&line), Duration::ZERO);
    // The next call is answered after the lease was granted, and the grant is dropped unseen.
    queue.stats(ListQueues::default()).wait().expect("open");
    drop(granted);
    let leased = queue.lease(Lease::new(&line), Duration::from_secs(60)).wait().expect("open");
    assert_eq!((leased[0].key.as_str(), leased[0].attempt), ("a", 1));
}

#[test]
fn after_closing_every_call_is_refused_and_waits_end() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let line = name("q");
    let waiting = queue.lease(Lease::new(&line), Duration::from_secs(60));
    queue.close();
    assert_eq!(waiting.wait(), Ok(vec![]));
    let refused = queue.put(Put::new(&line, key("a"))).wait();
    assert_eq!(refused, Err(PutError::Unavailable(Unavailable::Closed)));
    assert_eq!(
        queue.advance(Duration::from_secs(1)).wait(),
        Err(AdvanceError::Unavailable(Unavailable::Closed))
    );
    assert!(!queue.health().ready);
    queue.close();
}

#[test]
fn many_threads_share_one_queue_and_lose_nothing() {
    let directory = tempfile::tempdir().expect("a place for files");
    let queue = open(directory.path());
    let line = name("q");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (queue, line) = (queue.clone(), line.clone());
            scope.spawn(move || {
                let pending: Vec<_> = (0..100)
                    .map(|n| {
                        queue.put(
                            Put::new(&line, key(&format!("{thread}-{n}")))
                                .after(Duration::from_secs(1_000 + n)),
                        )
                    })
                    .collect();
                pending.into_iter().for_each(|pending| drop(pending.wait().expect("taken")));
            });
        }
    });
    drop(queue);
    let queue = open(directory.path());
    assert_eq!(queue.queues(ListQueues::default()).wait().expect("open").queues[0].scheduled, 800);
    let mut seen = 0;
    let mut after = None;
    loop {
        let page = queue.list(List { max: 64, after, ..List::new(&line) }).wait().expect("open");
        seen += page.tasks.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, 800);
    let all =
        queue.list(List { max: usize::MAX, ..List::new(&line) }).wait().expect("as many as a page takes");
    assert_eq!(all.tasks.len(), 800);
}

#[test]
fn far_tasks_are_found_and_fire_when_the_horizon_reaches_them() {
    let directory = tempfile::tempdir().expect("a place for files");
    let queue = Queue::options()
        .virtual_clock()
        .horizon(Duration::from_secs(1))
        .open(directory.path())
        .expect("opens");
    let line = name("q");
    for n in 0..50 {
        put(&queue, &line, &format!("{n:02}"), 10_000 + n * 997);
    }
    let moved = Patch::new(&line, key("49")).after(Duration::from_secs(5));
    queue.patch(moved).wait().expect("a far task is found by its key");
    queue.advance(Duration::from_secs(100)).wait().expect("virtual");
    let order: Vec<String> = std::iter::once(49).chain(0..49).map(|n| format!("{n:02}")).collect();
    assert_eq!(keys(&queue, &line), order);
    assert_eq!(queue.stats(ListQueues::default()).wait().expect("open").lateness[0], 50);
}

#[test]
fn a_wait_for_ever_is_a_wait() {
    let queue = Queue::options().open_memory().expect("memory");
    let line = name("q");
    let waiting = queue.lease(Lease::new(&line), Duration::MAX);
    put(&queue, &line, "a", 0);
    assert_eq!(waiting.wait().expect("open")[0].key, key("a"));
}

#[test]
fn a_directory_whose_log_is_gone_is_refused() {
    let directory = tempfile::tempdir().expect("a place for files");
    let queue = open(directory.path());
    put(&queue, &name("q"), "a", 1_000);
    queue.close();
    let shard = directory.path().join("shard-0000");
    for file in std::fs::read_dir(&shard).expect("there").flatten() {
        std::fs::remove_file(file.path()).expect("there");
    }
    let refused = Queue::options().virtual_clock().open(directory.path()).expect_err("its tasks are gone");
    assert!(matches!(refused, OpenError::Store(StoreError::Corrupt { .. })), "{refused:?}");
    assert!(refused.to_string().contains("newest-log"), "{refused}");
}

/// Other systems know tasks by the instance and the id, so a restart or a restored backup must not change the instance.
#[test]
fn a_directory_and_its_copies_have_one_instance_and_another_directory_has_another() {
    let base = tempfile::tempdir().expect("a directory");
    let at = |name: &str| base.path().join(name);
    let queue = Queue::open(at("one")).expect("it opens");
    let instance = queue.instance();
    queue.put(Put::without_key(&QueueName::new("q").expect("a name"))).wait().expect("taken");
    queue.backup(at("copy")).expect("copied");
    queue.close();
    for name in ["one", "copy"] {
        assert_eq!(Queue::open(at(name)).expect("it opens").instance(), instance, "{name}");
    }
    assert_ne!(Queue::open(at("other")).expect("it opens").instance(), instance);
}

/// A target is durable like a task: it survives a restart, and a backup has it.
#[test]
fn a_target_survives_a_restart_and_a_backup() {
    let base = tempfile::tempdir().expect("a directory");
    let at = |name: &str| base.path().join(name);
    let name = QueueName::new("q").expect("a name");
    let retry = Some(Retry { max_attempts: Some(3), backoff: None });
    let target = TargetRecord { value: vec![7; TARGET_BYTES_MAX].into(), retry };
    let queue = Queue::open(at("one")).expect("it opens");
    queue.change_target(&name, Some(target.clone())).wait().expect("taken");
    queue.backup(at("copy")).expect("copied");
    queue.close();
    for place in ["one", "copy"] {
        let queue = Queue::open(at(place)).expect("it opens");
        let targets = queue.targets().wait().expect("read");
        assert_eq!(targets, [(name.clone(), target.clone().into())], "{place}");
        assert_eq!(queue.queue(&name).wait().expect("shown").target.as_deref(), Some(&target));
    }
}

#[test]
fn a_cron_expression_that_means_nothing_is_refused_with_its_character() {
    let queue = Queue::options().virtual_clock().open_memory().expect("memory");
    let put = |text: &str| {
        let cadence = Cadence::Cron { text: text.into(), zone: "UTC".into() };
        let put = PutSchedule::new(
            &name("q"),
            ScheduleName::new("s").expect("a name"),
            Arc::new(Schedule::new(cadence)),
        );
        queue.put_schedule(put).wait()
    };
    let refused = put("5,, * * * *").expect_err("an empty element");
    let why = "`5,, * * * *` is no cron expression: minute, character 3: there is nothing between two commas, or at the end of the list";
    assert_eq!(refused, ScheduleError::Cadence { why: why.into() });
    assert!(put("5 * * * *").expect("a good one").created);
}
