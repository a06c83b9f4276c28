//! Leases over several queues, and what a queue tells of itself.

use tickwheel_engine::*;

use crate::flow::change;
use crate::world::*;

fn put(world: &mut World, of: &str, name: &str, priority: u32) {
    let terms = Terms { priority, ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue(of), key(name)) }).expect("taken");
}

fn lease(of: &[&str], max: usize, wait: bool) -> Command {
    let queues: Vec<QueueName> = of.iter().map(|name| queue(name)).collect();
    Command::Lease(Lease { wait, ..Lease::of(queues).max(max) })
}

fn names(answer: Option<Answer>) -> Option<Vec<String>> {
    match answer? {
        Answer::Lease(Ok(leased)) => {
            Some(leased.iter().map(|one| format!("{}:{}", one.queue.as_str(), one.key.as_str())).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn view(world: &mut World, of: &str) -> QueueView {
    let Answer::Queue(result) = world.ask(Command::Queue(GetQueue(queue(of)))) else {
        panic!("another answer")
    };
    *result.expect("shown")
}

#[test]
fn one_order_over_all_queues() {
    let mut world = World::new();
    for (of, name, priority) in [("q", "a", 9), ("p", "b", 7), ("r", "c", 0), ("q", "d", 7), ("p", "e", 9)] {
        put(&mut world, of, name, priority);
    }
    let taken = names(Some(world.ask(lease(&["q", "p"], 10, false)))).expect("answered");
    assert_eq!(
        taken,
        ["p:b", "q:d", "q:a", "p:e"],
        "by priority, then by the instant and the put; r is not asked"
    );
    assert_eq!(names(Some(world.ask(lease(&["q", "p"], 10, false)))), Some(vec![]));
    assert_eq!(names(Some(world.ask(lease(&["r", "r"], 10, false)))), Some(vec!["r:c".to_owned()]));
}

#[test]
fn whatever_becomes_ready_first_is_given_to_who_has_waited_longest() {
    let mut world = World::new();
    let both = world.send(lease(&["p", "q"], 1, true));
    let only = world.send(lease(&["q"], 1, true));
    put(&mut world, "q", "a", 1);
    assert_eq!(names(world.answer(both)), Some(vec!["q:a".to_owned()]));
    assert_eq!(names(world.answer(only)), None);
    put(&mut world, "p", "b", 1);
    assert_eq!(names(world.answer(only)), None, "it does not wait there");
    put(&mut world, "q", "c", 1);
    assert_eq!(names(world.answer(only)), Some(vec!["q:c".to_owned()]));
    assert!(view(&mut world, "p").exists, "with its task");
}

#[test]
fn who_waits_in_front_at_one_gate_does_not_keep_others_from_another() {
    let mut world = World::new();
    change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
    put(&mut world, "q", "held", 1);
    let first = world.send(lease(&["q"], 1, true));
    let second = world.send(lease(&["q", "p"], 1, true));
    assert_eq!(names(Some(world.ask(lease(&["q", "p"], 1, false)))), Some(vec![]), "at once");
    put(&mut world, "p", "free", 1);
    assert_eq!(names(world.answer(second)), Some(vec!["p:free".to_owned()]));
    put(&mut world, "p", "more", 1);
    assert_eq!(names(Some(world.ask(lease(&["q", "p"], 1, false)))), Some(vec!["p:more".to_owned()]));
    change(&mut world, QueueChange::Resume).expect("taken");
    assert_eq!(names(world.answer(first)), Some(vec!["q:held".to_owned()]));
}

/// A wait over two queues ends in both.
#[test]
fn a_wait_that_ends_leaves_nothing_behind() {
    let mut world = World::new();
    let waits = world.send(lease(&["p", "q", "p"], 1, true));
    assert!(view(&mut world, "p").exists);
    world.input(Input::EndWait { call: waits });
    assert_eq!(names(world.answer(waits)), Some(vec![]));
    for of in ["p", "q"] {
        assert!(!view(&mut world, of).exists, "nobody waits on {of} any more");
    }
    let waits = world.send(lease(&["p", "q"], 1, true));
    let next = world.send(lease(&["p"], 1, true));
    put(&mut world, "q", "a", 1);
    put(&mut world, "p", "b", 1);
    assert_eq!(names(world.answer(waits)), Some(vec!["q:a".to_owned()]));
    assert_eq!(names(world.answer(next)), Some(vec!["p:b".to_owned()]));
}

/// A call has to wait for a record from one queue. The next call for the other queue is served all the same.
#[test]
fn a_wait_for_a_record_holds_up_the_next_only_as_long_as_it_takes() {
    let config = EngineConfig { near_bytes_max: 512, ..EngineConfig::default() };
    let mut world = World::with(config);
    for n in 0..20 {
        put(&mut world, "p", &format!("p{n}"), 1);
    }
    put(&mut world, "q", "a", 9);
    put(&mut world, "q", "b", 9);
    world.hold_reads = true;
    let first = world.send(lease(&["p", "q"], 1, true));
    let second = world.send(lease(&["q"], 1, false));
    let in_time = (names(world.answer(first)), names(world.answer(second)));
    world.release();
    let first = in_time.0.or_else(|| names(world.answer(first)));
    let second = in_time.1.or_else(|| names(world.answer(second)));
    assert_eq!(first, Some(vec!["p:p0".to_owned()]));
    assert_eq!(second, Some(vec!["q:a".to_owned()]));
}

#[test]
fn what_happened_in_queues_that_are_gone_counts_for_their_namespace() {
    let mut world = World::new();
    let gone = |world: &mut World| {
        let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
            panic!("another answer")
        };
        stats.gone
    };
    world.input(Input::Use { queue: queue("shop/default") });
    for (name, id) in [("shop/a", "1"), ("shop/a", "2"), ("shopping", "3"), ("bank/a", "4")] {
        put(&mut world, name, id, 0);
        world.cancel_by(Cancel::new(&queue(name), key(id))).expect("cancelled");
    }
    let one = QueueTotals { added: 2, ended: 2, ..QueueTotals::default() };
    let of_bank = QueueTotals { added: 1, ended: 1, ..QueueTotals::default() };
    let both = [("bank".to_owned(), of_bank), ("shop".to_owned(), one)];
    assert_eq!(
        gone(&mut world),
        both.into(),
        "of namespaces with queues, those that are empty and listed among them"
    );
    let first = ListQueues { max: 1, ..ListQueues::default() };
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(first))) else {
        panic!("another answer")
    };
    assert!(stats.page.next.is_some() && stats.gone.is_empty(), "they come with the last page");
    world.pass_ms(3_600_000);
    assert_eq!(gone(&mut world), [("shop".to_owned(), one)].into(), "of a namespace that has others");
    world.input(Input::Leave { queue: queue("shop/default") });
    assert!(gone(&mut world).is_empty(), "nobody is left to count for");
}

#[test]
fn a_queue_is_there_while_a_client_uses_it_and_counts_its_events() {
    let mut world = World::new();
    for _ in 0..2 {
        world.input(Input::Use { queue: queue("q") });
    }
    assert!(view(&mut world, "q").exists);
    put(&mut world, "q", "a", 1_023);
    put(&mut world, "q", "b", 1_024);
    world.put_in("c", 1_000);
    let shown = view(&mut world, "q");
    assert_eq!((shown.counts.ready, shown.counts.urgent), (2, 1));
    let first = shown.first_ready.expect("ready");
    assert_eq!(world.lease(1, 1_000)[0].id, first);
    assert_eq!(view(&mut world, "q").counts.urgent, 0);
    let token = world.lease(1, 1_000)[0].token;
    world.ack(token);
    world.cancel("c").expect("cancelled");
    for _ in 0..2 {
        change(&mut world, QueueChange::Pause { ms: Some(1) }).expect("taken");
    }
    world.pass_ms(1_000);
    assert_eq!(view(&mut world, "q").counts.urgent, 1, "its lease ran out");
    world.cancel("a").expect("cancelled");
    let totals = QueueTotals { added: 3, ended: 3, pauses: 2, expiries: 1 };
    assert_eq!(view(&mut world, "q").counts.totals, totals);
    change(&mut world, QueueChange::Resume).expect("taken");
    world.input(Input::Leave { queue: queue("q") });
    assert_eq!(view(&mut world, "q").counts.totals, totals, "somebody still uses it");
    world.input(Input::Leave { queue: queue("q") });
    assert!(!view(&mut world, "q").exists);
    // A caller that leaves once too often does no harm.
    world.input(Input::Leave { queue: queue("q") });
    assert_eq!(
        world.all_counts()[0].totals,
        QueueTotals::default(),
        "what is listed is a queue that has ended"
    );
}

/// The story: 8 sockets asked for 1,000 tasks each and read nothing. Their answers held all ready tasks of 1 MB in memory.
#[test]
fn an_answer_has_16_mib_of_bodies_or_one_task() {
    const MIB: usize = 1 << 20;
    for of in [&["q"][..], &["q", "p"]] {
        let mut world = World::new();
        for (name, bytes) in [("a", 6 * MIB), ("b", 10 * MIB), ("c", 1), ("d", 20 * MIB), ("e", 1)] {
            let body = Body::bytes(vec![7; bytes]);
            world.put(Put { body, ..Put::new(&queue(of[0]), key(name)) }).expect("taken");
        }
        let mut answers = Vec::new();
        let waits = world.send(lease(of, 9, true));
        answers.push(names(world.answer(waits)).expect("tasks are ready"));
        for _ in 0..4 {
            answers.push(names(Some(world.ask(lease(of, 9, false)))).expect("answered"));
        }
        let expected: [&[&str]; 5] = [&["q:a", "q:b"], &["q:c"], &["q:d"], &["q:e"], &[]];
        assert_eq!(answers, expected, "{of:?}");
    }
}
