//! Two processes on one database: never do both answer, and the one takes over from the other.

use crate::kit::{Database, Process, Server, Work, node, options, report, until};
use rustix::process::{Pid, Signal, kill_process};
use tickwheel_queue::Queue;

/// The calls of all processes that were answered, each with the name of its process, in the order of their begins.
fn answered(of: &[(&'static str, Vec<String>)]) -> Vec<(i64, &'static str)> {
    let mut calls: Vec<(i64, &str)> = Vec::new();
    for (name, lines) in of {
        let begins = lines.iter().filter_map(|line| line.strip_prefix("answered "));
        calls.extend(begins.map(|begin| (begin.parse().expect("a number"), *name)));
    }
    calls.sort_unstable();
    calls
}

/// Checks that the owner changed no more often than the database says. A call that both answer in turn would count as many changes.
#[track_caller]
fn owners_took_turns(database: &Database<'_>, of: &[(&'static str, Vec<String>)], fewest: usize) {
    let calls = answered(of);
    let changes = calls.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    let epoch: usize = database.psql("SELECT epoch FROM tickwheel.shard").parse().expect("a number");
    assert!(changes < epoch, "{changes} changes of the owner, and the epoch is {epoch}");
    assert!(changes >= fewest, "{changes} changes of the owner");
}

/// Starts a process that owns the shard, and one that waits for it.
fn two(database: &Database<'_>) -> (Process, Process) {
    let first = Process::start(&database.url(), "first", Work::Check);
    first.until_more("answered", 10);
    let second = Process::start(&database.url(), "second", Work::Check);
    second.until_more("refused", 10);
    assert!(second.lines().contains(&"waits `first` has the shard".to_owned()), "{:?}", second.lines());
    assert_eq!(second.count("answered"), 0);
    (first, second)
}

/// The processes begin to ask at the same time. If each got some of the shards, neither would ever be ready.
#[test]
fn processes_that_start_together_do_not_share_the_shards() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let open = |name: &'static str| {
        let mut options = options(&database.url(), name);
        options.plan.shards = Some(16);
        let stores = options.connect().expect("the database takes the process");
        Queue::options().open_shards(stores).expect("the queue opens")
    };
    // The first one makes the tables, so that the others begin at the same time.
    open("maker").close();
    for round in 0..5 {
        let queues: Vec<Queue> = std::thread::scope(|scope| {
            let starts = ["one", "two", "three"].map(|name| scope.spawn(move || open(name)));
            starts.into_iter().map(|start| start.join().expect("it opens")).collect()
        });
        until("one of them is ready", || queues.iter().any(|queue| queue.health().ready));
        let owners =
            database.psql("SELECT count(DISTINCT owner) FROM tickwheel.shard WHERE owner IS NOT NULL");
        assert_eq!(owners, "1", "round {round}");
        let (owner, others): (Vec<Queue>, Vec<Queue>) =
            queues.into_iter().partition(|queue| queue.health().ready);
        assert_eq!(owner.len(), 1, "round {round}");
        // Both others wait for the same shards.
        owner[0].close();
        until("another one is ready", || others.iter().any(|queue| queue.health().ready));
        others.iter().for_each(Queue::close);
    }
}

#[test]
fn the_second_process_names_the_first_and_takes_over_when_it_closes() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let (first, second) = two(&database);
    let first = first.close();
    let took = second.until_more("answered", 10);
    report(&format!("takeover after a close: {took:?}"));
    owners_took_turns(&database, &[("first", first), ("second", second.close())], 1);
}

#[test]
fn the_second_process_takes_over_when_the_first_is_killed() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let (first, second) = two(&database);
    let first = first.kill();
    let took = second.until_more("answered", 1);
    report(&format!("takeover after a kill: {took:?}"));
    owners_took_turns(&database, &[("first", first), ("second", second.close())], 1);
}

#[test]
fn a_stopped_process_answers_nothing_of_before_and_takes_the_shard_again() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let (first, second) = two(&database);
    first.signal(Signal::STOP);
    let took = second.until_more("answered", 1);
    // Three leases.
    let beat = || database.psql("SELECT sum(beat) FROM tickwheel.node WHERE name = 'second'").parse::<u64>();
    let before = beat().expect("a number");
    until("three leases pass", || beat().expect("a number") >= before + 10);
    let refused = first.count("refused");
    first.signal(Signal::CONT);
    // At most the one call that was under way is answered: its answer may have left before the stop.
    let answered = first.count("answered");
    until("the first process knows", || {
        first.lines().iter().any(|line| line == "waits `second` has the shard")
    });
    until("it refuses", || first.count("refused") >= refused + 20);
    assert!(first.count("answered") <= answered + 1, "{:?}", first.lines());
    let second = second.close();
    let again = first.until_more("answered", 10);
    report(&format!("takeover from a stopped process: {took:?}; back without a restart: {again:?}"));
    owners_took_turns(&database, &[("first", first.close()), ("second", second)], 2);
}

/// A process that loses its place again and again joins anew each time, and never waits for ever with a request of before.
#[test]
fn a_process_that_is_ended_by_another_one_takes_its_shard_again() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "first");
    for round in 0..5 {
        until("it is ready", || queue.health().ready);
        let epoch = database.psql("SELECT epoch FROM tickwheel.shard");
        database.psql("UPDATE tickwheel.node SET ended = true");
        until(&format!("round {round}: it is taken again"), || {
            database.psql("SELECT epoch FROM tickwheel.shard") != epoch && queue.health().ready
        });
    }
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.node WHERE NOT ended"), "1");
    queue.close();
    assert_eq!(database.psql("SELECT count(*) FROM tickwheel.node WHERE NOT ended"), "0");
}

/// A request for the shard waits for a lock while its process loses its place. The database refuses it for ever, so it must not be sent
/// again and again under the old name.
#[test]
fn a_request_of_an_incarnation_that_has_ended_is_not_repeated_for_ever() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "first");
    let mut lock = database.session("postgres");
    lock.run("BEGIN; SELECT epoch FROM tickwheel.shard FOR UPDATE");
    for _ in 0..2 {
        let before = database.psql("SELECT node FROM tickwheel.node WHERE NOT ended");
        database.psql("UPDATE tickwheel.node SET ended = true WHERE NOT ended");
        let asks = format!(
            "SELECT count(*) FROM pg_stat_activity a JOIN tickwheel.node n ON a.application_name = 'tickwheel/' || n.node
             WHERE NOT n.ended AND n.node <> '{before}'"
        );
        until("the process joins anew", || database.psql(&asks) != "0");
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND wait_event_type = 'Lock' AND query LIKE '%owner = $2%'
             AND query_start > (SELECT max(started_at) FROM tickwheel.node WHERE NOT ended)",
            database.name()
        );
        until("it asks for the shard", || database.psql(&waits) != "0");
    }
    lock.run("COMMIT");
    until("it has the shard again", || queue.health().ready);
    assert_eq!(queue.health().waits_for, None);
    queue.close();
}

/// The backends of the process hang, too. The process that ends them goes on to beat, so that it is valid at once.
#[test]
fn backends_that_do_not_end_do_not_delay_the_next_owner() {
    let Some(server) = Server::start() else { return };
    let database = server.database();
    let (first, second) = two(&database);
    first.signal(Signal::STOP);
    let backends = database.psql(
        "SELECT pid FROM pg_stat_activity a JOIN tickwheel.node n ON a.application_name = 'tickwheel/' || n.node WHERE n.name = 'first'",
    );
    let backends: Vec<Pid> = backends
        .lines()
        .map(|pid| Pid::from_raw(pid.parse().expect("a number")).expect("a process"))
        .collect();
    assert!(backends.len() > 3, "{backends:?}");
    // A backend that is stopped in the middle of a statement may hold a lock that the whole database needs.
    until("the backends wait for a process that does not go on", || {
        let busy = "SELECT count(*) FROM pg_stat_activity a JOIN tickwheel.node n ON a.application_name = 'tickwheel/' || n.node
             WHERE n.name = 'first' AND a.state IS DISTINCT FROM 'idle'";
        database.psql(busy) == "0"
    });
    for backend in &backends {
        kill_process(*backend, Signal::STOP).expect("it runs");
        tickwheel_testing::until_stopped(backend.as_raw_nonzero().get().unsigned_abs());
    }
    let took = second.until_more("answered", 10);
    report(&format!("takeover from a process with {} hanging backends: {took:?}", backends.len()));
    for backend in &backends {
        kill_process(*backend, Signal::CONT).expect("it runs");
    }
    owners_took_turns(&database, &[("first", first.kill()), ("second", second.close())], 1);
}

/// A beat takes 0.35 of a lease. The next one begins in time all the same, so the process is valid without a gap.
#[test]
fn slow_beats_leave_no_gap() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let mut options = options(&database.url(), "first");
    options.plan.lease_ms = 4_000;
    let queue = Queue::options().open_shards(options.connect().expect("taken")).expect("it opens");
    database.psql(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.4); RETURN NEW; END $$;
         CREATE TRIGGER slow BEFORE UPDATE OF beat ON tickwheel.node FOR EACH ROW EXECUTE FUNCTION public.slow()",
    );
    let beat = || database.psql("SELECT beat FROM tickwheel.node").parse::<u64>().expect("a number");
    let before = beat();
    until("some slow beats", || {
        assert!(queue.health().ready, "{:?}", queue.health());
        beat() >= before + 4
    });
    database.psql("DROP TRIGGER slow ON tickwheel.node");
    queue.close();
}

#[test]
#[ignore = "a campaign: scripts/postgres ownership"]
fn owners_take_turns_for_many_rounds() {
    let Some(server) = Server::start() else { return };
    let database = server.database();
    let mut random = crate::kit::Random::new(crate::kit::number("TICKWHEEL_FAULT_SEED", 1));
    let mut took = Vec::new();
    let mut owner = Process::start(&database.url(), "0", Work::Check);
    owner.until_more("answered", 1);
    let rounds = crate::kit::number("TICKWHEEL_KILLS", 200);
    let mut before: Vec<(usize, Vec<String>)> = Vec::new();
    for round in 1..=rounds {
        let next = Process::start(&database.url(), &round.to_string(), Work::Check);
        next.until_more("refused", 3);
        match random.below(3) {
            0 => before.push((before.len(), owner.close())),
            1 => before.push((before.len(), owner.kill())),
            _ => {
                owner.signal(Signal::STOP);
                let waited = next.until_more("answered", 1);
                took.push(waited);
                owner.signal(Signal::CONT);
                let refused = owner.count("refused");
                until("the old owner refuses", || owner.count("refused") > refused + 3);
                before.push((before.len(), owner.kill()));
            }
        }
        next.until_more("answered", 3);
        owner = next;
    }
    before.push((before.len(), owner.close()));
    // Each process owned once: the calls of all of them are in the order of the processes.
    let mut last = i64::MIN;
    for (nth, lines) in &before {
        let begins = lines.iter().filter_map(|line| line.strip_prefix("answered "));
        let begins: Vec<i64> = begins.map(|begin| begin.parse().expect("a number")).collect();
        let (first, end) = (begins.first().copied(), begins.last().copied());
        assert!(first.expect("it answered") > last, "process {nth} answered before the one before had ended");
        last = end.expect("it answered");
    }
    took.sort_unstable();
    report(&format!(
        "{rounds} rounds; takeover from a stopped process: {:?} to {:?}",
        took.first(),
        took.last()
    ));
}
