//! The death of processes and of the database, cut sessions, and a database that stands still: nothing acknowledged is lost.

use std::time::{Duration, Instant};

use crate::kit::{Judge, Process, Random, Server, Work, key, name, node, number, put, report, texts, until};
use rustix::process::Signal;
use tickwheel_queue::{Get, GetError, Lease, PutError, Queue, Unavailable};

/// Judges the lines of all processes by what is left on the database.
#[track_caller]
fn judge(url: &str, judge: Judge) {
    let queue = node(url, "judge");
    until("the judge has the shard", || queue.health().ready);
    report(&judge.judge(&texts(&queue)));
    queue.close();
}

/// Kills the process in the middle of its work, again and again.
fn kill_processes(rounds: u64) {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let mut random = Random::new(number("TICKWHEEL_FAULT_SEED", 1));
    let mut found = Judge::default();
    for round in 0..rounds {
        let process = Process::start(&database.url(), &format!("p{round}"), Work::Load);
        let lines = usize::try_from(1 + random.below(300)).expect("small");
        process.until_more("put", lines);
        found.read(&process.kill());
    }
    let last = Process::start(&database.url(), "last", Work::Load);
    last.until_more("ack", 50);
    found.read(&last.close());
    judge(&database.url(), found);
}

#[test]
fn killed_processes_lose_nothing() {
    kill_processes(3);
}

#[test]
#[ignore = "a campaign: scripts/postgres kill"]
fn killed_processes_lose_nothing_for_many_rounds() {
    kill_processes(number("TICKWHEEL_KILLS", 200));
}

/// Kills all processes of the database in the middle of its work, again and again. The process of Tickwheel goes on by itself.
fn kill_databases(rounds: u64) {
    let Some(mut server) = Server::start() else { return };
    let mut random = Random::new(number("TICKWHEEL_FAULT_SEED", 1));
    let url = server.url();
    let process = Process::start(&url, "p", Work::Load);
    let mut longest = Duration::ZERO;
    for _ in 0..rounds {
        process.until_more("put", usize::try_from(1 + random.below(300)).expect("small"));
        server.kill();
        server.start_again();
        longest = longest.max(process.until_more("put", 1));
    }
    process.until_more("ack", 20);
    report(&format!("back at the latest {longest:?} after the database"));
    let mut found = Judge::default();
    found.read(&process.close());
    judge(&url, found);
}

#[test]
fn a_killed_database_loses_nothing() {
    kill_databases(3);
}

#[test]
#[ignore = "a campaign: scripts/postgres database"]
fn a_killed_database_loses_nothing_for_many_rounds() {
    kill_databases(number("TICKWHEEL_KILLS", 200));
}

/// Ends one session of the process after the other, whatever it does.
fn cut_sessions(rounds: u64) {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let process = Process::start(&database.url(), "p", Work::Load);
    let mut random = Random::new(number("TICKWHEEL_FAULT_SEED", 1));
    let mut cut = 0;
    for _ in 0..rounds {
        process.until_more("put", usize::try_from(1 + random.below(60)).expect("small"));
        let sql = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = '{}'
             AND application_name LIKE 'tickwheel/%' ORDER BY random() LIMIT {}) AS chosen",
            database.name(),
            1 + random.below(3)
        );
        cut += database.psql(&sql).parse::<u32>().expect("a number");
    }
    process.until_more("ack", 20);
    report(&format!("{cut} sessions were cut"));
    let mut found = Judge::default();
    found.read(&process.close());
    judge(&database.url(), found);
}

#[test]
fn cut_sessions_lose_nothing() {
    cut_sessions(40);
}

#[test]
#[ignore = "a campaign: scripts/postgres sessions"]
fn cut_sessions_lose_nothing_for_many_rounds() {
    cut_sessions(number("TICKWHEEL_KILLS", 200) * 10);
}

/// The calls of the queue, until one is answered.
#[track_caller]
fn until_answered(queue: &Queue) -> Duration {
    until("the queue answers", || {
        !matches!(queue.get(Get::new(&name(), key("none"))).wait(), Err(GetError::Unavailable(_)))
    })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the database stands still for some time")]
fn a_database_that_stands_still_holds_the_calls_and_they_go_on() {
    let Some(server) = Server::start() else { return };
    let queue = node(&server.url(), "first");
    queue.put(put("before", Duration::ZERO)).wait().expect("stored");
    server.signal_all(Signal::STOP);
    // The commit is under way when the answers begin to wait.
    let waiting = queue.put(put("under-way", Duration::ZERO));
    until("no answer is given any more", || !queue.health().ready);
    let begun = Instant::now();
    let refused = queue.get(Get::new(&name(), key("before"))).wait();
    let Err(GetError::Unavailable(Unavailable::Late { why })) = refused else { panic!("{refused:?}") };
    assert!(why.contains("the database does not answer"), "{why}");
    until("some seconds pass", || begun.elapsed() > Duration::from_secs(3));
    server.signal_all(Signal::CONT);
    waiting.wait().expect("nothing is lost");
    until_answered(&queue);
    assert_eq!(texts(&queue).len(), 2);
    queue.close();
}

/// Returns how long a call waits for the database, and asserts that its caller learns that the outcome is unknown.
#[expect(clippy::disallowed_methods, reason = "a test measures real time")]
fn until_left(call: impl FnOnce() -> Result<(), PutError>) -> Duration {
    let begun = Instant::now();
    let answer = call();
    assert!(
        matches!(answer, Err(PutError::Unavailable(Unavailable::Indeterminate { .. }))),
        "{answer:?} after {:?}",
        begun.elapsed()
    );
    begun.elapsed()
}

#[test]
fn a_call_does_not_wait_for_a_silent_database_without_end() {
    let Some(server) = Server::start() else { return };
    let queue = node(&server.url(), "first");
    queue.put(put("soon", Duration::from_secs(1))).wait().expect("stored");
    let lease = |wait| queue.lease(Lease::new(&name()).lasting(Duration::from_secs(3_600)), wait);
    server.signal_all(Signal::STOP);
    // The task becomes ready while no answer may leave.
    let leasing = lease(Duration::from_secs(3));
    let waited = until_left(|| queue.put(put("under-way", Duration::from_secs(3_600))).wait().map(drop));
    assert!(waited < tickwheel_testing::HANG_TIME, "{waited:?}");
    let leased = leasing.wait();
    assert!(matches!(leased, Err(Unavailable::Indeterminate { .. })), "{leased:?}");
    server.signal_all(Signal::CONT);
    until_answered(&queue);
    assert_eq!(texts(&queue).len(), 2, "the commit went on without its caller");
    // No worker got the task, so it comes again at once and not after an hour.
    until("the task of the lost answer comes again", || {
        lease(Duration::ZERO).wait().is_ok_and(|leased| leased.iter().any(|one| one.key.as_str() == "soon"))
    });
    queue.close();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a worker waits in real time")]
fn a_worker_waits_for_tasks_without_end() {
    let Some(server) = crate::kit::shared() else { return };
    let queue = node(&server.database().url(), "first");
    let waiting = queue.lease(Lease::new(&name()), Duration::MAX);
    let waiting = std::thread::spawn(move || waiting.wait());
    let begun = Instant::now();
    until("the limit of other calls passes twice", || begun.elapsed() > Duration::from_secs(11));
    assert!(!waiting.is_finished(), "the store makes progress, so no call is abandoned");
    queue.put(put("late", Duration::ZERO)).wait().expect("stored");
    let leased = waiting.join().expect("no panic").expect("served");
    assert_eq!(leased[0].key.as_str(), "late");
    queue.close();
}

#[test]
fn changes_are_refused_while_a_commit_is_late() {
    let Some(server) = Server::start() else { return };
    let queue = node(&server.url(), "first");
    let database = server.database_named("postgres");
    let mut session = database.session("postgres");
    // Reads wait as well: the look-up of the first put waits before there is a commit.
    session.run("BEGIN; LOCK TABLE tickwheel.task IN ACCESS EXCLUSIVE MODE");
    until_left(|| queue.put(put("looked-up", Duration::ZERO)).wait().map(drop));
    session.run("ROLLBACK");
    until("its look-up is answered", || texts(&queue).len() == 1);
    queue.put(put("before", Duration::ZERO)).wait().expect("stored");
    // The heartbeats go on, so the process keeps its shard, and only its commits wait.
    session.run("BEGIN; LOCK TABLE tickwheel.batch IN SHARE MODE");
    until_left(|| queue.put(put("with-it", Duration::ZERO)).wait().map(drop));
    let later = || queue.put(put("later", Duration::ZERO)).wait();
    let refused = later();
    assert!(matches!(refused, Err(PutError::Unavailable(Unavailable::Late { .. }))), "{refused:?}");
    assert!(queue.health().ready, "the process has its shard");
    let read = queue.get(Get::new(&name(), key("before"))).wait();
    assert!(
        matches!(read, Err(GetError::Unavailable(Unavailable::Late { .. }))),
        "its answer would wait: {read:?}"
    );
    session.run("ROLLBACK");
    until("changes are taken again", || later().is_ok());
    let keys = texts(&queue);
    assert!(["before", "with-it", "later"].iter().all(|key| keys.contains(*key)), "{keys:?}");
    queue.close();
}

/// The database refuses commits in a way that no later try mends by itself, until an administrator removes the cause.
#[test]
fn a_refusal_of_the_database_that_ends_needs_no_restart() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "first");
    queue.put(put("before", Duration::ZERO)).wait().expect("stored");
    database.psql(
        "CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
         CREATE TRIGGER no BEFORE INSERT ON tickwheel.task FOR EACH ROW EXECUTE FUNCTION public.no()",
    );
    let refused = queue.put(put("refused", Duration::ZERO)).wait();
    assert!(refused.as_ref().is_err_and(|why| why.to_string().contains("not this one")), "{refused:?}");
    until("reads are served meanwhile", || queue.get(Get::new(&name(), key("before"))).wait().is_ok());
    database.psql("DROP TRIGGER no ON tickwheel.task");
    until("puts are taken again", || queue.put(put("after", Duration::ZERO)).wait().is_ok());
    assert_eq!(texts(&queue), ["after", "before"].map(str::to_owned).into());
    queue.close();
}

/// Closes the queue while the database is not there. Returns how long that took.
#[expect(clippy::disallowed_methods, reason = "a test measures real time")]
fn close_without(queue: &Queue, what: &str) {
    let (begun, of) = (Instant::now(), queue.clone());
    let closing = std::thread::spawn(move || of.close());
    until("the queue closes", || closing.is_finished());
    let closing = begun.elapsed();
    report(&format!("closed {what} in {closing:?}"));
}

#[test]
fn a_queue_closes_without_its_database() {
    let Some(mut server) = Server::start() else { return };
    let queue = node(&server.url(), "first");
    queue.put(put("one", Duration::ZERO)).wait().expect("stored");
    server.signal_all(Signal::STOP);
    let waiting = queue.put(put("two", Duration::ZERO));
    close_without(&queue, "with a database that stands still");
    assert!(waiting.wait().is_err());
    server.signal_all(Signal::CONT);
    let queue = node(&server.url(), "second");
    until("the shard is free after a lease", || queue.health().ready);
    queue.put(put("three", Duration::ZERO)).wait().expect("stored");
    server.kill();
    let waiting = queue.put(put("four", Duration::ZERO));
    close_without(&queue, "with a database that is gone");
    assert!(waiting.wait().is_err());
    server.start_again();
    let queue = node(&server.url(), "third");
    until("the shard is free after a lease", || queue.health().ready);
    let there = texts(&queue);
    assert!(["one", "three"].iter().all(|key| there.contains(*key)), "{there:?}");
}
