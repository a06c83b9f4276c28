//! On what terms tasks are handed out: priority, group, tags.

use tickwheel_engine::*;

use crate::world::*;

fn tags(words: &[&str]) -> Vec<Tag> {
    words.iter().map(|word| Tag::new(word).expect("a good tag")).collect()
}

fn group(name: &str) -> Option<Group> {
    Some(Group::new(name).expect("a good group"))
}

fn with_priority(name: &str, priority: u32) -> Put {
    Put { terms: Terms { priority, ..Terms::default() }, ..Put::new(&queue("q"), key(name)) }
}

#[test]
fn a_smaller_priority_goes_first_whatever_was_due_before() {
    let mut world = World::new();
    world.put(with_priority("usual", PRIORITY_DEFAULT)).expect("taken");
    world.pass_ms(5);
    world.put(with_priority("urgent", 0)).expect("taken");
    world.put(with_priority("last", u32::MAX)).expect("taken");
    world.put(with_priority("urgent too", 0)).expect("taken");
    assert_eq!(keys(&world.lease(9, 1_000)), ["urgent", "urgent too", "usual", "last"]);
}

#[test]
fn a_patch_of_the_priority_moves_a_ready_task_in_its_line() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.put_in(name, 0);
    }
    let patch = |name, priority| Patch { priority: Some(priority), ..Patch::new(&queue("q"), key(name)) };
    let before = world.get("c").expect("live");
    let patched = world.patch(patch("c", 1)).expect("live");
    assert_eq!((patched.priority, patched.state), (1, State::Ready));
    assert!(patched.version > before.version);
    world.patch(patch("a", 2_000)).expect("live");
    let leased = world.lease(9, 1_000);
    assert_eq!(keys(&leased), ["c", "b", "a"]);
    assert_eq!(leased.iter().map(|leased| leased.priority).collect::<Vec<_>>(), [1, 1_024, 2_000]);
}

#[test]
fn a_patch_changes_what_it_names_and_keeps_the_rest() {
    let mut world = World::new();
    let body = Body { tags: tags(&["vip", "eu"]), ..Body::bytes("old") };
    let terms = Terms { priority: 7, group: group("user:7"), ..Terms::default() };
    world.put(Put { body, terms, ..Put::new(&queue("q"), key("a")) }).expect("taken");
    let patch = || Patch::new(&queue("q"), key("a"));

    let task = world.patch(patch().payload("new")).expect("live");
    assert_eq!((&task.body.payload[..], &task.body.tags), (&b"new"[..], &tags(&["vip", "eu"])));
    assert_eq!((task.priority, task.extra.group.clone()), (7, group("user:7")));

    let task = world.patch(Patch { tags: Some(tags(&["us"])), ..patch() }).expect("live");
    assert_eq!((&task.body.payload[..], &task.body.tags), (&b"new"[..], &tags(&["us"])));

    let task = world.patch(Patch { group: Some(None), ..patch() }).expect("live");
    assert_eq!((task.extra.group, task.priority), (None, 7));
    let task = world.patch(Patch { group: Some(group("user:8")), ..patch() }).expect("live");
    assert_eq!(task.extra.group, group("user:8"));
}

#[test]
fn terms_survive_a_crash_and_come_with_the_delivery() {
    let mut world = World::new();
    let body = Body { tags: tags(&["vip"]), ..Body::bytes("x") };
    let terms = Terms { priority: 7, group: group("g"), ..Terms::default() };
    world.put(Put { body, terms, ..Put::new(&queue("q"), key("a")).at(ms(10)) }).expect("taken");
    let mut world = world.crash();
    world.pass_ms(10);
    let leased = world.lease(1, 1_000);
    let task = &leased[0];
    assert_eq!((task.priority, &task.group, &task.body.tags), (7, &group("g"), &tags(&["vip"])));
    // A put is a new beginning: what it does not name has its default again.
    assert_eq!(world.nack(task.token, None), TokenAnswer::Nacked);
    world.put(Put::new(&queue("q"), key("a"))).expect("taken");
    let task = world.get("a").expect("live");
    assert_eq!((task.priority, task.extra.group, task.body.tags.len()), (PRIORITY_DEFAULT, None, 0));
}

/// The story: the clock stepped back, and the list of what is ready ended at the task that was last in line, though another with a smaller
/// priority was due after it.
#[test]
fn the_list_of_what_is_ready_has_all_of_it_whatever_the_order_of_the_line() {
    let mut world = World::new();
    world.put(with_priority("first in line, due last", 0).at(ms(9_000))).expect("taken");
    world.put(with_priority("last in line", 9).at(ms(10))).expect("taken");
    world.pass_ms(9_000);
    world.step_wall_ms(-8_000);
    let ready: Vec<String> = world.list(Some(State::Ready)).into_iter().map(|(key, _)| key).collect();
    assert_eq!(ready, ["last in line", "first in line, due last"]);
}
