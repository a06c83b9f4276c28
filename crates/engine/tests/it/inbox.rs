//! Rows of the store's inbox: puts and cancels of transactions that have committed.

use std::collections::{BTreeMap, BTreeSet};

use tickwheel_engine::*;

use crate::twins::Draw;
use crate::world::*;

fn put_row(row: u64, name: &str, due: i64) -> TakeRow {
    let act = RowAct::Put { due_at: ms(due), put_at: ms(0), body: Body::bytes(format!("row {row}")) };
    TakeRow { row, queue: queue("q"), key: key(name), act }
}

fn cancel_row(row: u64, name: &str) -> TakeRow {
    TakeRow { row, queue: queue("q"), key: key(name), act: RowAct::Cancel }
}

fn take(world: &mut World, take: TakeRow) -> Result<(), TakeRowError> {
    let Answer::TakeRow(result) = world.ask(Command::TakeRow(take)) else { panic!("another answer") };
    result
}

fn change(world: &mut World, change: QueueChange) {
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
}

#[test]
fn a_row_makes_a_task_and_its_id_is_in_the_same_commit() {
    let mut world = World::new();
    assert_eq!(take(&mut world, put_row(7, "a", 30)), Ok(()));
    assert_eq!(world.taken, [(vec![7], vec!["a".to_owned()])]);
    let task = world.get("a").expect("it is there");
    assert_eq!((task.state, task.due_at, task.put_at), (State::Scheduled, ms(30), ms(0)));
    assert_eq!(task.body.payload, b"row 7");
    world.pass_ms(29);
    assert_eq!(world.lease(1, 1_000), []);
    world.pass_ms(1);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
    assert_eq!(take(&mut world, put_row(8, "past", -5)), Ok(()));
    assert_eq!(keys(&world.lease(1, 1_000)), ["past"], "an instant in the past is now");
}

/// A committed row is owed a task, whatever the state of its queue is.
#[test]
fn a_row_is_taken_by_a_queue_that_is_drained_full_or_paused() {
    let mut world = World::new();
    let settings = QueueSettings { max_backlog: Some(1), ..QueueSettings::default() };
    change(&mut world, QueueChange::Settings(settings));
    world.put_in("live", 0);
    let more = || Put::new(&queue("q"), key("more"));
    assert_eq!(world.put(more()), Err(PutError::BacklogFull { limit: 1 }));
    assert_eq!(take(&mut world, put_row(1, "beyond", 0)), Ok(()));
    change(&mut world, QueueChange::Drain);
    assert_eq!(world.put(more()), Err(PutError::Draining));
    assert_eq!(take(&mut world, put_row(2, "drained", 0)), Ok(()));
    change(&mut world, QueueChange::Pause { ms: None });
    assert_eq!(take(&mut world, put_row(3, "paused", 0)), Ok(()));
    assert_eq!(take(&mut world, cancel_row(4, "live")), Ok(()));
    let mut world = world.crash();
    assert_eq!(world.lease(9, 1_000), [], "the queue is paused");
    change(&mut world, QueueChange::Resume);
    assert_eq!(keys(&world.lease(9, 1_000)), ["beyond", "drained", "paused"]);
}

#[test]
fn a_row_replaces_a_live_task_but_not_one_that_a_worker_has() {
    let mut world = World::new();
    let id = world.put_in("a", 10).task.id;
    assert_eq!(take(&mut world, put_row(1, "a", 0)), Ok(()));
    let leased = world.lease(1, 1_000);
    assert_eq!((leased[0].id, &leased[0].body.payload[..]), (id, &b"row 1"[..]));
    let refused = take(&mut world, put_row(2, "a", 0)).expect_err("a worker has it");
    assert_eq!(refused, TakeRowError::Refused(PutError::Leased));
    let told = refused.to_string();
    assert!(told.contains("put the row again") && !told.contains("revoke"), "SQL has no revoke: {told}");
    assert_eq!(world.taken.len(), 1, "what was refused is not taken");
    assert_eq!(take(&mut world, cancel_row(3, "a")), Ok(()), "the worker has begun");
    assert_eq!(world.taken.last(), Some(&(vec![3], vec![])));
    assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    assert_eq!(take(&mut world, put_row(4, "a", 0)), Ok(()), "the key is free again");
}

#[test]
fn a_row_that_is_too_far_ahead_is_refused() {
    let mut world = World::new();
    let far = put_row(1, "a", 900_000 * 86_400_000);
    assert!(matches!(take(&mut world, far), Err(TakeRowError::Refused(PutError::TooFar { .. }))));
    assert_eq!((world.taken.len(), world.get("a")), (0, Err(GetError::NotFound)));
}

/// Without an effect there is nothing to write but the id, and the row may be deleted only once that is durable.
#[test]
fn a_row_without_an_effect_is_answered_after_a_commit_of_its_own() {
    let mut world = World::new();
    world.hold_commits = true;
    let call = world.send(Command::TakeRow(cancel_row(5, "nothing")));
    assert_eq!(world.answer(call), None, "the commit is under way");
    assert!(!world.engine.is_idle());
    world.release();
    assert_eq!(world.answer(call), Some(Answer::TakeRow(Ok(()))));
    assert_eq!(world.taken, [(vec![5], vec![])]);
}

/// Several rows of one key and a call beside them are one effect in one batch, and all rows are in that batch, each once.
#[test]
fn rows_whose_effects_merge_are_in_the_batch_of_the_merged_effect() {
    let mut world = World::new();
    world.hold_commits = true;
    let first = world.send(Command::TakeRow(put_row(1, "other", 0)));
    let calls = world.send_together([
        Command::TakeRow(put_row(2, "a", 50)),
        Command::TakeRow(cancel_row(3, "a")),
        Command::TakeRow(put_row(4, "a", 60)),
        Command::Put(Put::new(&queue("q"), key("a")).at(ms(70))),
        Command::TakeRow(put_row(5, "b", 0)),
        Command::TakeRow(cancel_row(6, "b")),
    ]);
    assert!(calls.iter().all(|call| world.answer(*call).is_none()));
    world.release();
    assert!(calls.iter().chain([&first]).all(|call| world.answer(*call).is_some()));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    // The cancel ends one task and the put makes another, so the key has two effects.
    let expected = [(vec![1], names(&["other"])), (vec![2, 3, 4, 5, 6], names(&["a", "a", "b"]))];
    assert_eq!(world.taken, expected);
    assert_eq!(world.get("a").expect("the last put won").due_at, ms(70));
    assert_eq!(world.get("b"), Err(GetError::NotFound));
}

/// A batch that is full after the effect is not sealed before it has the id.
#[test]
fn a_full_batch_parts_no_effect_from_its_row() {
    let bounds = Bounds { batch_effects: 1, ..Bounds::default() };
    let mut world = World::with(EngineConfig { bounds, ..EngineConfig::default() });
    world.hold_commits = true;
    let calls =
        world.send_together([1, 2, 3].map(|row| Command::TakeRow(put_row(row, &format!("k{row}"), 9))));
    world.release();
    assert!(calls.iter().all(|call| world.answer(*call) == Some(Answer::TakeRow(Ok(())))));
    let expected = [1, 2, 3].map(|row| (vec![row], vec![format!("k{row}")]));
    assert_eq!(world.taken, expected);
}

/// After a stop or a failure the row stays in the inbox, and is taken later.
#[test]
fn a_row_is_not_refused_for_good_when_the_engine_takes_no_changes() {
    let mut world = World::new();
    world.fail_commits = true;
    let failed = take(&mut world, put_row(1, "a", 0));
    assert!(
        matches!(failed, Err(TakeRowError::Unavailable(Unavailable::Indeterminate { .. }))),
        "{failed:?}"
    );
    let after = take(&mut world, put_row(1, "a", 0));
    assert!(matches!(after, Err(TakeRowError::Unavailable(Unavailable::ReadOnly { .. }))), "{after:?}");
    let mut world = world.crash();
    assert_eq!(take(&mut world, put_row(1, "a", 0)), Ok(()));
    world.input(Input::Stop);
    let stopped = take(&mut world, put_row(2, "b", 0));
    assert_eq!(stopped, Err(TakeRowError::Unavailable(Unavailable::Closed)));
}

/// Random rows, calls, held commits and crashes. The inbox of the model loses exactly the rows that the commits name; a row that is there
/// after a crash comes again. In the end each put was done by a worker once, whatever crashed.
#[test]
fn each_row_has_its_effect_once_whatever_crashes() {
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let mut world = World::new();
        let mut inbox: BTreeMap<u64, TakeRow> = BTreeMap::new();
        let mut under_way: BTreeSet<u64> = BTreeSet::new();
        let mut done: BTreeMap<String, u64> = BTreeMap::new();
        let (mut next, mut crashes) = (1, 0);
        for step in 0..200 {
            let ends = step >= 150;
            match draw.below(if ends { 8 } else { 12 }) {
                0..4 => {
                    let rows: Vec<TakeRow> =
                        inbox.values().filter(|take| !under_way.contains(&take.row)).cloned().collect();
                    under_way.extend(rows.iter().map(|take| take.row));
                    for take in rows {
                        world.send(Command::TakeRow(take));
                    }
                }
                4..6 => world.release(),
                6..8 => {
                    world.release();
                    for leased in world.lease(3, 60_000) {
                        assert_eq!(world.ack(leased.token), TokenAnswer::Acked);
                        *done.entry(leased.key.as_str().to_owned()).or_default() += 1;
                    }
                }
                8 => world.hold_commits = true,
                9 if draw.below(4) == 0 => {
                    settle(&mut world, &mut inbox);
                    world = world.crash();
                    under_way.clear();
                    crashes += 1;
                }
                _ => {
                    inbox.insert(next, put_row(next, &format!("k{next}"), 0));
                    next += 1;
                }
            }
            settle(&mut world, &mut inbox);
        }
        world.release();
        settle(&mut world, &mut inbox);
        assert_eq!(inbox, BTreeMap::new(), "seed {seed}: all rows were taken");
        for leased in world.lease(1_000, 60_000) {
            assert_eq!(world.ack(leased.token), TokenAnswer::Acked);
            *done.entry(leased.key.as_str().to_owned()).or_default() += 1;
        }
        let expected: BTreeMap<String, u64> = (1..next).map(|row| (format!("k{row}"), 1)).collect();
        assert_eq!(done, expected, "seed {seed}, {crashes} crashes");
    }
}

/// Deletes the rows that the commits of before have taken, as a store does.
fn settle(world: &mut World, inbox: &mut BTreeMap<u64, TakeRow>) {
    for (rows, _) in std::mem::take(&mut world.taken) {
        for row in rows {
            assert!(inbox.remove(&row).is_some(), "row {row} was taken twice");
        }
    }
}
