//! Puts and cancels in the transactions of users become tasks, on a real PostgreSQL: each committed one exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tickwheel_postgres::{ClusterClock, Plan, PostgresOptions};
use tickwheel_queue::{
    Ack, Get, GetError, Key, Lease, Leased, Notice, Options, Queue, QueueName, TaskView, TokenAnswer,
};

use crate::kit::Database;

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).expect("a name")
}

fn open_with(options: Options, database: &Database<'_>, shards: u32) -> Queue {
    let plan = Plan { shards: Some(shards), clock: ClusterClock::Real, lease_ms: 1_000, migrates: true };
    let postgres = PostgresOptions { plan, ..PostgresOptions::new(database.url()) };
    options.open_shards(postgres.connect().expect("the database takes the process")).expect("it opens")
}

fn open(database: &Database<'_>, shards: u32) -> Queue {
    open_with(Queue::options(), database, shards)
}

fn lease(queue: &Queue, queues: &[&str], max: usize, wait: Duration) -> Vec<Leased> {
    let queues: Vec<QueueName> = queues.iter().map(|queue| name(queue)).collect();
    let lease = Lease {
        queues: queues.into(),
        max,
        lease_ms: Some(60_000),
        wait: false,
        worker: None,
        for_target: false,
    };
    queue.lease(lease, wait).wait().unwrap_or_default()
}

/// Waits for the next task of the queue, and acks it. Returns its key.
fn next(queue: &Queue, of: &str) -> String {
    let leased = lease(queue, &[of], 1, tickwheel_testing::HANG_TIME).pop().expect("a task comes");
    let acked = queue.ack(Ack::new(&name(of), [leased.token])).wait().expect("acked");
    assert_eq!(acked, [TokenAnswer::Acked]);
    leased.key.as_str().to_owned()
}

fn get(queue: &Queue, of: &str, key: &str) -> Result<TaskView, GetError> {
    queue.get(Get::new(&name(of), Key::new(key).expect("a key"))).wait()
}

/// Waits until the condition holds.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "another process gives no event to wait for")]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "timeout: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn rows(database: &Database<'_>) -> String {
    database.psql("SELECT count(*) FROM tickwheel.inbox")
}

#[test]
fn a_task_is_there_exactly_if_its_transaction_committed() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 3);
    let mut user = database.session("postgres");
    user.run("BEGIN; SELECT tickwheel.put('q', 'rolled back', now()); ROLLBACK");
    user.run("BEGIN; SELECT tickwheel.put('q', 'kept', now(), '{\"order\": 1}')");
    assert!(lease(&queue, &["q"], 1, Duration::from_millis(300)).is_empty(), "nothing has committed");
    user.run("COMMIT");
    let leased = lease(&queue, &["q"], 9, tickwheel_testing::HANG_TIME);
    assert_eq!(leased.len(), 1, "{leased:?}");
    assert_eq!((leased[0].key.as_str(), leased[0].attempt), ("kept", 1));
    assert_eq!(
        (&leased[0].body.payload[..], &*leased[0].body.content_type),
        (&b"{\"order\": 1}"[..], "application/json")
    );
    assert_eq!(rows(&database), "0", "the row went with the commit");
    assert!(get(&queue, "q", "rolled back").is_err());
}

#[test]
fn due_times_are_kept_to_the_millisecond_and_the_past_is_now() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 1);
    let far = "timestamptz '2100-01-01 00:00:00.123456Z'";
    database.psql(&format!("SELECT tickwheel.put('q', 'far', {far}, 'text', 'text/plain')"));
    database.psql("SELECT tickwheel.put('q', 'past', '1999-01-01Z'), tickwheel.put('q', 'oldest', 'epoch')");
    assert_eq!([next(&queue, "q"), next(&queue, "q")], ["oldest", "past"], "in the order of their due times");
    until("the far task is there", || get(&queue, "q", "far").is_ok());
    let task = get(&queue, "q", "far").expect("it is there");
    let ms: i64 = 4_102_444_800_124;
    assert_eq!((task.due_at.as_ms(), &task.body.payload[..]), (ms, &b"text"[..]), "rounded up");
    // The answer of the heartbeat may be under way, so the clock of the process can be behind that of the database, but never before it.
    let due = database.psql(
        "SELECT ceil(extract(epoch FROM due) * 1000)::int8
         FROM (SELECT clock_timestamp() + interval '300 ms') d(due), tickwheel.put('q', 'soon', due)",
    );
    let leased = lease(&queue, &["q"], 1, tickwheel_testing::HANG_TIME).pop().expect("it comes");
    assert_eq!(leased.due_at.as_ms().to_string(), due);
    assert!(leased.ready_at >= leased.due_at);
    let now: i64 = database
        .psql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8")
        .parse()
        .expect("a number");
    assert!(now >= leased.due_at.as_ms(), "it was early: {now} < {due}");
}

#[test]
fn a_cancel_removes_a_task_and_what_was_put_before_it_in_the_same_transaction() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 2);
    database.psql("SELECT tickwheel.put('q', 'a', now() + interval '1 day')");
    until("the task is there", || get(&queue, "q", "a").is_ok());
    database.psql("SELECT tickwheel.cancel('q', 'a')");
    until("the task is gone", || get(&queue, "q", "a").is_err());
    database.psql(
        "BEGIN; SELECT tickwheel.put('q', 'b', now()), tickwheel.cancel('q', 'b'), tickwheel.cancel('q', 'no task');
         SELECT tickwheel.put('q', 'c', now(), '1'), tickwheel.put('q', 'c', now(), '2'); COMMIT",
    );
    let leased = lease(&queue, &["q"], 9, tickwheel_testing::HANG_TIME).pop().expect("it comes");
    assert_eq!((leased.key.as_str(), &leased.body.payload[..]), ("c", &b"2"[..]), "the last put counts");
    // A worker has begun, so the cancel comes too late, and is done all the same.
    database.psql("SELECT tickwheel.cancel('q', 'c')");
    until("all rows are taken", || rows(&database) == "0");
    assert_eq!(queue.ack(Ack::new(&name("q"), [leased.token])).wait(), Ok(vec![TokenAnswer::Acked]));
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox_refused"), "0");
}

/// The numbers of rows are given out before their transactions commit. The owner is held in the middle of the commit for the later row, and
/// the earlier row appears meanwhile.
#[test]
fn transactions_that_commit_out_of_the_order_of_their_ids_lose_nothing() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 1);
    let [mut slow, mut locker] = [(); 2].map(|()| database.session("postgres"));
    // The later row is taken before the earlier one appears: a cursor would have passed it.
    let first = slow.run("BEGIN; SELECT tickwheel.put('q', 'first', now())");
    let second = database.psql("SELECT tickwheel.put('q', 'second', now())");
    let id = |row: &str| row.parse::<i64>().expect("a number");
    assert!(id(&first) < id(&second));
    assert_eq!(next(&queue, "q"), "second");
    slow.run("COMMIT");
    assert_eq!(next(&queue, "q"), "first");
    // The earlier row appears between the read of the later one and its deletion.
    slow.run("BEGIN; SELECT tickwheel.put('q', 'third', now())");
    locker.run("BEGIN; SELECT shard FROM tickwheel.shard FOR UPDATE");
    database.psql("SELECT tickwheel.put('q', 'fourth', now())");
    let waits = "SELECT count(*) > 0 FROM pg_stat_activity
        WHERE application_name LIKE 'tickwheel/%' AND datname = current_database() AND wait_event_type = 'Lock'";
    until("the commit waits for the lock", || database.psql(waits) == "t");
    slow.run("COMMIT");
    locker.run("COMMIT");
    let got = BTreeSet::from([next(&queue, "q"), next(&queue, "q")]);
    assert_eq!(got, BTreeSet::from(["third", "fourth"].map(str::to_owned)));
}

fn told() -> (Options, Receiver<(u64, String)>) {
    let (tell, told) = channel();
    let options = Queue::options().on_notice(move |notice| {
        if let Notice::RowRefused { row, why } = notice {
            let _gone = tell.send((row, why.to_string()));
        }
    });
    (options, told)
}

#[test]
fn a_row_that_cannot_be_taken_is_kept_with_its_reason_and_holds_up_no_other() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let (options, told) = told();
    let queue = open_with(options, &database, 3);
    let by_hand = |queue: &str, shard: &str, key: &str| {
        database.psql(&format!(
            "INSERT INTO tickwheel.inbox (shard, op, queue, key, due_at, payload, content_type, put_at)
             VALUES ({shard}, 1, '{queue}', '{key}', 0, '', 'a/b', 0) RETURNING id"
        ))
    };
    let bad_name = by_hand("no spaces", "tickwheel.shard_of('q')", "k");
    let bad_shard = by_hand("q", "(tickwheel.shard_of('q') + 1) % 3", "k");
    let long = "INSERT INTO tickwheel.inbox (shard, op, queue, key, due_at, payload, content_type, put_at)
        VALUES (tickwheel.shard_of('q'), 1, 'q', 'k', 0, convert_to(repeat('x', 3000000), 'UTF8'), 'a/b', 0) RETURNING id";
    let long = database.psql(long);
    database.psql("SELECT tickwheel.put('q', 'good', now())");
    assert_eq!(next(&queue, "q"), "good");
    let wanted =
        BTreeMap::from([(bad_name, "queue name"), (bad_shard, "belongs to shard"), (long, "3000000 bytes")]);
    for _ in &wanted {
        let (row, why) = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("it is told");
        assert!(why.contains(wanted[&row.to_string()]), "{row}: {why}");
    }
    until("the rows have moved", || rows(&database) == "0");
    for (row, why) in &wanted {
        let reason = database.psql(&format!("SELECT reason FROM tickwheel.inbox_refused WHERE id = {row}"));
        assert!(reason.contains(why), "{reason}");
    }
    let kept = "SELECT octet_length(payload) FROM tickwheel.inbox_refused ORDER BY 1 DESC LIMIT 1";
    assert_eq!(database.psql(kept), "3000000", "the row is kept whole");
    // A task in a worker's hands is not replaced, as by the API.
    database.psql("SELECT tickwheel.put('q', 'busy', now())");
    let leased = lease(&queue, &["q"], 1, tickwheel_testing::HANG_TIME);
    assert_eq!(leased.len(), 1);
    database.psql("SELECT tickwheel.put('q', 'busy', now())");
    let (_, why) = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("it is told");
    assert!(why.contains("a worker has the task of this key"), "{why}");
    until("it is counted", || queue.health().rows_refused == 4);
}

/// A refused row that cannot be moved waits where it is. The others move one by one, and good rows are taken.
#[test]
fn a_refused_row_that_cannot_be_moved_holds_up_no_other() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let (options, told) = told();
    let queue = open_with(options, &database, 1);
    database.psql(
        "CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
         CREATE TRIGGER no BEFORE INSERT ON tickwheel.inbox_refused FOR EACH ROW WHEN (new.key = 'stays') EXECUTE FUNCTION public.no();
         INSERT INTO tickwheel.inbox (shard, op, queue, key, put_at)
         SELECT 0, 2, 'no spaces', key, 0 FROM unnest('{a,stays,b}'::text[]) key;
         -- More than one read brings.
         INSERT INTO tickwheel.inbox (shard, op, queue, key, put_at)
         SELECT 0, 2, 'no spaces', 'stays', 0 FROM generate_series(1, 1200)",
    );
    until("the others have moved", || rows(&database) == "1201");
    database.psql("SELECT tickwheel.put('q', 'good', now())");
    assert_eq!(next(&queue, "q"), "good");
    until("the trouble is told", || {
        let health = queue.health();
        health.waits_for.is_some_and(|why| why.contains("not this one"))
    });
    database.psql("DROP TRIGGER no ON tickwheel.inbox_refused");
    until("the last one has moved", || rows(&database) == "0");
    assert_eq!(
        database.psql("SELECT string_agg(key, ' ' ORDER BY id) FROM (SELECT key, id FROM tickwheel.inbox_refused ORDER BY id LIMIT 4) r"),
        "a stays b stays"
    );
    assert_eq!(told.try_iter().count(), 1_203, "each was told once");
}

/// The rows of one transaction come in their order, though a read brings only some of them.
#[test]
fn a_large_transaction_comes_whole_and_in_order() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 1);
    database.psql("SELECT count(tickwheel.put('q', n::text, 'epoch', repeat(n::text, 500), 'text/plain')) FROM generate_series(1, 2500) n");
    database.psql("SELECT tickwheel.put('q', 'last', 'epoch')");
    let mut keys = Vec::new();
    while keys.len() < 2_501 {
        let leased = lease(&queue, &["q"], 500, tickwheel_testing::HANG_TIME);
        assert!(!leased.is_empty());
        keys.extend(leased.iter().map(|leased| leased.key.as_str().to_owned()));
        let acked =
            queue.ack(Ack::new(&name("q"), leased.iter().map(|leased| leased.token))).wait().expect("acked");
        assert!(acked.iter().all(|answer| *answer == TokenAnswer::Acked));
    }
    let expected: Vec<String> = (1..=2_500).map(|n| n.to_string()).chain(["last".to_owned()]).collect();
    assert_eq!(keys, expected);
}

#[test]
fn a_put_that_is_due_at_once_comes_to_a_lease_that_waits() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = open(&database, 4);
    let mut user = database.session("postgres");
    for n in 0..21 {
        let of = format!("q{}", n % 5);
        let leases = Lease { wait: true, lease_ms: Some(60_000), ..Lease::new(&name(&of)) };
        let waits = queue.lease(leases, tickwheel_testing::HANG_TIME);
        user.run(&format!("SELECT tickwheel.put('{of}', '{n}', now())"));
        assert_eq!(waits.wait().expect("it comes").len(), 1);
    }
}

const QUEUES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const SESSIONS: usize = 4;
const TRANSACTIONS: usize = 125;
const PUTS: usize = 20;

/// Several sessions put tasks, and roll some of their transactions back. Meanwhile the process ends and begins again, loses its connections, and
/// is ended by another one. A worker acks each task, so a row that had its effect twice would show: its task would come again.
#[test]
fn each_committed_row_becomes_one_task_whatever_happens_to_the_process() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let mut queue = open(&database, 8);
    let mut wanted = BTreeSet::new();
    let (mut acked, mut in_doubt) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let mut user = database.session("postgres");
            for transaction in (0..TRANSACTIONS).filter(|transaction| transaction % 4 != 3) {
                wanted.extend((0..PUTS).map(|n| format!("{session}:{transaction}:{n}")));
            }
            scope.spawn(move || {
                for transaction in 0..TRANSACTIONS {
                    let end = if transaction % 4 == 3 { "ROLLBACK" } else { "COMMIT" };
                    let queue = QUEUES[(session + transaction) % QUEUES.len()];
                    user.run(&format!(
                        "BEGIN; SELECT tickwheel.put('{queue}', '{session}:{transaction}:' || n, now())
                         FROM generate_series(0, {}) n; {end}",
                        PUTS - 1
                    ));
                }
            });
        }
        let mut round = 0;
        while acked.len() + in_doubt.len() < wanted.len() {
            let goal = (acked.len() + in_doubt.len() + 900).min(wanted.len());
            while acked.len() + in_doubt.len() < goal {
                work(&queue, &mut acked, &mut in_doubt);
            }
            round += 1;
            match round % 3 {
                1 => database.psql("UPDATE tickwheel.node SET ended = true WHERE NOT ended"),
                2 => database.psql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE application_name LIKE 'tickwheel/%' AND datname = current_database()",
                ),
                _ => {
                    drop(std::mem::replace(&mut queue, Queue::options().open_memory().expect("it opens")));
                    queue = open(&database, 8);
                    String::new()
                }
            };
        }
        assert!(round >= 6, "{round} rounds");
    });
    until("all tasks are done", || {
        work(&queue, &mut acked, &mut in_doubt);
        database.psql("SELECT (SELECT count(*) FROM tickwheel.inbox) + (SELECT count(*) FROM tickwheel.task)")
            == "0"
    });
    let all: BTreeSet<String> = acked.union(&in_doubt).cloned().collect();
    assert_eq!(all, wanted, "exactly those that committed");
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.inbox_refused"), "0");
}

/// Leases tasks and acks them. An ack without an answer may have taken effect.
fn work(queue: &Queue, acked: &mut BTreeSet<String>, in_doubt: &mut BTreeSet<String>) {
    let mut by_queue: BTreeMap<QueueName, Vec<Leased>> = BTreeMap::new();
    for leased in lease(queue, &QUEUES, 200, Duration::from_millis(200)) {
        by_queue.entry(leased.queue.clone()).or_default().push(leased);
    }
    for (of, leased) in by_queue {
        let answers = queue.ack(Ack::new(&of, leased.iter().map(|leased| leased.token))).wait();
        for (place, leased) in leased.into_iter().enumerate() {
            let key = leased.key.as_str().to_owned();
            assert!(!acked.contains(&key), "the row of {key} had its effect twice");
            match answers.as_ref().map(|answers| answers[place]) {
                Ok(TokenAnswer::Acked) => {
                    in_doubt.remove(&key);
                    acked.insert(key);
                }
                Ok(_) => {}
                Err(_) => {
                    in_doubt.insert(key);
                }
            }
        }
    }
}
