//! Targets of queues, over crashes and failures, beside a model.

use std::collections::BTreeMap;

use tickwheel_engine::*;

use crate::world::*;

fn change(world: &mut World, name: &str, change: QueueChange) -> Result<(), QueueError> {
    match world.ask(Command::ChangeQueue(ChangeQueue { queue: queue(name), change })) {
        Answer::ChangeQueue(result) => result,
        other => panic!("a change of a queue was answered {other:?}"),
    }
}

fn target(value: &[u8], max_attempts: Option<u32>) -> TargetRecord {
    let retry = max_attempts.map(|max| Retry { max_attempts: Some(max), backoff: None });
    TargetRecord { value: value.into(), retry }
}

fn listed(world: &mut World) -> Vec<(String, TargetRecord)> {
    let Answer::Targets(result) = world.ask(Command::Targets(ListTargets)) else { panic!("another answer") };
    let targets = result.expect("the store is well");
    targets.into_iter().map(|(name, target)| (name.as_str().to_owned(), (*target).clone())).collect()
}

fn view(world: &mut World, name: &str) -> QueueView {
    let Answer::Queue(result) = world.ask(Command::Queue(GetQueue(queue(name)))) else {
        panic!("another answer")
    };
    *result.expect("shown")
}

/// A small generator of numbers: each run of a test draws the same ones.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// In the model a queue has its target until it gets another one, loses it or is deleted. Nothing else touches the target.
#[test]
fn a_target_stays_until_it_is_removed_or_its_queue_is_deleted() {
    for seed in 0..40 {
        let mut draw = Draw(seed);
        let mut world = World::new();
        let mut model: BTreeMap<String, TargetRecord> = BTreeMap::new();
        for step in 0..60_u64 {
            let name = format!("q{}", draw.below(3));
            let settings = QueueSettings { max_in_flight: Some(step + 1), ..QueueSettings::default() };
            let given = draw.below(9);
            let said = match given {
                0 => QueueChange::Settings(settings),
                1 => QueueChange::Settings(QueueSettings::default()),
                2 => QueueChange::Pause { ms: [None, Some(7)][draw.below(2) as usize] },
                3 => QueueChange::Drain,
                4 => QueueChange::Resume,
                5 => QueueChange::Delete,
                6 => {
                    let target = Some(target(b"of another store", Some(1)).into());
                    QueueChange::Restore(QueueRecord { settings, target, ..QueueRecord::default() })
                }
                7 => QueueChange::Target(None),
                _ => {
                    let max = [None, Some(step as u32 + 1)][draw.below(2) as usize];
                    let value: Vec<u8> = (0..draw.below(40)).map(|byte| byte as u8).collect();
                    QueueChange::Target(Some(target(&value, max)))
                }
            };
            match &said {
                QueueChange::Target(Some(target)) => drop(model.insert(name.clone(), target.clone())),
                QueueChange::Target(None) | QueueChange::Delete => drop(model.remove(&name)),
                _ => {}
            }
            change(&mut world, &name, said).expect("taken");
            match draw.below(8) {
                0 => world = world.crash(),
                1 => world = world.stop(),
                2 => world.pass_ms(10),
                _ => {}
            }
            let expected: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(listed(&mut world), expected, "seed {seed}, step {step}, change {given}");
            let shown = view(&mut world, &name).target;
            assert_eq!(shown.as_deref(), model.get(&name), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn a_task_is_tried_as_its_own_policy_says_then_its_queue_then_its_target() {
    let of = |max: u32| Retry { max_attempts: Some(max), backoff: None };
    let table = [
        (Some(1), Some(2), Some(3), Some(1)),
        (None, Some(2), Some(3), Some(2)),
        (None, None, Some(3), Some(3)),
        (Some(1), None, Some(3), Some(1)),
        (None, None, None, None),
    ];
    for (of_task, of_queue, of_target, expected) in table {
        let mut world = World::new();
        let settings = QueueSettings { retry: of_queue.map(of), ..QueueSettings::default() };
        change(&mut world, "q", QueueChange::Target(Some(target(b"x", of_target)))).expect("taken");
        change(&mut world, "q", QueueChange::Settings(settings)).expect("taken");
        let terms = Terms { retry: of_task.map(of), ..Terms::default() };
        world.put(Put { terms, ..Put::new(&queue("q"), key("a")) }).expect("taken");
        for attempt in 1..=5 {
            let leased = world.lease(1, 1_000);
            assert_eq!(world.nack(leased[0].token, None), TokenAnswer::Nacked);
            let state = world.get("a").expect("shown").state;
            let is_last = expected == Some(attempt);
            assert_eq!(state, if is_last { State::Dead } else { State::Ready }, "{attempt} of {expected:?}");
            if is_last {
                break;
            }
        }
    }
}

#[test]
fn the_back_off_of_a_target_holds_and_ends_with_it() {
    let mut world = World::new();
    let backoff = Some(Backoff { doubles: false, base_ms: 700, max_ms: 700, jitter_percent: 0 });
    let retry = Some(Retry { max_attempts: None, backoff });
    let with = QueueChange::Target(Some(TargetRecord { value: b"x".as_slice().into(), retry }));
    change(&mut world, "q", with).expect("taken");
    let mut world = world.crash();
    world.put_in("a", 0);
    let leased = world.lease(1, 1_000);
    world.nack(leased[0].token, None);
    assert_eq!(world.get("a").expect("shown").due_at, ms(700));
    world.pass_ms(700);
    change(&mut world, "q", QueueChange::Target(None)).expect("taken");
    let leased = world.lease(1, 1_000);
    world.nack(leased[0].token, None);
    assert_eq!(world.get("a").expect("shown").state, State::Ready);
}

#[test]
fn a_target_has_a_longest_value_and_only_a_thousand_queues_have_one() {
    let mut world = World::new();
    let longest = vec![7; TARGET_BYTES_MAX];
    change(&mut world, "q", QueueChange::Target(Some(target(&longest, None)))).expect("taken");
    let longer = vec![7; TARGET_BYTES_MAX + 1];
    let refused = change(&mut world, "q", QueueChange::Target(Some(target(&longer, None))));
    assert_eq!(refused, Err(QueueError::TargetTooLong { limit: TARGET_BYTES_MAX }));
    assert_eq!(listed(&mut world), [("q".to_owned(), target(&longest, None))]);
    let give =
        |world: &mut World, name: &str| change(world, name, QueueChange::Target(Some(target(b"x", None))));
    for n in 1..TARGETS_MAX {
        give(&mut world, &format!("q{n}")).expect("taken");
    }
    let too_many = Err(QueueError::TooManyTargets { limit: TARGETS_MAX });
    assert_eq!(give(&mut world, "one"), too_many);
    let mut world = world.crash();
    assert_eq!(give(&mut world, "one"), too_many, "they are counted after a start");
    assert_eq!(give(&mut world, "q7"), Ok(()), "one that there is may change");
    change(&mut world, "q8", QueueChange::Delete).expect("it is empty");
    assert_eq!((give(&mut world, "one"), give(&mut world, "two")), (Ok(()), too_many));
    assert_eq!(listed(&mut world).len(), TARGETS_MAX);
}

#[test]
fn after_a_failed_store_no_target_is_shown_that_may_not_be_there() {
    let mut world = World::new();
    world.fail_commits = true;
    let refused = change(&mut world, "q", QueueChange::Target(Some(target(b"x", None))));
    assert!(
        matches!(refused, Err(QueueError::Unavailable(Unavailable::Indeterminate { .. }))),
        "{refused:?}"
    );
    let Answer::Targets(Err(why)) = world.ask(Command::Targets(ListTargets)) else { panic!("it was shown") };
    assert!(matches!(why, Unavailable::Indeterminate { .. }), "{why}");
    let world = &mut world.crash();
    assert_eq!(listed(world), [], "the failed commit is not there");
}

#[test]
fn the_text_of_a_target_for_logs_does_not_have_its_value() {
    let text = format!("{:?}", target(b"a secret", Some(3)));
    assert!(text.contains("8 bytes") && !text.contains("97") && !text.contains("secret"), "{text}");
}
