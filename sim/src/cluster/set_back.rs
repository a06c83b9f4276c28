//! The clock of the database is set back while a process cannot reach it. A seed met this order once, and each change of the workload gives seeds
//! another one.

use super::*;
use crate::oracle::Mode;

const LEASE_MS: u32 = 1_000;
const BACK_MS: i64 = 2_000;

/// One process that owns one shard above a database without faults.
fn world() -> World {
    let mut rng = Rng::new(131);
    let mut plan = Plan::draw(&mut rng);
    plan.faults = plan.faults.calm();
    plan.faults.asynchronous = false;
    (plan.nodes, plan.shards, plan.lease_ms, plan.row_think_ns) = (1, 1, LEASE_MS, None);
    // The task is in memory before it is due.
    (plan.horizon_ms, plan.near_bytes, plan.scan_max) = (3_600_000, 1 << 20, 1_024);
    let mut world = World::of(plan, rng, Wrong::Nothing, false);
    world.is_hostile = false;
    world.next_mishap_ns = u64::MAX;
    world.workload.rest();
    world.until("the shard has no owner", |world| world.is_served(0)).expect("it takes the shard");
    world
}

fn ask(world: &mut World, key: Option<&str>, verb: Verb) {
    let queue = world.plan.queues(0).remove(0);
    assert!(world.send(0, 0, Call { queue, key: key.map(str::to_owned), verb }));
    world.until("a call is not answered", |world| world.open.is_empty()).expect("the answer is right");
}

fn is_valid(world: &World) -> bool {
    world.nodes[0].as_ref().is_some_and(SimNode::is_valid)
}

fn wall_ms(world: &World) -> i64 {
    i64::try_from(world.database.wall_ns() / 1_000_000).expect("small")
}

/// Puts a task, and sets the clock back once the process is in doubt. Returns the due time of the task (ms).
fn put_and_set_back(world: &mut World) -> i64 {
    let due_ms = wall_ms(world) + 4_000;
    let due = Some(Due::At(due_ms));
    ask(world, Some("k0"), Verb::Put { due, payload: 2, mode: Mode::Upsert, if_match: None, revoke: false });
    world.database.cut(0, true);
    world.until("the process is never in doubt", |world| !is_valid(world)).expect("its beats are lost");
    world.step_clock(-BACK_MS);
    due_ms
}

#[test]
fn a_task_that_became_ready_by_the_clock_before_is_delivered_once_the_process_is_valid() {
    let mut world = world();
    let due_ms = put_and_set_back(&mut world);
    world.until("the time stands still", |world| wall_ms(world) + BACK_MS > due_ms).expect("no call is open");
    assert!(!is_valid(&world));
    world.database.cut(0, false);
    world.until("the shard has no owner", |world| world.is_served(0)).expect("no node has taken it");
    ask(&mut world, None, Verb::Lease { max: 1, lease_ms: 1_000 });
    assert_eq!(world.seen.delivered, 1, "it was ready");
    assert!(wall_ms(&world) < due_ms, "the clock of the database has not reached the due time");
}

#[test]
fn a_task_that_was_not_ready_waits_for_the_new_clock() {
    let mut world = world();
    let due_ms = put_and_set_back(&mut world);
    world.database.cut(0, false);
    world.until("the shard has no owner", |world| world.is_served(0)).expect("no node has taken it");
    while world.seen.delivered == 0 {
        ask(&mut world, None, Verb::Lease { max: 1, lease_ms: 1_000 });
        world.step().expect("nothing is wrong");
    }
    assert!(wall_ms(&world) >= due_ms, "the new clock has reached the due time");
}
