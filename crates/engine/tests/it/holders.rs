//! Who has what: the list of leases, and the workers that gave a name.

use tickwheel_engine::*;

use crate::world::*;

fn all() -> ListLeases {
    ListLeases { queue: None, worker: None, after: None, max: LEASES_PAGE_MAX }
}

fn page(world: &mut World, list: ListLeases) -> LeasePage {
    let Answer::Leases(Ok(page)) = world.ask(Command::Leases(list)) else { panic!("no page") };
    page
}

fn keys_of(page: &LeasePage) -> Vec<&str> {
    page.leases.iter().map(|lease| lease.key.as_str()).collect()
}

fn take(world: &mut World, of: &str, worker: Option<&str>) -> Leased {
    let worker = worker.map(Into::into);
    let lease = Lease { worker, lease_ms: Some(60_000), ..Lease::new(&queue(of)) };
    let Answer::Lease(Ok(leased)) = world.ask(Command::Lease(lease)) else { panic!("another answer") };
    leased.into_iter().next().expect("one is ready")
}

#[test]
fn a_lease_says_who_has_the_task_and_since_when() {
    let mut world = World::new();
    world.put_in("a", 0);
    world.pass_ms(7);
    let leased = take(&mut world, "q", Some("mailer-1"));
    let lease = page(&mut world, all()).leases.remove(0);
    assert_eq!((lease.queue.as_str(), lease.key.as_str(), lease.attempt), ("q", "a", 1));
    assert_eq!((lease.worker.as_deref(), lease.since), (Some("mailer-1"), Some(ms(7))));
    assert_eq!(lease.until, leased.lease_until);
    let task = world.get("a").expect("live");
    assert_eq!((task.leased_by.as_deref(), task.leased_since), (Some("mailer-1"), Some(ms(7))));
    world.pass_ms(10);
    assert_eq!(world.extend(leased.token, 90_000), TokenAnswer::Extended);
    let lease = page(&mut world, all()).leases.remove(0);
    assert_eq!(
        (lease.worker.as_deref(), lease.since),
        (Some("mailer-1"), Some(ms(7))),
        "it is the same lease"
    );
    assert_eq!(lease.until, ms(17 + 90_000));
    assert_eq!(world.nack(leased.token, None), TokenAnswer::Nacked);
    assert_eq!(page(&mut world, all()), LeasePage::default());
    assert_eq!(world.get("a").expect("live").leased_by, None);
    // One that waits for a task gets it under its name, and so does one that takes a task by its id.
    let lease = Lease { worker: Some("mailer-2".into()), wait: true, ..Lease::new(&queue("p")) };
    world.send(Command::Lease(lease));
    world.put(Put::new(&queue("p"), key("b"))).expect("taken");
    let id = world.put_in("c", 60_000).task.id;
    let act = Act::Lease { lease_ms: None };
    let worker = Some("10.0.0.7".into());
    world.ask(Command::ById(ById { id, act, within: None, if_version: None, worker }));
    let page = page(&mut world, all());
    let workers: Vec<_> =
        page.leases.iter().map(|lease| (lease.key.as_str(), lease.worker.as_deref())).collect();
    assert_eq!(workers, [("b", Some("mailer-2")), ("c", Some("10.0.0.7"))]);
}

#[test]
fn leases_come_page_by_page_in_the_order_in_which_they_began() {
    let mut world = World::new();
    for (name, of, worker) in [("a", "q", "x"), ("b", "p", "y"), ("c", "q", "y"), ("d", "q", "x")] {
        world.put(Put::new(&queue(of), key(name))).expect("taken");
        take(&mut world, of, Some(worker));
    }
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = page(&mut world, ListLeases { after, max: 2, ..all() });
        found.push(keys_of(&page).join(" "));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["a b", "c d"], "and the last page says that it is");
    let of_q = ListLeases { queue: Some(queue("q")), ..all() };
    assert_eq!(keys_of(&page(&mut world, of_q)), ["a", "c", "d"]);
    let of_y = ListLeases { worker: Some("y".into()), ..all() };
    assert_eq!(keys_of(&page(&mut world, of_y)), ["b", "c"]);
    let both = ListLeases { queue: Some(queue("q")), worker: Some("y".into()), ..all() };
    let first = page(&mut world, ListLeases { max: 2, ..both.clone() });
    assert!(first.leases.is_empty() && first.next.is_some(), "a page looks at no more than it was told");
    assert_eq!(keys_of(&page(&mut world, ListLeases { after: first.next, ..both })), ["c"]);
}

/// A lease goes on over a stop. Who has it is not written down, for that would cost each lease a write.
#[test]
fn after_a_restart_it_is_unknown_who_has_what() {
    let mut world = World::new();
    world.put_in("a", 0);
    let leased = take(&mut world, "q", Some("mailer-1"));
    let mut world = world.stop();
    let lease = page(&mut world, all()).leases.remove(0);
    assert_eq!((lease.key.as_str(), lease.worker, lease.since), ("a", None, None));
    assert_eq!(lease.until, leased.lease_until);
    assert_eq!(world.extend(leased.token, 90_000), TokenAnswer::Extended);
    let mut world = world.crash();
    // The stop of the life before the last wrote it down, and does not count any more.
    assert_eq!(page(&mut world, all()), LeasePage::default());
    assert_eq!(world.extend(leased.token, 90_000), TokenAnswer::Extended, "its token still speaks for it");
    let lease = page(&mut world, all()).leases.remove(0);
    assert_eq!((lease.worker, lease.since), (None, None));
}

/// Nothing is said of a lease that may not have been written down.
#[test]
fn after_the_store_has_failed_an_unsure_lease_is_not_shown() {
    let mut world = World::new();
    world.put_in("a", 0);
    // The first lease of a task in a life is written down.
    let mut world = world.crash();
    world.fail_commits = true;
    world.send(Command::Lease(Lease::new(&queue("q"))));
    let told = world.ask(Command::Leases(all()));
    assert!(matches!(told, Answer::Leases(Err(Unavailable::Indeterminate { .. }))), "{told:?}");
}

#[test]
fn a_page_of_leases_has_a_limit_whatever_the_caller_asks_for() {
    let mut world = World::new();
    for task in 0..=LEASES_PAGE_MAX {
        world.put_in(&task.to_string(), 0);
    }
    assert_eq!(world.lease(LEASES_PAGE_MAX + 1, 60_000).len(), LEASES_PAGE_MAX + 1);
    let first = page(&mut world, ListLeases { max: usize::MAX, ..all() });
    assert_eq!(first.leases.len(), LEASES_PAGE_MAX);
    let second = page(&mut world, ListLeases { max: usize::MAX, after: first.next, ..all() });
    assert_eq!((second.leases.len(), second.next), (1, None));
}
