//! The settings that a queue's owner configures: limits, rates, pauses, drains.

use std::collections::BTreeMap;

use tickwheel_engine::*;

use crate::world::*;

pub(crate) fn change(world: &mut World, change: QueueChange) -> Result<(), QueueError> {
    let command = Command::ChangeQueue(ChangeQueue { queue: queue("q"), change });
    let Answer::ChangeQueue(result) = world.ask(command) else { panic!("another answer") };
    result
}

fn set(world: &mut World, settings: QueueSettings) {
    change(world, QueueChange::Settings(settings)).expect("taken");
}

fn view(world: &mut World) -> QueueView {
    let Answer::Queue(result) = world.ask(Command::Queue(GetQueue(queue("q")))) else {
        panic!("another answer")
    };
    *result.expect("shown")
}

fn in_flight(max: u64) -> QueueSettings {
    QueueSettings { max_in_flight: Some(max), ..QueueSettings::default() }
}

fn per_group(max: u64) -> QueueSettings {
    QueueSettings { max_in_flight_per_group: Some(max), ..QueueSettings::default() }
}

fn rate(tasks: u64, per_ms: u64, burst: u64) -> QueueSettings {
    QueueSettings { rate: Some(Rate { tasks, per_ms, burst }), ..QueueSettings::default() }
}

fn put_of(world: &mut World, name: &str, group: &str) {
    let group = (!group.is_empty()).then(|| Group::new(group).expect("a group"));
    let terms = Terms { group, ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue("q"), key(name)) }).expect("taken");
}

fn wait(world: &mut World, max: usize) -> CallId {
    world.send(Command::Lease(Lease { wait: true, ..Lease::new(&queue("q")).max(max) }))
}

fn granted(world: &mut World, call: CallId) -> Option<Vec<String>> {
    match world.answer(call)? {
        Answer::Lease(Ok(leased)) => Some(keys(&leased).into_iter().map(str::to_owned).collect()),
        other => panic!("{other:?}"),
    }
}

/// The download centre: at most `max_in_flight` tasks are leased at a time. The others wait where they are, and are delivered once.
#[test]
fn no_more_are_in_flight_than_the_limit_and_each_end_lets_the_next_in() {
    let mut world = World::new();
    set(&mut world, in_flight(2));
    (0..5).for_each(|n| drop(world.put_in(&format!("t{n}"), 0)));
    let first = world.lease(10, 1_000);
    assert_eq!(keys(&first), ["t0", "t1"]);
    assert!(world.lease(10, 1_000).is_empty());
    let waiting = wait(&mut world, 10);
    assert_eq!(granted(&mut world, waiting), None);
    world.ack(first[0].token);
    assert_eq!(granted(&mut world, waiting), Some(vec!["t2".to_owned()]));
    // A lease that ends, a nack, a revoke: each makes room as well.
    let waiting = wait(&mut world, 1);
    world.pass_ms(1_000);
    assert_eq!(granted(&mut world, waiting), Some(vec!["t1".to_owned()]), "its own place was first");
    let cancel = Cancel::new(&queue("q"), key("t2")).revoke();
    assert_eq!(world.cancel_by(cancel), Ok(Cancelled::Revoked));
    assert_eq!(keys(&world.lease(10, 1_000)), ["t3"]);
    assert_eq!(world.counts(), (0, 1, 2));
    set(&mut world, QueueSettings::default());
    assert_eq!(keys(&world.lease(10, 1_000)), ["t4"]);
}

#[test]
fn a_limit_below_what_is_in_flight_lets_nothing_in_before_enough_has_ended() {
    let mut world = World::new();
    (0..4).for_each(|n| drop(world.put_in(&format!("t{n}"), 0)));
    let leased = world.lease(3, 60_000);
    set(&mut world, in_flight(2));
    world.ack(leased[0].token);
    assert!(world.lease(1, 1_000).is_empty());
    world.ack(leased[1].token);
    assert_eq!(keys(&world.lease(9, 1_000)), ["t3"]);
}

#[test]
fn a_full_group_is_passed_over_and_its_tasks_keep_their_order() {
    let mut world = World::new();
    set(&mut world, per_group(1));
    for (name, group) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("free", ""), ("b2", "b")] {
        put_of(&mut world, name, group);
    }
    let first = world.lease(10, 60_000);
    assert_eq!(keys(&first), ["a1", "b1", "free"]);
    assert_eq!(world.counts(), (0, 3, 3), "who is passed over is ready");
    let waiting = wait(&mut world, 10);
    world.ack(first[0].token);
    assert_eq!(granted(&mut world, waiting), Some(vec!["a2".to_owned()]));
    // A task that is passed over may be cancelled, patched and looked at like any other.
    assert_eq!(world.get("a3").expect("there").state, State::Ready);
    let group = Some(Some(Group::new("c").expect("a group")));
    world.patch(Patch { group, ..Patch::new(&queue("q"), key("a3")) }).expect("taken");
    assert_eq!(keys(&world.lease(10, 1_000)), ["a3"]);
    assert_eq!(world.cancel("b2"), Ok(Cancelled::Cancelled));
    world.ack(first[1].token);
    assert!(world.lease(10, 1_000).is_empty());
}

#[test]
fn a_parked_task_comes_back_when_a_task_of_its_group_goes() {
    let mut world = World::new();
    set(&mut world, per_group(1));
    put_of(&mut world, "a1", "a");
    put_of(&mut world, "a2", "a");
    // a2 is parked behind a1, which ends without ever having been leased again.
    let token = world.lease(10, 60_000)[0].token;
    assert_eq!(world.nack(token, None), TokenAnswer::Nacked);
    assert_eq!(world.cancel("a1"), Ok(Cancelled::Cancelled));
    assert_eq!(keys(&world.lease(10, 1_000)), ["a2"]);
}

#[test]
fn a_rate_gives_its_burst_and_then_one_after_the_other() {
    let mut world = World::new();
    set(&mut world, rate(2, 1_000, 3));
    (0..9).for_each(|n| drop(world.put_in(&format!("t{n}"), 0)));
    assert_eq!(world.lease(9, 60_000).len(), 3);
    assert!(world.lease(9, 60_000).is_empty());
    let waiting = wait(&mut world, 9);
    assert_eq!(world.until_wake_ms(), Some(500), "it is known when the next may go");
    world.pass_ms(499);
    assert_eq!(granted(&mut world, waiting), None);
    world.pass_ms(1);
    assert_eq!(granted(&mut world, waiting), Some(vec!["t3".to_owned()]));
    world.pass_ms(60_000);
    assert_eq!(world.lease(9, 60_000).len(), 3, "no more than the burst, however long it was quiet");
}

#[test]
fn a_change_of_the_rate_is_no_burst() {
    let mut world = World::new();
    set(&mut world, rate(10, 1_000, 10));
    (0..30).for_each(|n| drop(world.put_in(&format!("t{n}"), 0)));
    assert_eq!(world.lease(30, 60_000).len(), 10);
    set(&mut world, rate(9, 1_000, 9));
    assert!(world.lease(30, 60_000).is_empty());
    world.pass_ms(500);
    assert_eq!(world.lease(2, 60_000).len(), 2);
    set(&mut world, rate(9, 1_000, 1));
    assert_eq!(world.lease(30, 60_000).len(), 1, "no more than what was left, and fits");
}

#[test]
fn settings_that_would_hold_tasks_for_ever_are_refused() {
    let mut world = World::new();
    let lease = QueueSettings { default_lease_ms: Some(0), ..QueueSettings::default() };
    for settings in [in_flight(0), per_group(0), rate(0, 1, 1), rate(1, 0, 1), rate(1, 1, 0), lease] {
        let refused = change(&mut world, QueueChange::Settings(settings.clone()));
        assert!(matches!(refused, Err(QueueError::Invalid { .. })), "{settings:?}: {refused:?}");
    }
    assert_eq!(view(&mut world).settings, QueueSettings::default());
}

#[test]
fn a_pause_without_an_end_wakes_no_call() {
    let mut world = World::new();
    world.put_in("a", 0);
    change(&mut world, QueueChange::Pause { ms: Some(5_000) }).expect("taken");
    wait(&mut world, 1);
    change(&mut world, QueueChange::Pause { ms: Some(9_000) }).expect("taken");
    assert_eq!(world.until_wake_ms(), Some(9_000), "the pause that stands, and no other");
    change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
    assert_eq!(world.until_wake_ms(), None);
}

#[test]
fn a_delivery_that_reached_no_worker_does_not_count_against_the_rate() {
    let mut world = World::new();
    set(&mut world, rate(1, 60_000, 1));
    world.put_in("a", 0);
    let tokens = world.lease(1, 60_000).iter().map(|leased| leased.token).collect();
    world.input(Input::Undelivered { tokens });
    assert_eq!(keys(&world.lease(1, 60_000)), ["a"]);
    assert!(world.lease(1, 60_000).is_empty());
}

#[test]
fn a_pause_holds_leases_and_nothing_else() {
    let mut world = World::new();
    world.put_in("a", 0);
    let token = world.lease(1, 60_000)[0].token;
    change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
    world.put_in("b", 0);
    let waiting = wait(&mut world, 9);
    assert!(world.lease(1, 1_000).is_empty());
    assert_eq!(world.ack(token), TokenAnswer::Acked);
    let counts = view(&mut world).counts;
    assert_eq!((counts.ready, counts.paused, counts.draining), (1, true, false));
    world.pass_ms(86_400_000);
    assert_eq!(granted(&mut world, waiting), None);
    change(&mut world, QueueChange::Resume).expect("taken");
    assert_eq!(granted(&mut world, waiting), Some(vec!["b".to_owned()]));
}

#[test]
fn a_pause_with_an_end_ends_by_itself() {
    let mut world = World::new();
    world.put_in("a", 0);
    change(&mut world, QueueChange::Pause { ms: Some(5_000) }).expect("taken");
    let waiting = wait(&mut world, 9);
    assert_eq!(view(&mut world).paused_until, Some(ms(5_000)));
    assert_eq!(world.until_wake_ms(), Some(5_000));
    world.pass_ms(4_999);
    assert_eq!(granted(&mut world, waiting), None);
    world.pass_ms(1);
    assert_eq!(granted(&mut world, waiting), Some(vec!["a".to_owned()]));
    assert!(!view(&mut world).counts.paused);
}

#[test]
fn a_queue_that_only_a_pause_kept_goes_with_it() {
    let mut world = World::new();
    change(&mut world, QueueChange::Pause { ms: Some(5_000) }).expect("taken");
    world.pass_ms(4_999);
    assert!(view(&mut world).exists);
    // Also if the server did not run when the pause ended.
    let mut world = world.crash();
    assert!(view(&mut world).exists);
    world.pass_ms(1);
    assert!(!view(&mut world).exists);
    assert!(!world.crash().all_counts().iter().any(|counts| counts.queue == queue("q")));
    // Settings stay, and a clock that steps back brings no pause back.
    let mut world = World::new();
    set(&mut world, in_flight(1));
    change(&mut world, QueueChange::Pause { ms: Some(5_000) }).expect("taken");
    world.pass_ms(5_000);
    world.step_wall_ms(-3_000);
    assert_eq!((view(&mut world).paused_until, view(&mut world).settings), (None, in_flight(1)));
    world.put_in("a", 0);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
}

#[test]
fn a_queue_that_is_drained_takes_no_new_task_and_gives_out_what_it_has() {
    let mut world = World::new();
    world.put_in("a", 0);
    change(&mut world, QueueChange::Drain).expect("taken");
    let new = Put::new(&queue("q"), key("b"));
    assert_eq!(world.put(new.clone()), Err(PutError::Draining));
    assert!(!world.put_in("a", 0).created, "a task that is there may be changed");
    assert_eq!(keys(&world.lease(9, 1_000)), ["a"]);
    assert!(view(&mut world).counts.draining);
    change(&mut world, QueueChange::Resume).expect("taken");
    assert!(world.put(new).expect("taken").created);
}

#[test]
fn a_full_backlog_refuses_new_tasks_until_one_ends() {
    let mut world = World::new();
    set(&mut world, QueueSettings { max_backlog: Some(2), ..QueueSettings::default() });
    world.put_in("a", 0);
    world.put_in("b", 86_400_000);
    let new = Put::new(&queue("q"), key("c"));
    assert_eq!(world.put(new.clone()), Err(PutError::BacklogFull { limit: 2 }));
    assert!(!world.put_in("b", 5).created);
    let token = world.lease(1, 1_000)[0].token;
    assert_eq!(world.put(new.clone()), Err(PutError::BacklogFull { limit: 2 }), "leased tasks count");
    world.ack(token);
    assert!(world.put(new).expect("taken").created);
}

#[test]
fn a_put_that_may_add_nothing_changes_what_is_there() {
    let mut world = World::new();
    world.put_in("a", 0);
    let put = |name| Put { may_add: false, ..Put::new(&queue("q"), key(name)) };
    assert!(!world.put(put("a")).expect("live").created);
    assert_eq!(world.put(put("b")), Err(PutError::WouldAdd));
    let of_nobody = Put { may_add: false, ..Put::without_key(&queue("q")) };
    assert_eq!(world.put(of_nobody), Err(PutError::WouldAdd));
    let token = world.lease(1, 1_000)[0].token;
    world.ack(token);
    assert_eq!(world.put(put("a")), Err(PutError::WouldAdd), "it is done");
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn the_defaults_of_a_queue_stand_in_for_what_is_not_said() {
    let mut world = World::new();
    let retry = Some(Retry { max_attempts: Some(1), backoff: None });
    let default_lease_ms = Some(7_000);
    set(&mut world, QueueSettings { retry, default_lease_ms, ..QueueSettings::default() });
    world.put_in("a", 0);
    let Answer::Lease(Ok(leased)) = world.ask(Command::Lease(Lease::new(&queue("q")))) else { panic!() };
    assert_eq!(leased[0].lease_until, ms(7_000));
    world.nack(leased[0].token, None);
    assert_eq!(world.get("a").expect("shown").state, State::Dead);
    let own = Terms { retry: Some(Retry::default()), ..Terms::default() };
    world.put(Put { terms: own, ..Put::new(&queue("q"), key("b")) }).expect("taken");
    let token = world.lease(1, 1_000)[0].token;
    world.nack(token, None);
    assert_eq!(world.get("b").expect("shown").state, State::Ready, "what it says itself goes first");
}

#[test]
fn what_was_laid_down_survives_a_crash_and_a_rate_begins_with_nothing() {
    let mut world = World::new();
    let settings = QueueSettings { max_in_flight: Some(3), ..rate(1, 1_000, 2) };
    set(&mut world, settings.clone());
    change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
    change(&mut world, QueueChange::Drain).expect("taken");
    let mut world = world.crash();
    let seen = view(&mut world);
    assert_eq!((seen.settings, seen.paused_until), (settings, Some(Timestamp::MAX)));
    assert!(seen.counts.draining);
    change(&mut world, QueueChange::Resume).expect("taken");
    world.put_in("a", 0);
    assert!(world.lease(1, 1_000).is_empty(), "nobody knows what was handed out before the crash");
    world.pass_ms(1_000);
    assert_eq!(keys(&world.lease(1, 1_000)), ["a"]);
    set(&mut world, QueueSettings::default());
    let mut world = world.crash();
    assert_eq!(view(&mut world).settings, QueueSettings::default());
}

/// The story: the limit was one. A crash gave the task to another worker while its first worker went on.
#[test]
fn a_worker_of_an_earlier_life_cannot_go_on_beyond_the_limit() {
    let mut world = World::new();
    set(&mut world, in_flight(1));
    world.put_in("a", 0);
    world.put_in("b", 0);
    let old = world.lease(1, 60_000)[0].token;
    let mut world = world.crash();
    let cancelled = world.lease(1, 60_000);
    assert_eq!(keys(&cancelled), ["a"]);
    world.nack(cancelled[0].token, Some(10_000));
    let other = world.lease(1, 60_000);
    assert_eq!(keys(&other), ["b"]);
    assert_eq!(world.extend(old, 60_000), TokenAnswer::Expired);
    assert_eq!(world.counts(), (1, 0, 1));
}

#[test]
fn an_answer_waits_for_the_commit_and_a_failed_one_leaves_it_open() {
    let mut world = World::new();
    world.hold_commits = true;
    let command = ChangeQueue { queue: queue("q"), change: QueueChange::Pause { ms: None } };
    let call = world.send(Command::ChangeQueue(command));
    let look = world.send(Command::Queue(GetQueue(queue("q"))));
    assert_eq!((world.answer(call), world.answer(look)), (None, None));
    world.release();
    assert_eq!(world.answer(call), Some(Answer::ChangeQueue(Ok(()))));
    assert!(matches!(world.answer(look), Some(Answer::Queue(Ok(view))) if view.counts.paused));
    world.fail_commits = true;
    let Err(QueueError::Unavailable(why)) = change(&mut world, QueueChange::Resume) else { panic!("taken") };
    assert!(matches!(why, Unavailable::Indeterminate { .. }), "{why}");
    let Answer::Queue(Err(why)) = world.ask(Command::Queue(GetQueue(queue("q")))) else {
        panic!("it was shown")
    };
    assert!(matches!(why, Unavailable::Indeterminate { .. }), "it is paused, or it is not: {why}");
    let Answer::Queues(Err(_)) = world.ask(Command::Queues(ListQueues::default())) else {
        panic!("it was shown")
    };
}

#[test]
fn what_is_done_is_remembered_for_as_long_as_its_queue_says() {
    let mut world = World::new();
    let done = |world: &mut World| {
        world.put_in("a", 0);
        let token = world.lease(1, 1_000)[0].token;
        assert_eq!(world.ack(token), TokenAnswer::Acked);
    };
    done(&mut world);
    world.pass_ms(86_399_999);
    assert_eq!(world.get("a"), Err(GetError::Done));
    world.pass_ms(1);
    assert_eq!(world.get("a"), Err(GetError::NotFound));
    assert_eq!(world.cancel("a"), Err(CancelError::NotFound));
    let history = Some(Retention { keep_ms: 5_000, keys: 10 });
    set(&mut world, QueueSettings { history, ..QueueSettings::default() });
    done(&mut world);
    world.pass_ms(4_999);
    assert_eq!(world.cancel("a"), Err(CancelError::Done));
    world.pass_ms(1);
    assert_eq!(world.get("a"), Err(GetError::NotFound));
}

/// The story: a call waited at a pause, and the records at the head of the line were fetched and let go of for ever.
#[test]
fn a_call_that_waits_at_a_pause_has_nothing_fetched() {
    for (budget, tasks) in (1..12).flat_map(|n| (2..9).map(move |tasks| (512 * n, tasks))) {
        let mut world = World::with(EngineConfig { near_bytes_max: budget, ..EngineConfig::default() });
        change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
        (0..tasks).for_each(|n| drop(world.put_in(&format!("t{n}"), 0)));
        let waiting = wait(&mut world, 2);
        world.pass_ms(1);
        assert_eq!(granted(&mut world, waiting), None);
        world.hold_reads = true;
        (0..5).for_each(|_| world.input(Input::Wake));
        assert_eq!(world.reads_held(), 0, "{budget} bytes, {tasks} tasks");
        world.release();
        change(&mut world, QueueChange::Resume).expect("taken");
        assert_eq!(granted(&mut world, waiting), Some(vec!["t0".to_owned(), "t1".to_owned()]));
    }
}

/// A task as the plain reading of the rules knows it.
#[derive(Clone, Debug)]
struct Plain {
    name: String,
    group: String,
    priority: u32,
    seq: u64,
    token: Option<Token>,
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The plain reading: walk along the line, and take each task that fits.
fn expected(tasks: &[Plain], settings: &QueueSettings, paused: bool, max: usize) -> Vec<String> {
    let mut line: Vec<&Plain> = tasks.iter().filter(|task| task.token.is_none()).collect();
    line.sort_by_key(|task| (task.priority, task.seq));
    let mut in_group: BTreeMap<&str, u64> = BTreeMap::new();
    let mut leased = 0;
    for task in tasks.iter().filter(|task| task.token.is_some()) {
        leased += 1;
        *in_group.entry(&task.group).or_default() += 1;
    }
    let mut got = Vec::new();
    for task in line {
        let full = settings.max_in_flight.is_some_and(|limit| leased >= limit);
        if paused || full || got.len() >= max {
            break;
        }
        let of_group = in_group.entry(&task.group).or_default();
        let limit = settings.max_in_flight_per_group.filter(|_| !task.group.is_empty());
        if limit.is_some_and(|limit| *of_group >= limit) {
            continue;
        }
        *of_group += 1;
        leased += 1;
        got.push(task.name.clone());
    }
    got
}

/// Against the plain reading, with all in memory and with hardly anything there.
#[test]
fn a_lease_gets_what_a_walk_along_the_line_would() {
    for seed in 0..60 {
        let near_bytes_max = if seed % 2 == 0 { 256 << 20 } else { 4_000 };
        let mut world = World::with(EngineConfig { near_bytes_max, ..EngineConfig::default() });
        let mut draw = Draw(seed);
        let (mut tasks, mut settings, mut paused) = (Vec::<Plain>::new(), QueueSettings::default(), false);
        for step in 0..400_u64 {
            let pick = |draw: &mut Draw, tasks: &[Plain], leased: bool| {
                let some: Vec<usize> =
                    (0..tasks.len()).filter(|&at| tasks[at].token.is_some() == leased).collect();
                (!some.is_empty()).then(|| some[draw.below(some.len() as u64) as usize])
            };
            match draw.below(16) {
                0..=4 => {
                    let group = ["", "a", "a", "b", "c"][draw.below(5) as usize].to_owned();
                    let (name, priority) = (format!("t{step}"), [5, 9][draw.below(2) as usize]);
                    let of = (!group.is_empty()).then(|| Group::new(&group).expect("a group"));
                    let terms = Terms { group: of, priority, ..Terms::default() };
                    // Tasks of one instant go by the order of their puts; the clock stands still here.
                    world.put(Put { terms, ..Put::new(&queue("q"), key(&name)) }).expect("taken");
                    tasks.push(Plain { name, group, priority, seq: step, token: None });
                }
                5..=8 => {
                    let max = 1 + draw.below(6) as usize;
                    let wanted = expected(&tasks, &settings, paused, max);
                    let got = world.lease(max, 3_600_000);
                    assert_eq!(keys(&got), wanted, "seed {seed}, step {step}, {settings:?}, {tasks:?}");
                    for leased in got {
                        let task = tasks.iter_mut().find(|task| task.name == leased.key.as_str());
                        task.expect("a task of ours").token = Some(leased.token);
                    }
                }
                9 | 10 => {
                    if let Some(at) = pick(&mut draw, &tasks, true) {
                        world.ack(tasks.remove(at).token.expect("leased"));
                    }
                }
                11 => {
                    if let Some(at) = pick(&mut draw, &tasks, true) {
                        world.nack(tasks[at].token.take().expect("leased"), None);
                    }
                }
                12 => {
                    if let Some(at) = pick(&mut draw, &tasks, false) {
                        assert_eq!(world.cancel(&tasks.remove(at).name), Ok(Cancelled::Cancelled));
                    }
                }
                13 => {
                    if let Some(at) = pick(&mut draw, &tasks, false) {
                        let group = ["a", "b", "c"][draw.below(3) as usize];
                        let to = Some(Some(Group::new(group).expect("a group")));
                        let patch = Patch { group: to, ..Patch::new(&queue("q"), key(&tasks[at].name)) };
                        world.patch(patch).expect("taken");
                        tasks[at].group = group.to_owned();
                    }
                }
                14 => {
                    paused = draw.below(3) == 0;
                    let to = if paused { QueueChange::Pause { ms: None } } else { QueueChange::Resume };
                    change(&mut world, to).expect("taken");
                }
                _ => {
                    let limit = |draw: &mut Draw| Some(1 + draw.below(4)).filter(|&limit| limit < 4);
                    settings.max_in_flight = limit(&mut draw).map(|limit| limit * 2);
                    settings.max_in_flight_per_group = limit(&mut draw);
                    set(&mut world, settings.clone());
                }
            }
            let ready = tasks.iter().filter(|task| task.token.is_none()).count() as u64;
            assert_eq!(world.counts(), (0, ready, tasks.len() as u64 - ready), "seed {seed}, step {step}");
        }
    }
}

/// Whether anything would be lost with a queue is decided where its tasks and schedules are, in the order of all changes.
#[test]
fn a_queue_is_deleted_only_when_it_has_nothing() {
    let mut world = World::new();
    set(&mut world, in_flight(2));
    change(&mut world, QueueChange::Pause { ms: None }).expect("taken");
    let not_empty = |live, dead, schedules| Err(QueueError::NotEmpty { live, dead, schedules });
    world.put_in("far", 10_000_000);
    world.put_in("near", 5);
    let schedule = std::sync::Arc::new(Schedule::new(Cadence::Every { ms: 3_600_000 }));
    let name = ScheduleName::new("s").expect("a name");
    let put = PutSchedule::new(&queue("q"), name.clone(), schedule);
    assert!(matches!(world.ask(Command::PutSchedule(put)), Answer::PutSchedule(Ok(_))));
    assert_eq!(change(&mut world, QueueChange::Delete), not_empty(2, 0, 1));
    assert_eq!(view(&mut world).settings, in_flight(2), "a refusal leaves no trace");
    for gone in ["far", "near"] {
        world.ask(Command::Cancel(Cancel::new(&queue("q"), key(gone))));
    }
    assert_eq!(change(&mut world, QueueChange::Delete), not_empty(0, 0, 1));
    let delete = DeleteSchedule { queue: queue("q"), name, if_version: None };
    world.ask(Command::DeleteSchedule(delete));
    change(&mut world, QueueChange::Resume).expect("taken");
    let retry = Some(Retry { max_attempts: Some(1), backoff: None });
    let terms = Terms { retry, ..Terms::default() };
    world.put(Put { terms, ..Put::new(&queue("q"), key("dies")) }).expect("taken");
    let leased = world.lease(1, 1_000);
    assert_eq!(change(&mut world, QueueChange::Delete), not_empty(1, 0, 0), "it is in a worker's hands");
    world.ask(Command::Nack(Nack::new(&queue("q"), [leased[0].token])));
    assert_eq!(change(&mut world, QueueChange::Delete), not_empty(0, 1, 0));
    world.ask(Command::Cancel(Cancel::new(&queue("q"), key("dies"))));
    assert_eq!(change(&mut world, QueueChange::Delete), Ok(()));
    let gone = view(&mut world);
    assert_eq!((gone.exists, gone.settings), (false, QueueSettings::default()));
    let mut world = world.crash();
    assert!(!view(&mut world).exists, "its settings do not come back");
    assert_eq!(change(&mut world, QueueChange::Delete), Ok(()), "there is nothing that would be lost");
}

/// A put that is decided before the delete keeps the queue; one that comes after it makes the queue anew, without settings.
#[test]
fn a_delete_and_a_put_come_one_after_the_other() {
    let mut world = World::new();
    set(&mut world, in_flight(2));
    let delete = || Command::ChangeQueue(ChangeQueue { queue: queue("q"), change: QueueChange::Delete });
    let put = || Command::Put(Put::without_key(&queue("q")));
    let (first, second) = (world.send(put()), world.send(delete()));
    assert!(matches!(world.answer(first), Some(Answer::Put(Ok(_)))));
    let refused = Some(Answer::ChangeQueue(Err(QueueError::NotEmpty { live: 1, dead: 0, schedules: 0 })));
    assert_eq!(world.answer(second), refused);
    assert_eq!(world.lease(1, 1_000).len(), 1);
    let (first, second) = (world.send(delete()), world.send(put()));
    let refused = Some(Answer::ChangeQueue(Err(QueueError::NotEmpty { live: 1, dead: 0, schedules: 0 })));
    assert_eq!(world.answer(first), refused, "the one in a worker's hands");
    assert!(matches!(world.answer(second), Some(Answer::Put(Ok(_)))));
}
