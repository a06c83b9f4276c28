//! Tasks and schedules that come from another store.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::*;

use crate::twins::Draw;
use crate::world::*;

/// A task as it stood elsewhere, due `due_ms` (ms) after the start.
pub(crate) fn task(name: &str, id: u64, due_ms: i64) -> ImportTask {
    ImportTask {
        id,
        queue: queue("q"),
        key: key(name),
        due_at: ms(due_ms),
        put_at: ms(-1_000),
        priority: PRIORITY_DEFAULT,
        attempts: 0,
        body: Arc::new(Body::bytes(name.as_bytes())),
        extra: Extra::default(),
    }
}

fn dead(name: &str, id: u64, keyless: bool) -> ImportTask {
    let dead = Dead { at: ms(-10), due_at: ms(-50), why: Death::MaxAttempts, keyless };
    let failures = vec![Failure { at: ms(-10), attempt: 3, how: Failed::Nacked, reason: Some("no".into()) }];
    let extra = Extra { dead: Some(dead), failures, ..Extra::default() };
    ImportTask { attempts: 3, extra, ..task(name, id, -50) }
}

fn import(world: &mut World, existing: Existing, tasks: Vec<ImportTask>) -> Imported {
    let import = ImportTasks { tasks, existing, on_lease: OnLease::Refuse, ids_below: Some(100) };
    let Answer::Import(imported) = world.ask(Command::Import(import)) else { panic!("another answer") };
    imported.expect("answered")
}

fn outcomes(world: &mut World, existing: Existing, tasks: Vec<ImportTask>) -> Vec<ImportOutcome> {
    let imported = import(world, existing, tasks);
    assert_eq!(imported.refused, None);
    imported.outcomes
}

/// All tasks, page by page.
fn everything(world: &mut World) -> Vec<TaskView> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let Answer::AllTasks(Ok(page)) = world.ask(Command::AllTasks(ListAllTasks { max: 3, after })) else {
            panic!("no page")
        };
        all.extend(page.tasks);
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

const NEW: ImportOutcome = ImportOutcome::Added { kept_id: true };
const RENAMED: ImportOutcome = ImportOutcome::Added { kept_id: false };

fn skipped(present: Present) -> ImportOutcome {
    ImportOutcome::Skipped(present)
}

#[test]
fn a_task_stands_as_it_stood_elsewhere() {
    let mut world = World::new();
    let moment = |at| Moment { at: ms(at), payload: b"m".to_vec(), content_type: "a/b".into() };
    let mut planned = task("planned", 12, 60_000);
    planned.body = Arc::new(Body { timeline: vec![moment(-5), moment(60_000)], ..Body::default() });
    planned.extra.step = 1;
    let mut rich = task("rich", 11, -5);
    rich.attempts = 2;
    rich.priority = 7;
    rich.extra = Extra {
        group: Some(Group::new("g").expect("a group")),
        ttr_ms: Some(9_000),
        expire_at: Some(ms(90_000)),
        trace: Some("trace".into()),
        retry: Some(Retry { max_attempts: Some(5), backoff: None }),
        failures: dead("x", 0, false).extra.failures,
        tally: Tally { leases: 2, nacks: 2, ..Tally::default() },
        ..Extra::default()
    };
    let tasks = vec![rich.clone(), planned, dead("dead", 13, false)];
    assert_eq!(outcomes(&mut world, Existing::Refuse, tasks), [NEW; 3]);
    let seen = world.get("rich").expect("it is there");
    assert_eq!((seen.id, seen.state, seen.due_at, seen.put_at), (11, State::Ready, ms(-5), ms(-1_000)));
    assert_eq!((seen.attempt, seen.priority, seen.extra.ttr_ms), (2, 7, Some(9_000)));
    assert_eq!((seen.extra.failures, seen.extra.tally), (rich.extra.failures, rich.extra.tally));
    assert_eq!(
        (seen.extra.expire_at, seen.extra.trace, seen.extra.group),
        (Some(ms(90_000)), rich.extra.trace, rich.extra.group)
    );
    let seen = world.get("planned").expect("it is there");
    assert_eq!((seen.id, seen.state, seen.step()), (12, State::Scheduled, 1));
    let seen = world.get("dead").expect("it is there");
    assert_eq!((seen.id, seen.state, seen.due_at, seen.attempt), (13, State::Dead, ms(-50), 3));
    assert_eq!(seen.extra.dead.map(|dead| (dead.at, dead.why)), Some((ms(-10), Death::MaxAttempts)));
    assert_eq!(world.lease(1, 1_000)[0].attempt, 3, "its attempts go on");
    world.pass_ms(30 * 86_400_000);
    assert_eq!(world.get("dead"), Err(GetError::NotFound), "it is forgotten thirty days after it died");
}

/// The tasks of a random life, in another engine: the same tasks, live and dead, with the same ids.
#[test]
fn what_is_listed_is_what_an_import_makes() {
    for seed in 0..300 {
        let (mut draw, mut world) = (Draw(seed), World::new());
        for _ in 0..40 {
            let name = draw.pick(&["a", "b", "c", "d", "e"]);
            match draw.below(8) {
                0..4 => {
                    let retry = Retry { max_attempts: Some(draw.below(3) as u32 + 1), backoff: None };
                    let expire_after_ms = draw.pick(&[None, Some(3_000_000)]);
                    let terms =
                        Terms { retry: draw.pick(&[None, Some(retry)]), expire_after_ms, ..Terms::default() };
                    let due = Due::After { ms: draw.pick(&[0, 5, 400, 1_000_000]) };
                    let body = Body::bytes(vec![draw.below(200) as u8; 9]);
                    let _taken = world.put(Put { due, terms, body, ..Put::new(&queue("q"), key(name)) });
                }
                4 => drop(world.cancel(name)),
                5..7 => {
                    for leased in world.lease(2, 50) {
                        world.nack(leased.token, draw.pick(&[None, Some(70)]));
                    }
                }
                _ => world.pass_ms(draw.pick(&[1, 60, 500])),
            }
        }
        world.pass_ms(60);
        let tasks = everything(&mut world);
        let mut other = World::new();
        other.pass_ms(u64::try_from(world.now.wall.as_ms() - START_MS).expect("it went on"));
        let imported: Vec<_> = tasks.iter().map(as_import).collect();
        outcomes(&mut other, Existing::Refuse, imported.clone());
        assert_eq!(plain(everything(&mut other)), plain(tasks.clone()), "seed {seed}");
        let again = outcomes(&mut other, Existing::Skip, imported.clone());
        assert!(again.iter().all(|one| matches!(one, ImportOutcome::Skipped(_))), "seed {seed}: {again:?}");
        let mut after = other.crash();
        assert_eq!(plain(everything(&mut after)), plain(tasks), "seed {seed}, after a crash");
        outcomes(&mut after, Existing::Skip, imported);
        assert_eq!(after.put_in("new", 5).task.id, IDS_OF_ITS_OWN, "seed {seed}");
    }
}

/// The first id of its own that an engine gives out if it keeps the ids of another engine.
const IDS_OF_ITS_OWN: u64 = 1 << 20;

fn as_import(task: &TaskView) -> ImportTask {
    ImportTask {
        id: task.id,
        queue: task.queue.clone(),
        key: task.key.clone(),
        due_at: task.due_at,
        put_at: task.put_at,
        priority: task.priority,
        attempts: task.attempt,
        body: Arc::clone(&task.body),
        extra: Extra {
            group: task.extra.group.clone(),
            ttr_ms: task.extra.ttr_ms,
            expire_at: task.extra.expire_at,
            trace: task.extra.trace.clone(),
            retry: task.extra.retry,
            failures: task.extra.failures.clone(),
            dead: task.extra.dead,
            step: task.extra.step,
            tally: task.extra.tally,
            ..Extra::default()
        },
    }
}

/// Leaves out what belongs to one engine alone.
fn plain(tasks: Vec<TaskView>) -> BTreeMap<u64, TaskView> {
    let none = Seq::ZERO;
    tasks.into_iter().map(|task| (task.id, TaskView { version: none, put_seq: none, ..task })).collect()
}

#[test]
fn an_import_stops_before_the_first_that_is_refused() {
    let mut world = World::new();
    world.put_in("b", 5);
    let tasks = ["a", "b", "c"].map(|name| task(name, 0, 100)).to_vec();
    let imported = import(&mut world, Existing::Refuse, tasks);
    assert_eq!(imported.outcomes, [RENAMED]);
    assert!(matches!(imported.refused, Some(ImportError::Live { .. })), "{imported:?}");
    assert!(world.get("a").is_ok() && world.get("c") == Err(GetError::NotFound));
    let far = ImportTask { due_at: ms(200 * 365 * 86_400_000), ..task("far", 0, 0) };
    let imported = import(&mut world, Existing::Skip, vec![far, task("c", 0, 100)]);
    assert!(matches!(imported.refused, Some(ImportError::TooFar { .. })), "{imported:?}");
    let mut stepped = task("s", 0, 0);
    stepped.extra.step = 1;
    let imported = import(&mut world, Existing::Skip, vec![stepped]);
    assert_eq!(imported.refused, Some(ImportError::NoStep { step: 1, instants: 0 }));
    assert_eq!(world.get("c"), Err(GetError::NotFound));
}

#[test]
fn each_choice_about_what_is_there() {
    let mut world = World::new();
    let first = world.put_in("a", 500).task;
    let newer = task("a", 7, 900);
    assert_eq!(outcomes(&mut world, Existing::Skip, vec![newer.clone()]), [skipped(Present::Live)]);
    assert_eq!(world.get("a").expect("live").due_at, first.due_at);
    assert_eq!(outcomes(&mut world, Existing::Replace, vec![newer.clone()]), [ImportOutcome::Replaced]);
    let seen = world.get("a").expect("live");
    assert_eq!((seen.id, seen.due_at), (first.id, ms(900)));
    // A worker has it.
    world.pass_ms(900);
    let token = world.lease(1, 10_000)[0].token;
    assert_eq!(import(&mut world, Existing::Replace, vec![newer.clone()]).refused, Some(ImportError::Leased));
    let revoke = ImportTasks {
        tasks: vec![newer.clone()],
        existing: Existing::Replace,
        on_lease: OnLease::Revoke,
        ids_below: None,
    };
    let Answer::Import(Ok(imported)) = world.ask(Command::Import(revoke)) else { panic!("another answer") };
    assert_eq!(imported.outcomes, [ImportOutcome::Replaced]);
    assert_eq!(world.ack(token), TokenAnswer::Revoked);
    // A dead one never takes the place of a live one.
    assert_eq!(outcomes(&mut world, Existing::Skip, vec![dead("a", 0, false)]), [skipped(Present::Live)]);
    assert!(matches!(
        import(&mut world, Existing::Refuse, vec![dead("a", 0, false)]).refused,
        Some(ImportError::Live { .. })
    ));
    assert_eq!(outcomes(&mut world, Existing::Replace, vec![dead("a", 0, false)]), [RENAMED]);
    assert_eq!(world.get("a").expect("live").state, State::Ready, "its key leads to the live one");
    assert_eq!(world.list(Some(State::Dead)).len(), 1);
}

#[test]
fn the_dead_and_their_keys() {
    let mut world = World::new();
    assert_eq!(
        outcomes(&mut world, Existing::Refuse, vec![dead("a", 5, false), dead("a", 6, true)]),
        [NEW; 2]
    );
    assert_eq!(world.get("a").expect("dead").id, 5);
    for tasks in [vec![dead("a", 5, false)], vec![dead("a", 6, true)]] {
        assert_eq!(outcomes(&mut world, Existing::Skip, tasks.clone()), [skipped(Present::Dead)]);
        assert!(matches!(
            import(&mut world, Existing::Refuse, tasks).refused,
            Some(ImportError::Dead { .. })
        ));
    }
    assert_eq!(outcomes(&mut world, Existing::Replace, vec![dead("a", 5, false)]), [ImportOutcome::Replaced]);
    // A task that was put after the dead one died takes the key, as a put does. The dead task itself, alive in the import, does not.
    assert_eq!(outcomes(&mut world, Existing::Skip, vec![task("a", 5, 100)]), [skipped(Present::Dead)]);
    let later = ImportTask { put_at: ms(-5), ..task("a", 8, 100) };
    assert_eq!(outcomes(&mut world, Existing::Refuse, vec![later]), [NEW]);
    assert_eq!(world.get("a").map(|task| (task.id, task.state)), Ok((8, State::Scheduled)));
    assert_eq!(world.list(Some(State::Dead)).len(), 2);
    // Where ids are not kept, an import cannot tell whether the task is there.
    let mut other = World::new();
    other.put_in("x", 0);
    assert_eq!(outcomes(&mut other, Existing::Skip, vec![dead("a", 6, true)]), [skipped(Present::Keyless)]);
    assert_eq!(outcomes(&mut other, Existing::Refuse, vec![dead("a", 6, true)]), [RENAMED]);
    assert_eq!(other.get("a"), Err(GetError::NotFound));
}

#[test]
fn what_has_ended_here_since_it_was_put_is_not_made_again_by_skip() {
    for restart in [false, true] {
        let mut world = World::new();
        outcomes(&mut world, Existing::Refuse, vec![task("a", 1, -5), task("b", 2, 5_000)]);
        let token = world.lease(1, 1_000)[0].token;
        world.ack(token);
        world.cancel("b").expect("cancelled");
        let mut world = if restart { world.crash() } else { world };
        let again = vec![task("a", 1, -5), task("b", 2, 5_000)];
        assert_eq!(outcomes(&mut world, Existing::Skip, again.clone()), [skipped(Present::Ended); 2]);
        // A task that was put later is another task.
        let later = ImportTask { put_at: ms(1), ..task("a", 1, 100) };
        assert_eq!(outcomes(&mut world, Existing::Skip, vec![later]), [RENAMED], "its id is used up");
        outcomes(&mut world, Existing::Replace, again);
        assert!(world.get("b").is_ok());
    }
}

#[test]
fn ids_are_kept_where_none_was_given_out() {
    let mut world = World::new();
    assert_eq!(
        outcomes(&mut world, Existing::Refuse, vec![task("a", 41, 100), task("b", 41, 100)]),
        [NEW, RENAMED]
    );
    assert_eq!(world.get("b").expect("live").id, IDS_OF_ITS_OWN, "an id is one task's");
    assert_eq!(
        outcomes(&mut world, Existing::Refuse, vec![task("c", IDS_OF_ITS_OWN + 9, 100)]),
        [RENAMED],
        "it may still be given out"
    );
    assert_eq!(outcomes(&mut world, Existing::Refuse, vec![task("d", 0, 100)]), [RENAMED]);
    assert_eq!(
        outcomes(&mut world, Existing::Refuse, vec![task("e", 42, 100)]),
        [NEW],
        "until the next start"
    );
    let mut world = world.crash();
    assert_eq!(
        outcomes(&mut world, Existing::Refuse, vec![task("f", 43, 100)]),
        [RENAMED],
        "ids of its own were given out"
    );
    let mut used = World::new();
    used.put_in("x", 5);
    assert_eq!(outcomes(&mut used, Existing::Refuse, vec![task("a", 41, 100)]), [RENAMED]);
    // After a crash in the midst of an import ids are still kept.
    let mut begun = World::new();
    outcomes(&mut begun, Existing::Refuse, vec![task("a", 41, 100)]);
    let mut begun = begun.crash();
    assert_eq!(
        outcomes(&mut begun, Existing::Skip, vec![task("a", 41, 100), task("b", 42, 100)]),
        [skipped(Present::Live), NEW]
    );
}

/// A file may claim any ids. Those beyond what all readers of JSON agree about are not kept, and the shard's own stay below them.
#[test]
fn ids_that_no_server_gives_out_are_not_kept() {
    for (below, outcome) in [(1 << 52, NEW), ((1 << 52) + 1, RENAMED), (u64::MAX, RENAMED)] {
        let mut world = World::new();
        let tasks = vec![task("a", (1 << 52) - 1, 100)];
        let (existing, on_lease) = (Existing::Refuse, OnLease::Refuse);
        let import = ImportTasks { tasks, existing, on_lease, ids_below: Some(below) };
        let Answer::Import(Ok(imported)) = world.ask(Command::Import(import)) else { panic!("an answer") };
        assert_eq!(imported.outcomes, [outcome], "below {below}");
        let own = world.put_in("x", 5).task.id;
        assert!(own < (1 << 52) + 2, "{own} after an import of ids below {below}");
    }
}

/// A task that was overdue elsewhere did not become late here, and a task that died elsewhere was not put here. An import must wake no
/// operator.
#[test]
fn the_figures_of_a_queue_count_what_happened_here() {
    let mut world = World::new();
    let tasks = vec![task("overdue", 1, -900), task("later", 2, 50), dead("dead", 3, false)];
    outcomes(&mut world, Existing::Refuse, tasks);
    let figures = |world: &mut World| {
        let counts = world.all_counts().into_iter().find(|counts| counts.queue == queue("q"));
        counts.expect("it has tasks").figures
    };
    let before = figures(&mut world);
    assert_eq!((before.put, before.dead), (2, 0));
    assert_eq!((before.lateness.iter().sum::<u64>(), before.lateness_sum_ms), (0, 0));
    world.pass_ms(57);
    let after = figures(&mut world);
    assert_eq!((after.lateness.iter().sum::<u64>(), after.lateness_sum_ms), (1, 7));
    assert_eq!(world.lease(9, 1_000).len(), 2);
}

/// A file may have more failures than are remembered; those that were last stay.
#[test]
fn the_failures_that_were_last_are_kept() {
    let mut world = World::new();
    let mut failed = dead("a", 1, false);
    let failure = |attempt| Failure { at: ms(-10), attempt, how: Failed::Nacked, reason: None };
    failed.extra.failures = (1..=30).map(failure).collect();
    outcomes(&mut world, Existing::Refuse, vec![failed]);
    let attempts: Vec<u32> =
        world.get("a").expect("it is there").extra.failures.iter().map(|failure| failure.attempt).collect();
    assert_eq!(attempts, (21..=30).collect::<Vec<u32>>());
}

/// A key that is the decimal of an id keeps its text, and no task that comes without a key gets it.
#[test]
fn a_key_that_is_a_number_is_not_given_to_another_task() {
    let mut world = World::new();
    world.put_in("x", 5);
    let next = world.put(Put::without_key(&queue("q"))).expect("stored").task.id + 2;
    assert_eq!(outcomes(&mut world, Existing::Refuse, vec![task(&next.to_string(), next, 100)]), [RENAMED]);
    let taken = world.get(&next.to_string()).expect("live").id;
    assert_ne!(taken, next);
    let other = world.put(Put::without_key(&queue("q"))).expect("stored").task;
    assert_ne!(other.key, key(&next.to_string()));
    // Also if the task keeps an id of its own.
    let mut fresh = World::new();
    let own = IDS_OF_ITS_OWN.to_string();
    assert_eq!(outcomes(&mut fresh, Existing::Refuse, vec![task(&own, 5, 100)]), [NEW]);
    assert_ne!(fresh.put(Put::without_key(&queue("q"))).expect("stored").task.key, key(&own));
    assert_eq!(fresh.get(&own).expect("it stays").id, 5);
}

/// An id alone says nothing: a dead task without a key is known by its id, queue, key and put together.
#[test]
fn another_task_with_the_same_id_is_not_the_imported_one() {
    let mut world = World::new();
    let other = ImportTask { queue: queue("other"), ..dead("b", 5, false) };
    outcomes(&mut world, Existing::Refuse, vec![other]);
    assert_eq!(outcomes(&mut world, Existing::Refuse, vec![dead("a", 5, true)]), [RENAMED]);
    assert_eq!(
        outcomes(&mut world, Existing::Skip, vec![dead("c", 5, true)]),
        [skipped(Present::Keyless)],
        "nobody can tell"
    );
}

/// An end that is not durable yet is an end.
#[test]
fn what_ends_in_the_same_moment_is_not_made_again_by_skip() {
    let mut world = World::new();
    outcomes(&mut world, Existing::Refuse, vec![task("a", 1, 5_000)]);
    let cancel = Cancel { queue: queue("q"), key: key("a"), if_version: None, on_lease: OnLease::Refuse };
    let (existing, on_lease) = (Existing::Skip, OnLease::Refuse);
    let again = ImportTasks { tasks: vec![task("a", 1, 5_000)], existing, on_lease, ids_below: None };
    world.hold_commits = true;
    let cancelled = world.send(Command::Cancel(cancel));
    let imported = world.send(Command::Import(again));
    world.release();
    assert_eq!(world.answer(cancelled), Some(Answer::Cancel(Ok(Cancelled::Cancelled))));
    let expected = Imported { outcomes: vec![skipped(Present::Ended)], refused: None };
    assert_eq!(world.answer(imported), Some(Answer::Import(Ok(expected))));
}

#[test]
fn limits_hold_for_an_import() {
    let mut world = World::new();
    let record = QueueRecord {
        settings: QueueSettings { max_backlog: Some(2), ..QueueSettings::default() },
        paused_until: Some(Timestamp::MAX),
        draining: false,
        target: None,
    };
    let change = QueueChange::Restore(record);
    let answer = world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    assert_eq!(answer, Answer::ChangeQueue(Ok(())));
    let tasks = vec![task("a", 1, -5), dead("d", 2, false), task("b", 3, -5), task("c", 4, -5)];
    let imported = import(&mut world, Existing::Refuse, tasks);
    assert_eq!(
        (imported.outcomes, imported.refused),
        (vec![NEW; 3], Some(ImportError::BacklogFull { limit: 2 }))
    );
    assert!(world.lease(9, 1_000).is_empty(), "it is paused");
    let mut world = world.crash();
    assert_eq!(world.counts(), (0, 2, 0));
    assert!(world.lease(9, 1_000).is_empty(), "and stays so");
}

/// A drain ends only if nothing adds work to the queue, whatever the way is.
#[test]
fn a_queue_that_drains_gets_no_live_task_by_an_import() {
    let mut world = World::new();
    outcomes(&mut world, Existing::Refuse, vec![task("a", 1, 5_000), dead("d", 2, false)]);
    let change = QueueChange::Drain;
    world.ask(Command::ChangeQueue(ChangeQueue { queue: queue("q"), change }));
    let tasks = vec![task("a", 1, 9_000), dead("e", 3, false), task("d", 4, 5_000), task("b", 5, 5_000)];
    let imported = import(&mut world, Existing::Replace, tasks);
    assert_eq!(
        (imported.outcomes, imported.refused),
        (vec![ImportOutcome::Replaced, NEW], Some(ImportError::Draining))
    );
    let imported = import(&mut world, Existing::Replace, vec![task("b", 5, 5_000)]);
    assert_eq!((imported.outcomes, imported.refused), (vec![], Some(ImportError::Draining)));
    assert_eq!(world.get("a").expect("replaced").due_at, ms(9_000));
    assert_eq!(world.get("d").expect("as before").state, State::Dead);
}

#[test]
fn what_expired_on_the_way_is_given_up() {
    let mut world = World::new();
    let mut late = task("a", 1, 50_000);
    late.extra.expire_at = Some(ms(-1));
    outcomes(&mut world, Existing::Refuse, vec![late]);
    assert_eq!(world.get("a").map(|task| task.extra.dead.map(|dead| dead.why)), Ok(Some(Death::Expired)));
    // Nor does a worker get it that waits for a task.
    let mut world = World::new();
    let lease = Lease { wait: true, ..Lease::new(&queue("q")) };
    let waiting = world.send(Command::Lease(lease));
    let mut late = task("a", 1, -5);
    late.extra.expire_at = Some(ms(-1));
    outcomes(&mut world, Existing::Refuse, vec![late]);
    assert_eq!(world.answer(waiting), None, "it still waits");
    assert_eq!(world.get("a").map(|task| task.state), Ok(State::Dead));
}

/// Other calls on the same keys come while an import waits for its look-up.
#[test]
fn a_key_has_one_live_task_whatever_comes_between() {
    for first_is_import in [true, false] {
        let mut world = World::new();
        world.hold_reads = true;
        let put = Command::Put(Put { due: Due::After { ms: 70 }, ..Put::new(&queue("q"), key("a")) });
        let tasks = vec![task("a", 1, 50), task("a", 2, 60)];
        let import = Command::Import(ImportTasks {
            tasks,
            existing: Existing::Replace,
            on_lease: OnLease::Refuse,
            ids_below: Some(9),
        });
        let calls = if first_is_import {
            world.send_together([import, put])
        } else {
            world.send_together([put, import])
        };
        world.release();
        let answers = calls.map(|call| world.answer(call).expect("answered"));
        assert_eq!(world.list(None).len(), 1, "{answers:?}");
        let due = world.get("a").expect("live").due_at;
        assert_eq!(due, if first_is_import { ms(70) } else { ms(60) });
    }
}

#[test]
fn a_store_that_fails_leaves_an_import_without_effect() {
    let mut world = World::new();
    world.fail_reads = Some(|request| matches!(request, Request::GetMany(_)));
    let import = ImportTasks {
        tasks: vec![task("a", 1, 5)],
        existing: Existing::Skip,
        on_lease: OnLease::Refuse,
        ids_below: None,
    };
    let answer = world.ask(Command::Import(import));
    assert!(matches!(answer, Answer::Import(Err(Unavailable::ReadOnly { .. }))), "{answer:?}");
}

fn schedule(existing: Existing, cadence: Cadence) -> ImportSchedule {
    ImportSchedule {
        queue: queue("q"),
        name: ScheduleName::new("s").expect("a name"),
        schedule: Arc::new(Schedule::new(cadence)),
        anchor: ms(-10_000),
        decided: ms(-1),
        next: None,
        last: Some(ms(-1_000)),
        made: 9,
        skipped: 2,
        running: None,
        waiting: Vec::new(),
        scope: None,
        existing,
    }
}

fn bring(world: &mut World, import: ImportSchedule) -> Result<ImportOutcome, ScheduleError> {
    let Answer::ImportSchedule(answer) = world.ask(Command::ImportSchedule(import)) else {
        panic!("another answer")
    };
    answer
}

fn record(world: &mut World) -> ScheduleRecord {
    let get = GetSchedule { queue: queue("q"), name: ScheduleName::new("s").expect("a name") };
    let Answer::GetSchedule(Ok(view)) = world.ask(Command::GetSchedule(get)) else { panic!("no schedule") };
    ScheduleRecord::clone(&view.record)
}

#[test]
fn a_schedule_goes_on_where_it_stood() {
    let mut world = World::new();
    let every = Cadence::Every { ms: 1_000 };
    assert_eq!(bring(&mut world, schedule(Existing::Refuse, every.clone())), Ok(NEW));
    let before = record(&mut world);
    assert_eq!(
        (before.next, before.made, before.skipped, before.last),
        (Some(ms(0)), 9, 2, Some(ms(-1_000)))
    );
    world.pass_ms(1_000);
    assert_eq!(record(&mut world).made, 11, "the instants since");
    assert_eq!(
        bring(&mut world, schedule(Existing::Refuse, every)),
        Ok(skipped(Present::Schedule)),
        "it says the same"
    );
    let stats = |world: &mut World| {
        let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
            panic!("another answer")
        };
        (stats.made_total, stats.skipped_total)
    };
    assert_eq!(stats(&mut world), (2, 0), "what was made elsewhere was not made here");
    for leased in world.lease(9, 1_000) {
        world.ack(leased.token);
    }
    let other = schedule(Existing::Refuse, Cadence::Every { ms: 2_000 });
    assert!(matches!(bring(&mut world, other.clone()), Err(ScheduleError::Exists { .. })));
    assert_eq!(
        bring(&mut world, ImportSchedule { existing: Existing::Skip, ..other.clone() }),
        Ok(skipped(Present::Schedule))
    );
    let replaced = bring(&mut world, ImportSchedule { existing: Existing::Replace, ..other });
    assert_eq!(replaced, Ok(ImportOutcome::Replaced));
    assert_eq!(record(&mut world).next, Some(ms(2_000)), "of no instant two tasks are made");
    assert_eq!(world.counts(), (0, 0, 0), "nor was one made just now");
    assert_eq!(stats(&mut world), (2, 0));
}

/// The file is older than what the server has made since, and is imported again and again.
#[test]
fn a_schedule_that_is_replaced_again_makes_no_instant_twice() {
    let mut world = World::new();
    let every = Cadence::Every { ms: 1_000 };
    assert_eq!(bring(&mut world, schedule(Existing::Refuse, every.clone())), Ok(NEW));
    let mut done = 0;
    for _ in 0..5 {
        world.pass_ms(500);
        for leased in world.lease(9, 1_000) {
            world.ack(leased.token);
            done += 1;
        }
    }
    assert_eq!(done, 3, "the instants at 0, 1 and 2 s");
    for time in 1..=3 {
        let again = schedule(Existing::Replace, every.clone());
        assert_eq!(bring(&mut world, again), Ok(ImportOutcome::Replaced));
        world.pass_ms(0);
        let stands = record(&mut world);
        assert_eq!((stands.last, stands.next), (Some(ms(2_000)), Some(ms(3_000))), "time {time}");
        assert_eq!(world.counts(), (0, 0, 0), "time {time}: an instant was made again");
    }
    world.pass_ms(500);
    assert_eq!(world.lease(9, 1_000).len(), 1, "it goes on");
}

/// Instants that wait in the file, and that have had their task here.
#[test]
fn instants_that_waited_elsewhere_are_not_made_again_where_they_had_their_turn() {
    let mut world = World::new();
    let turns = Schedule { overlap: Overlap::Queue, ..Schedule::new(Cadence::Every { ms: 1_000 }) };
    let import = |existing, waiting: &[i64]| ImportSchedule {
        schedule: Arc::new(turns.clone()),
        decided: ms(1_000),
        waiting: waiting.iter().map(|at| ms(*at)).collect(),
        ..schedule(existing, Cadence::Every { ms: 1_000 })
    };
    assert_eq!(bring(&mut world, import(Existing::Refuse, &[0, 1_000])), Ok(NEW));
    let mut made = Vec::new();
    for _ in 0..2 {
        world.pass_ms(500);
        for leased in world.lease(9, 1_000) {
            made.push(leased.key.as_str().to_owned());
            world.ack(leased.token);
        }
    }
    assert_eq!(made.len(), 2, "{made:?}");
    for time in 1..=2 {
        assert_eq!(bring(&mut world, import(Existing::Replace, &[0, 1_000])), Ok(ImportOutcome::Replaced));
        world.pass_ms(0);
        assert_eq!(world.counts(), (0, 0, 0), "time {time}: an instant was made again");
        assert_eq!(record(&mut world).waiting, [], "time {time}");
    }
}

#[test]
fn a_schedule_waits_for_the_task_that_runs() {
    let mut world = World::new();
    let at = ms(-1_000);
    let name = occurrence_key(&ScheduleName::new("s").expect("a name"), at);
    let running = ImportTask { key: name.clone(), ..task("x", 3, -1_000) };
    outcomes(&mut world, Existing::Refuse, vec![running]);
    let delay = Cadence::FixedDelay { ms: 500 };
    let import = ImportSchedule { running: Some(name), ..schedule(Existing::Refuse, delay.clone()) };
    assert_eq!(bring(&mut world, import), Ok(NEW));
    assert_eq!((record(&mut world).running, record(&mut world).next), (vec![3], None));
    let mut world = world.crash();
    world.pass_ms(5_000);
    let token = world.lease(1, 1_000)[0].token;
    world.ack(token);
    assert_eq!(record(&mut world).next, Some(ms(5_500)));
    // The file may not name the task, and the task may come after the schedule.
    for task_first in [true, false] {
        let mut world = World::new();
        let at = occurrence_key(&ScheduleName::new("s").expect("a name"), ms(-1_000));
        let task = ImportTask { key: at, ..task("x", 3, -1_000) };
        if task_first {
            outcomes(&mut world, Existing::Refuse, vec![task.clone()]);
        }
        assert_eq!(bring(&mut world, schedule(Existing::Refuse, delay.clone())), Ok(NEW));
        if !task_first {
            outcomes(&mut world, Existing::Refuse, vec![task]);
        }
        assert_eq!((record(&mut world).running, record(&mut world).next), (vec![3], None), "{task_first}");
    }
    // A schedule with a task that has ended by now goes on from here.
    let mut other = World::new();
    let gone = ImportSchedule { running: Some(key("s@gone")), ..schedule(Existing::Refuse, delay) };
    assert_eq!(bring(&mut other, gone), Ok(NEW));
    assert_eq!((record(&mut other).running, record(&mut other).next), (vec![], Some(ms(500))));
}
