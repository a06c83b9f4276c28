//! One shard of a data set with several: its ids name it.

use tickwheel_engine::*;

use crate::imports::task;
use crate::world::*;

fn shard() -> ShardId {
    ShardId::new(49, 64).expect("it is one")
}

/// Puts a task without a key. Returns its id.
fn put_keyless(world: &mut World) -> u64 {
    let Answer::Put(Ok(stored)) = world.ask(Command::Put(Put::without_key(&queue("q")))) else {
        panic!("not stored")
    };
    stored.task.id
}

#[test]
fn ids_leave_the_number_of_their_shard_also_after_a_restart() {
    let mut world = World::of_shard(shard());
    assert_eq!([put_keyless(&mut world), put_keyless(&mut world)], [49, 113]);
    let mut world = world.crash();
    let id = put_keyless(&mut world);
    assert!(id > 113 && shard().has_id(id), "{id} after a restart");
    let mut only = World::new();
    assert_eq!([put_keyless(&mut only), put_keyless(&mut only)], [1, 2]);
}

#[test]
fn a_token_names_the_shard_of_its_task() {
    let mut world = World::of_shard(shard());
    put_keyless(&mut world);
    let Answer::Lease(Ok(leased)) = world.ask(Command::Lease(Lease::new(&queue("q")))) else {
        panic!("no answer")
    };
    let token = Token::parse(&leased[0].token.to_string()).expect("a token");
    assert_eq!(ShardId::of_id(token.task_id(), 64), Some(shard()));
}

#[test]
fn an_import_keeps_the_ids_of_its_own_shard() {
    let mut world = World::of_shard(shard());
    let tasks = vec![task("own", 49, 5_000), task("other", 50, 6_000)];
    let import =
        ImportTasks { tasks, existing: Existing::Refuse, on_lease: OnLease::Refuse, ids_below: Some(100) };
    let Answer::Import(Ok(imported)) = world.ask(Command::Import(import)) else { panic!("not imported") };
    let kept = [true, false].map(|kept_id| ImportOutcome::Added { kept_id });
    assert_eq!((imported.outcomes, imported.refused), (kept.to_vec(), None));
    assert!(shard().has_id(put_keyless(&mut world)));
}
