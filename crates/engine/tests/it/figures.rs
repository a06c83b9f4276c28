//! The figures that each queue counts for the operators who watch it.

use tickwheel_engine::*;

use crate::flow::change;
use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

fn stats(world: &mut World) -> Stats {
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("another answer")
    };
    *stats
}

fn figures(world: &mut World, name: &str) -> Option<QueueFigures> {
    world.all_counts().into_iter().find(|counts| counts.queue.as_str() == name).map(|counts| counts.figures)
}

/// Each event is counted once in all and once in its queue: what the queues have counted, with those that are forgotten, is what the
/// engine has counted.
#[track_caller]
pub(crate) fn assert_figures_add_up(world: &mut World) {
    let counts = world.all_counts();
    let all = stats(world);
    let mut sum = all.forgotten;
    counts.iter().for_each(|counts| sum.add(&counts.figures));
    let Stats { leased_total, acked_total, nacked_total, expired_total, cancelled_total, dead_total, .. } =
        all;
    assert_eq!(
        [sum.delivered, sum.acked, sum.nacked, sum.expired, sum.cancelled, sum.dead],
        [leased_total, acked_total, nacked_total, expired_total, cancelled_total, dead_total]
    );
    let fired: u64 = sum.lateness.iter().sum();
    assert_eq!((fired, sum.lateness_sum_ms), (all.fired_total, all.lateness_sum_ms));
    assert_eq!(all.lateness.iter().sum::<u64>(), all.fired_total);
    assert!(sum.put <= all.scheduled_total, "patches and redrives come to the {} puts", sum.put);
}

fn put_into(world: &mut World, name: &str, id: &str) {
    world.put(Put::new(&queue(name), key(id))).expect("taken");
}

#[test]
fn each_event_is_counted_once_in_its_queue() {
    let mut world = World::new();
    let retry = Retry { max_attempts: Some(2), backoff: None };
    change(
        &mut world,
        QueueChange::Settings(QueueSettings { retry: Some(retry), ..QueueSettings::default() }),
    )
    .expect("taken");
    put_into(&mut world, "other", "a");
    // Acked, cancelled, revoked, and replaced before.
    for name in ["acked", "revoked", "expired"] {
        world.put_in(name, 0);
    }
    world.put_in("cancelled", 1_000);
    world.put_in("cancelled", 2_000);
    world.cancel("cancelled").expect("cancelled");
    let leased = world.lease(3, 1_000);
    assert_eq!(keys(&leased), ["acked", "revoked", "expired"]);
    world.ack(leased[0].token);
    let revoke = Cancel { on_lease: OnLease::Revoke, ..Cancel::new(&queue("q"), key("revoked")) };
    world.cancel_by(revoke).expect("revoked");
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked, "the answer was lost");
    // The lease of `expired` runs out. Then the task is nacked, and that was its last attempt.
    world.pass_ms(1_000);
    let again = world.lease(1, 1_000);
    world.nack(again[0].token, None);
    let counted = figures(&mut world, "q").expect("listed");
    let expected = QueueFigures {
        put: 5,
        delivered: 4,
        acked: 1,
        nacked: 1,
        expired: 1,
        cancelled: 2,
        dead: 1,
        // Three were due at once; the lease that ran out, and the nack, made none fire again.
        lateness: [3, 0, 0, 0, 0, 0],
        lateness_sum_ms: 0,
    };
    assert_eq!(counted, expected);
    let other = figures(&mut world, "other").expect("listed");
    assert_eq!((other.put, other.delivered), (1, 0));
    let all = stats(&mut world);
    assert_eq!(
        (all.acked_total, all.nacked_total, all.expired_total, all.cancelled_total, all.dead_total),
        (counted.acked, counted.nacked, counted.expired, counted.cancelled, counted.dead),
        "the sums of the machine say the same"
    );
    assert_eq!((all.leased_total, all.fired_total), (counted.delivered, 4));
}

#[test]
fn each_moment_of_a_timeline_is_an_ack() {
    let mut world = World::new();
    let moment = |at_ms| Moment { at: ms(at_ms), payload: Vec::new(), content_type: "text/plain".into() };
    let body = Body { timeline: vec![moment(0), moment(10)], ..Body::default() };
    world.put(Put { body, ..Put::new(&queue("q"), key("steps")) }).expect("taken");
    for _ in 0..2 {
        let leased = world.lease(1, 1_000);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
        world.pass_ms(10);
    }
    let counted = figures(&mut world, "q").expect("listed");
    assert_eq!((counted.put, counted.delivered, counted.acked), (1, 2, 2));
}

#[test]
fn lateness_is_that_of_the_queue() {
    let mut world = World::new();
    for name in ["late", "prompt"] {
        let put = Put { due: Due::After { ms: 100 }, ..Put::new(&queue(name), key("a")) };
        world.put(put).expect("taken");
    }
    let cancelled = Cancel::new(&queue("prompt"), key("a"));
    world.cancel_by(cancelled).expect("cancelled");
    // The engine was not woken in time.
    world.pass_ms(2_600);
    put_into(&mut world, "prompt", "b");
    let late = figures(&mut world, "late").expect("listed");
    assert_eq!((late.lateness, late.lateness_sum_ms), ([0, 0, 0, 1, 0, 0], 2_500));
    let prompt = figures(&mut world, "prompt").expect("listed");
    assert_eq!((prompt.lateness, prompt.lateness_sum_ms), ([1, 0, 0, 0, 0, 0], 0));
}

/// A task that is not held whole falls due as a stub.
#[test]
fn what_falls_due_as_a_stub_is_counted_too() {
    let mut world = World::with(EngineConfig { near_bytes_max: 64 << 10, ..EngineConfig::default() });
    for n in 0..2_000 {
        world.put_in(&format!("k{n:04}"), 60_000);
    }
    let wake = world.engine.next_wake().wall.expect("they have to be loaded");
    world.pass_ms(wake.ms_since(ms(0)));
    assert!(world.engine.stubs_in_memory() > 0, "some are there as stubs");
    world.pass_ms(60_050 - wake.ms_since(ms(0)));
    let counted = figures(&mut world, "q").expect("listed");
    assert_eq!((counted.lateness, counted.lateness_sum_ms), ([0, 2_000, 0, 0, 0, 0], 2_000 * 50));
    while let [leased] = &world.lease(1, 1_000)[..] {
        world.ack(leased.token);
    }
    let counted = figures(&mut world, "q").expect("listed");
    assert_eq!(
        (counted.delivered, counted.acked, counted.lateness.iter().sum::<u64>()),
        (2_000, 2_000, 2_000)
    );
}

/// A queue that was empty between two looks had counted from 0 again, and a rate over it was wrong.
#[test]
fn figures_go_on_while_a_queue_is_empty() {
    let mut world = World::new();
    for _ in 0..3 {
        put_into(&mut world, "q", "a");
        world.cancel("a").expect("cancelled");
    }
    let counts = &world.all_counts()[0];
    assert_eq!((counts.figures.put, counts.figures.cancelled, counts.totals.added), (3, 3, 0));
}

#[test]
fn what_a_queue_counted_is_kept_in_the_sum_when_it_is_forgotten() {
    let mut world = World::new();
    put_into(&mut world, "a", "1");
    put_into(&mut world, "q", "1");
    let before = world.all_counts();
    assert_eq!((before[0].appeared, before[1].appeared, stats(&mut world).queues_appeared), (1, 2, 2));
    world.cancel("1").expect("cancelled");
    assert_eq!(stats(&mut world).forgotten, QueueFigures::default(), "it is still listed");
    world.pass_ms(HOUR_MS);
    assert_eq!(figures(&mut world, "q"), None);
    let gone = QueueFigures { put: 1, cancelled: 1, lateness: [1, 0, 0, 0, 0, 0], ..QueueFigures::default() };
    assert_eq!(stats(&mut world).forgotten, gone);
    // The queue appears again, and counts as another queue.
    put_into(&mut world, "q", "2");
    let again = world.all_counts();
    assert_eq!((again[1].appeared, again[1].figures.put, stats(&mut world).forgotten), (3, 1, gone));
}

#[test]
fn a_queue_that_a_lease_names_twice_appears_once() {
    let mut world = World::new();
    let lease = Lease { wait: true, ..Lease::of([queue("q"), queue("q")]) };
    let call = world.send(Command::Lease(lease));
    world.input(Input::EndWait { call });
    assert_eq!(world.answer(call), Some(Answer::Lease(Ok(Vec::new()))));
    assert_eq!(stats(&mut world).queues_appeared, 1);
}

#[test]
fn a_waiting_call_of_a_target_is_not_counted() {
    let mut world = World::new();
    let waits = |for_target| Lease { wait: true, for_target, ..Lease::of([queue("q"), queue("q")]) };
    let of_target = world.send(Command::Lease(waits(true)));
    assert_eq!(stats(&mut world).waiting, 0);
    let of_worker = world.send(Command::Lease(waits(false)));
    assert_eq!(stats(&mut world).waiting, 1);
    world.input(Input::EndWait { call: of_target });
    assert_eq!(stats(&mut world).waiting, 1);
    world.input(Input::EndWait { call: of_worker });
    assert_eq!(stats(&mut world).waiting, 0);
}

/// The story: a queue was paused over the night, with a backlog of a day. After each restart of the server all of it had fallen due once
/// more, a day late, and the alert for late fires rang.
#[test]
fn what_was_ready_before_a_restart_has_fired_then() {
    for near_bytes_max in [256 << 20, 512] {
        let mut world = World::with(EngineConfig { near_bytes_max, ..EngineConfig::default() });
        for n in 0..50 {
            world.put_in(&format!("ready{n}"), 100);
        }
        world.put_in("due-while-away", 10_000);
        world.pass_ms(5_000);
        let before = figures(&mut world, "q").expect("listed");
        assert_eq!(before.lateness.iter().sum::<u64>(), 50);
        // The last commit says what was due by then. After it the machine is down for a minute.
        put_into(&mut world, "other", "a");
        world.input(Input::Stop);
        world.now.wall = ms(65_000);
        let mut world = world.crash();
        let after = figures(&mut world, "q").expect("listed");
        assert_eq!(
            (after.lateness, after.lateness_sum_ms),
            ([0, 0, 0, 0, 1, 0], 55_000),
            "of {near_bytes_max} bytes"
        );
        assert_figures_add_up(&mut world);
        let leased = std::iter::from_fn(|| Some(world.lease(100, 60_000).len()).filter(|&count| count > 0));
        assert_eq!(leased.sum::<usize>(), 51, "all of it is ready all the same");
    }
}

/// A steady stream of urgent tasks kept the age of a queue at 0 while thousands of others waited for hours.
#[test]
fn the_oldest_is_found_behind_those_that_are_more_urgent() {
    let oldest = |world: &mut World| world.all_counts()[0].oldest_due;
    for near_bytes_max in [256 << 20, 512] {
        let mut world = World::with(EngineConfig { near_bytes_max, ..EngineConfig::default() });
        let put = |world: &mut World, name: &str, priority, group: &str| {
            let terms = Terms { priority, group: Group::new(group).ok(), ..Terms::default() };
            world.put(Put { terms, ..Put::new(&queue("q"), key(name)) }).expect("taken");
        };
        put(&mut world, "starved", u32::MAX, "");
        world.pass_ms(1);
        (0..300).for_each(|n| put(&mut world, &format!("usual{n}"), PRIORITY_DEFAULT, ""));
        world.pass_ms(HOUR_MS);
        (0..300).for_each(|n| put(&mut world, &format!("urgent{n}"), n % 5, ""));
        assert_eq!(oldest(&mut world), Some(ms(0)), "of {near_bytes_max} bytes");
        world.cancel("starved").expect("cancelled");
        assert_eq!(oldest(&mut world), Some(ms(1)), "of {near_bytes_max} bytes");
    }
    // A task that its group holds up is ready, too.
    let mut world = World::new();
    let settings = QueueSettings { max_in_flight_per_group: Some(1), ..QueueSettings::default() };
    change(&mut world, QueueChange::Settings(settings)).expect("taken");
    for (name, priority) in [("held", 9), ("parked", 9)] {
        let terms = Terms { priority, group: Group::new("g").ok(), ..Terms::default() };
        world.put(Put { terms, ..Put::new(&queue("q"), key(name)) }).expect("taken");
    }
    assert_eq!(world.lease(9, 10 * HOUR_MS).len(), 1);
    world.pass_ms(7);
    let terms = Terms { priority: 0, ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue("q"), key("urgent")) }).expect("taken");
    assert_eq!(oldest(&mut world), Some(ms(0)));
}
