//! Jobs, over crashes, failures and a full disk, beside a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::*;

use crate::world::*;

fn change(world: &mut World, change: ChangeJob) -> Result<u64, JobError> {
    match world.ask(Command::ChangeJob(change)) {
        Answer::ChangeJob(result) => result,
        other => panic!("a change of a job was answered {other:?}"),
    }
}

fn begin(world: &mut World, value: &[u8]) -> Result<u64, JobError> {
    change(world, ChangeJob::Begin { value: value.into() })
}

fn keep(world: &mut World, id: u64, value: &[u8]) -> Result<u64, JobError> {
    change(world, ChangeJob::Keep { id, value: value.into() })
}

fn forget(world: &mut World, id: u64) -> Result<u64, JobError> {
    change(world, ChangeJob::Forget { id })
}

fn jobs(world: &mut World) -> Vec<(u64, Arc<[u8]>)> {
    match world.ask(Command::Jobs(ListJobs)) {
        Answer::Jobs(result) => result.expect("the store is well"),
        other => panic!("a read of all jobs was answered {other:?}"),
    }
}

#[test]
fn a_job_gets_a_number_of_the_clock_and_the_next_one_a_higher_one() {
    let mut world = World::new();
    let first = begin(&mut world, b"a").expect("kept");
    assert_eq!(first, START_MS as u64);
    assert_eq!(begin(&mut world, b"b"), Ok(first + 1));
    world.step_wall_ms(-5_000);
    assert_eq!(begin(&mut world, b"c"), Ok(first + 2), "the clock went back");
    world = world.crash();
    world.step_wall_ms(60_000);
    assert_eq!(begin(&mut world, b"d"), Ok(first + 55_000));
    assert_eq!(keep(&mut world, u64::MAX, b"of another store"), Ok(u64::MAX));
    assert!(matches!(begin(&mut world, b"e"), Err(JobError::TooMany { .. })), "no number is left");
}

/// A number would be another job's after the clock went back.
#[test]
fn the_newest_job_is_not_forgotten() {
    let mut world = World::new();
    let ids = [1, 2].map(|_| begin(&mut world, b"x").expect("kept"));
    assert_eq!(forget(&mut world, ids[1]), Err(JobError::Newest));
    assert_eq!(forget(&mut world, ids[0]), Ok(ids[0]));
    assert_eq!(forget(&mut world, ids[0]), Err(JobError::NotFound));
    world = world.crash();
    assert_eq!(jobs(&mut world), [(ids[1], b"x".as_slice().into())]);
}

#[test]
fn a_job_is_bounded_and_so_are_all_of_them() {
    let mut world = World::new();
    let long = vec![7; JOB_BYTES_MAX];
    let too_long = Err(JobError::TooLong { limit: JOB_BYTES_MAX });
    assert_eq!(begin(&mut world, &[long.as_slice(), b"."].concat()), too_long);
    let most = (16 << 20) / JOB_BYTES_MAX;
    let first = begin(&mut world, &long).expect("kept");
    for _ in 1..most {
        begin(&mut world, &long).expect("kept");
    }
    let too_many = Err(JobError::TooMany { jobs: most, bytes: 16 << 20 });
    assert_eq!(begin(&mut world, b"."), too_many);
    assert_eq!(keep(&mut world, 1, b"."), too_many, "of another store");
    assert_eq!(keep(&mut world, first, b"."), Ok(first), "there is room for what goes on");
    assert!(begin(&mut world, b".").is_ok());
}

#[test]
fn ten_thousand_jobs_can_be_kept() {
    let mut world = World::new();
    for id in 1..=10_000 {
        assert_eq!(keep(&mut world, id, b""), Ok(id));
    }
    assert_eq!(begin(&mut world, b""), Err(JobError::TooMany { jobs: 10_000, bytes: 0 }));
    assert_eq!(forget(&mut world, 1), Ok(1));
    assert!(begin(&mut world, b"").is_ok());
}

/// Nothing is answered before it is durable, and what may or may not be is not shown.
#[test]
fn a_change_is_answered_when_it_is_durable() {
    let mut world = World::new();
    let id = begin(&mut world, b"1").expect("kept");
    world.hold_commits = true;
    let kept = world.send(Command::ChangeJob(ChangeJob::Keep { id, value: b"2".as_slice().into() }));
    let shown = world.send(Command::Jobs(ListJobs));
    assert_eq!((world.answer(kept), world.answer(shown)), (None, None));
    world.release();
    assert_eq!(world.answer(kept), Some(Answer::ChangeJob(Ok(id))));
    assert_eq!(world.answer(shown), Some(Answer::Jobs(Ok(vec![(id, b"2".as_slice().into())]))));
    (world.hold_commits, world.fail_commits) = (false, true);
    let Err(JobError::Unavailable(Unavailable::Indeterminate { .. })) = keep(&mut world, id, b"3") else {
        panic!("it may be kept or not")
    };
    let Answer::Jobs(Err(Unavailable::Indeterminate { .. })) = world.ask(Command::Jobs(ListJobs)) else {
        panic!("what is kept is not known")
    };
    let Err(JobError::Unavailable(Unavailable::ReadOnly { .. })) = begin(&mut world, b"3") else {
        panic!("nothing is kept any more")
    };
}

#[test]
fn a_job_is_neither_in_a_queue_nor_due() {
    let mut world = World::new();
    begin(&mut world, b"1").expect("kept");
    assert_eq!(world.all_counts(), []);
    assert_eq!(world.until_wake_ms(), None);
    assert!(world.engine.is_idle());
}

/// A thousand changes drawn at random, with crashes and stops between them: always as the model says.
#[test]
fn jobs_are_what_a_model_says_over_crashes_and_stops() {
    for seed in 1..20_u64 {
        let mut state = seed;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut world = World::new();
        let mut model: BTreeMap<u64, Arc<[u8]>> = BTreeMap::new();
        let mut last = 0;
        for _ in 0..300 {
            let value = vec![below(256) as u8; below(40) as usize];
            let some = model.keys().nth(below(8) as usize).copied();
            match (below(10), some) {
                (0..4, _) => {
                    let id = begin(&mut world, &value).expect("kept");
                    assert!(id > last, "{id} after {last}");
                    last = id;
                    model.insert(id, value.into());
                }
                (4..7, Some(id)) => {
                    assert_eq!(keep(&mut world, id, &value), Ok(id));
                    model.insert(id, value.into());
                }
                (7, Some(id)) if id != last => {
                    assert_eq!(forget(&mut world, id), Ok(id));
                    model.remove(&id);
                }
                (8, _) => world.pass_ms(below(3)),
                (9, _) if below(2) == 0 => world = world.crash(),
                (9, _) => world = world.stop(),
                _ => {
                    assert_eq!(keep(&mut world, last, &value), Ok(last));
                    model.insert(last, value.into());
                }
            }
            let expected: Vec<_> = model.iter().map(|(id, value)| (*id, Arc::clone(value))).collect();
            assert_eq!(jobs(&mut world), expected, "seed {seed}");
        }
    }
}
