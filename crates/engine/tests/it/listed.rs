//! Which queues a list names, and how it comes in pages.

use tickwheel_engine::*;

use crate::flow::change;
use crate::world::*;

const HOUR_MS: u64 = 3_600_000;

fn names(queues: Vec<QueueCounts>) -> Vec<String> {
    queues.into_iter().map(|counts| counts.queue.as_str().to_owned()).collect()
}

fn listed(world: &mut World) -> Vec<String> {
    names(world.listed(&ListQueues::default()))
}

fn in_use(world: &mut World) -> Vec<String> {
    names(world.listed(&ListQueues { which: WhichQueues::InUse, ..ListQueues::default() }))
}

/// A task comes and goes.
fn use_once(world: &mut World, name: &str) {
    world.put(Put::new(&queue(name), key("a"))).expect("taken");
    world.cancel_by(Cancel::new(&queue(name), key("a"))).expect("cancelled");
}

/// An operator who looked after the last task was acked saw no queue at all.
#[test]
fn an_emptied_queue_stays_in_the_list_for_an_hour() {
    let mut world = World::new();
    world.put_in("a", 0);
    let token = world.lease(1, 10)[0].token;
    world.ack(token);
    let counts = world.all_counts();
    assert_eq!((counts.len(), counts[0].live(), counts[0].dead), (1, 0, 0));
    let Answer::Queue(Ok(view)) = world.ask(Command::Queue(GetQueue(queue("q")))) else {
        panic!("another answer")
    };
    assert!(!view.exists, "nothing is in it, and nobody uses it");
    assert!(in_use(&mut world).is_empty());
    world.pass_ms(HOUR_MS - 1);
    assert_eq!(listed(&mut world), ["q"]);
    world.pass_ms(1);
    assert!(listed(&mut world).is_empty());
    world.put_in("a", 0);
    assert_eq!(world.counts(), (0, 1, 0));
}

/// The story: the settings of a queue were removed, and lists named it for another hour. After a restart they did not.
#[test]
fn a_queue_that_loses_its_settings_stays_in_the_list_for_an_hour_also_after_a_restart() {
    for restarts in [false, true] {
        let mut world = World::new();
        let pause = QueueChange::Pause { ms: None };
        change(&mut world, pause).expect("taken");
        if restarts {
            world = world.crash();
        }
        change(&mut world, QueueChange::Resume).expect("taken");
        assert_eq!(listed(&mut world), ["q"], "restarts: {restarts}");
        world.pass_ms(HOUR_MS);
        assert!(listed(&mut world).is_empty(), "restarts: {restarts}");
    }
}

#[test]
fn each_use_begins_the_hour_anew() {
    let mut world = World::new();
    use_once(&mut world, "q");
    world.pass_ms(HOUR_MS - 1);
    use_once(&mut world, "q");
    world.pass_ms(HOUR_MS - 1);
    assert_eq!(listed(&mut world), ["q"]);
    world.put(Put::new(&queue("q"), key("stays"))).expect("taken");
    world.pass_ms(2 * HOUR_MS);
    assert_eq!(listed(&mut world), ["q"], "it has a task");
}

#[test]
fn a_queue_that_was_never_used_is_not_listed() {
    let mut world = World::new();
    world.input(Input::Use { queue: queue("watched") });
    assert!(world.lease(1, 10).is_empty(), "q is asked for a task");
    assert!(listed(&mut world).is_empty());
    assert_eq!(in_use(&mut world), ["watched"]);
    let waits = world.send(Command::Lease(Lease { wait: true, ..Lease::new(&queue("q")) }));
    assert_eq!(listed(&mut world), ["q"], "a worker waits there");
    world.input(Input::EndWait { call: waits });
    world.input(Input::Leave { queue: queue("watched") });
    assert!(listed(&mut world).is_empty() && in_use(&mut world).is_empty());
}

#[test]
fn settings_keep_a_queue_in_the_list_and_so_does_the_hour_after_them() {
    let mut world = World::new();
    let settings = QueueSettings { max_in_flight: Some(1), ..QueueSettings::default() };
    change(&mut world, QueueChange::Settings(settings)).expect("taken");
    world.pass_ms(2 * HOUR_MS);
    assert_eq!(listed(&mut world), ["q"]);
    change(&mut world, QueueChange::Settings(QueueSettings::default())).expect("taken");
    world.pass_ms(HOUR_MS - 1);
    assert_eq!(listed(&mut world), ["q"]);
    world.pass_ms(1);
    assert!(listed(&mut world).is_empty());
}

/// The totals of a tube end with the tube, though its queue is still listed.
#[test]
fn a_queue_that_comes_back_within_the_hour_counts_from_the_start() {
    let mut world = World::new();
    use_once(&mut world, "q");
    world.put_in("b", 0);
    assert_eq!(world.all_counts()[0].totals, QueueTotals { added: 1, ..QueueTotals::default() });
}

#[test]
fn ten_thousand_empty_queues_are_remembered_and_the_hour_ends_for_all() {
    let mut world = World::new();
    for n in 0..10_003 {
        use_once(&mut world, &format!("q{n:05}"));
    }
    let all = listed(&mut world);
    assert_eq!((all.len(), all[0].as_str()), (10_000, "q00003"), "the first that were emptied are forgotten");
    world.pass_ms(HOUR_MS);
    assert!(listed(&mut world).is_empty(), "though they are forgotten a few at a time");
}

#[test]
fn a_list_comes_in_pages_and_may_name_a_prefix() {
    let mut world = World::new();
    for n in 0..1_201 {
        world.put(Put::new(&queue(&format!("shop/{n:04}")), key("a"))).expect("taken");
    }
    for name in ["shop", "shop0", "a", "z"] {
        world.put(Put::new(&queue(name), key("a"))).expect("taken");
    }
    let mut list = ListQueues { max: usize::MAX, ..ListQueues::default() };
    let Answer::Queues(Ok(first)) = world.ask(Command::Queues(list.clone())) else { panic!("no page") };
    assert_eq!((first.queues.len(), names(first.queues)[499].as_str()), (500, "shop/0497"));
    assert_eq!(first.next, Some(queue("shop/0497")));
    assert_eq!(listed(&mut world).len(), 1_205);
    list.prefix = "shop/".into();
    let of_shop = names(world.listed(&list));
    assert_eq!(
        (of_shop.len(), of_shop[0].as_str(), of_shop[1_200].as_str()),
        (1_201, "shop/0000", "shop/1200")
    );
    let behind = ListQueues { after: Some(queue("shop/1198")), ..list.clone() };
    assert_eq!(names(world.listed(&behind)), ["shop/1199", "shop/1200"]);
    let before = ListQueues { after: Some(queue("a")), max: 1, ..list.clone() };
    assert_eq!(names(world.listed(&before)), of_shop, "one that stands before the prefix skips none");
    let none = ListQueues { prefix: "shop/x".into(), ..list };
    assert!(world.listed(&none).is_empty());
}
