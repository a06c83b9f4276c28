//! Schedules: instants come, and each instant makes one task, once, whatever happens between.

use std::sync::Arc;

use tickwheel_engine::*;

use crate::world::*;

const HOUR: u64 = 3_600_000;

fn every(ms: u64) -> Schedule {
    Schedule::new(Cadence::Every { ms })
}

fn cron() -> Schedule {
    Schedule::new(Cadence::Cron { text: "each hour".into(), zone: "UTC".into() })
}

/// A driver that knows one expression: it fires when an hour begins.
fn hours(wanted: &InstantWanted) -> InstantFound {
    hours_at(wanted, 0)
}

/// The same in a zone with this offset, which moves no instant of the expression, because it is a whole number of hours.
fn hours_at(wanted: &InstantWanted, offset_s: i32) -> InstantFound {
    if &*wanted.text != "each hour" {
        return Err("no expression".into());
    }
    let (hour, epoch) = (HOUR, Timestamp::EPOCH);
    let found = match wanted.which {
        Which::FirstAfter(after) => Cadence::next_after(hour, epoch, after).map(|at| FoundInstant {
            offset_s: Some(offset_s),
            asked_offset_s: Some(offset_s),
            ..FoundInstant::one(at)
        }),
        Which::LastUntil { from, until } => Cadence::last_until(hour, epoch, until).map(|at| {
            let count = if at < from { 0 } else { at.ms_since(from) / hour + 1 };
            FoundInstant { count, offset_s: Some(offset_s), ..FoundInstant::one(at) }
        }),
        Which::Moved { at, offset_s: before_s } => {
            let later_ms = i64::from(before_s - offset_s) * 1_000;
            let moved = Timestamp::from_ms(at.as_ms() + later_ms);
            moved.map(|at| FoundInstant { offset_s: Some(offset_s), ..FoundInstant::one(at) })
        }
    };
    Ok(found)
}

fn world() -> World {
    let mut world = World::new();
    world.tell = hours;
    world
}

fn name() -> ScheduleName {
    ScheduleName::new("s").expect("a name")
}

fn put(world: &mut World, schedule: Schedule) -> Result<StoredSchedule, ScheduleError> {
    let put = PutSchedule::new(&queue("q"), name(), Arc::new(schedule));
    let Answer::PutSchedule(result) = world.ask(Command::PutSchedule(put)) else { panic!("another answer") };
    result
}

fn record(world: &mut World) -> Arc<ScheduleRecord> {
    let get = GetSchedule { queue: queue("q"), name: name() };
    let Answer::GetSchedule(result) = world.ask(Command::GetSchedule(get)) else { panic!("another answer") };
    result.expect("there").record
}

fn delete(world: &mut World) -> Result<(), ScheduleError> {
    let delete = DeleteSchedule { queue: queue("q"), name: name(), if_version: None };
    let Answer::DeleteSchedule(result) = world.ask(Command::DeleteSchedule(delete)) else {
        panic!("another")
    };
    result
}

/// All tasks there are: their instants, relative to the start, and by how much later each is due.
fn tasks(world: &mut World) -> Vec<(i64, u64)> {
    let list = List { max: 1_000, ..List::new(&queue("q")) };
    let Answer::List(Ok(page)) = world.ask(Command::List(list)) else { panic!("no page") };
    page.tasks.iter().map(instant_of).collect()
}

fn instants(world: &mut World) -> Vec<i64> {
    tasks(world).into_iter().map(|(at, _)| at).collect()
}

fn instant_of(task: &TaskView) -> (i64, u64) {
    let at = |late: u64| Timestamp::from_ms(task.due_at.as_ms() - late as i64).expect("after 1970");
    let late = (0..=50_000).find(|&late| occurrence_key(&name(), at(late)) == task.key);
    let late = late.unwrap_or_else(|| panic!("{task:?}"));
    (at(late).as_ms() - ms(0).as_ms(), late)
}

/// Goes from one wake of the engine to the next, as a server does.
fn walk(world: &mut World, by_ms: u64) {
    let mut left = by_ms;
    while left > 0 {
        let step = world.until_wake_ms().unwrap_or(left).clamp(1, left);
        world.pass_ms(step);
        left -= step;
    }
}

#[test]
fn each_instant_becomes_a_task_at_its_own_time() {
    let mut world = world();
    let stored = put(&mut world, every(1_000)).expect("taken");
    assert!(stored.created);
    assert_eq!(stored.schedule.record.next, Some(ms(1_000)));
    world.pass_ms(999);
    assert_eq!(world.counts(), (0, 0, 0));
    world.pass_ms(1);
    let leased = world.lease(10, 1_000);
    assert_eq!(keys(&leased), ["s@2017-07-14T02:40:01.000Z"]);
    assert_eq!((leased[0].due_at, leased[0].ready_at), (ms(1_000), ms(1_000)));
    walk(&mut world, 2_500);
    assert_eq!(instants(&mut world), [1_000, 2_000, 3_000]);
    let record = record(&mut world);
    assert_eq!((record.made, record.last, record.next), (3, Some(ms(3_000)), Some(ms(4_000))));
    assert_eq!(record.version, stored.schedule.record.version, "its tasks leave the version alone");
}

#[test]
fn a_cron_expression_is_asked_about_and_the_answer_is_kept() {
    let mut world = world();
    let first = Cadence::next_after(HOUR, Timestamp::EPOCH, ms(0)).expect("an hour begins");
    let stored = put(&mut world, cron()).expect("taken");
    assert_eq!(stored.schedule.record.next, Some(first));
    walk(&mut world, 2 * HOUR);
    assert_eq!(record(&mut world).made, 2);
    let mut world = world.crash();
    walk(&mut world, HOUR);
    assert_eq!(record(&mut world).made, 3);
    let mut bad = cron();
    bad.cadence = Cadence::Cron { text: "whenever".into(), zone: "UTC".into() };
    assert_eq!(put(&mut world, bad), Err(ScheduleError::Cadence { why: "no expression".into() }));
    assert_eq!(record(&mut world).made, 3, "a refusal leaves no trace");
}

/// The instants of the tasks that this policy makes for a night in which the server did not run, and for an hour more.
fn after_a_night(catch_up: CatchUp, schedule: Schedule) -> Vec<i64> {
    let mut world = world();
    put(&mut world, Schedule { catch_up, ..schedule }).expect("taken");
    // Not from wake to wake: the server does not run.
    world.pass_ms(10 * HOUR + 30 * 60_000);
    walk(&mut world, HOUR);
    instants(&mut world)
}

#[test]
fn what_was_missed_is_left_out_made_up_for_once_or_made_up_for() {
    let hour = i64::try_from(HOUR).expect("it fits");
    let all: Vec<i64> = (1..=11).map(|n| n * hour).collect();
    assert_eq!(after_a_night(CatchUp::All, every(HOUR)), all);
    assert_eq!(after_a_night(CatchUp::Once, every(HOUR)), [10 * hour, 11 * hour]);
    assert_eq!(after_a_night(CatchUp::Skip, every(HOUR)), [11 * hour]);
    assert_eq!(after_a_night(CatchUp::Once, cron()).len(), 2);
    assert_eq!(after_a_night(CatchUp::Skip, cron()).len(), 1);
    // Instants that are less than a minute old are not missed.
    let twenties = after_a_night(CatchUp::Skip, every(20_000));
    assert_eq!(twenties[..3], [20, 40, 60].map(|s| 10 * hour + 29 * 60_000 + s * 1_000));
    let twenties = after_a_night(CatchUp::Once, every(20_000));
    assert_eq!(twenties[0], 10 * hour + 28 * 60_000 + 40_000, "and the last of the missed is made up for");
}

#[test]
fn start_end_and_count_bound_the_instants() {
    let mut world = world();
    let bounded = Schedule { start: Some(ms(10_000)), end: Some(ms(12_500)), ..every(1_000) };
    put(&mut world, bounded).expect("taken");
    walk(&mut world, 20_000);
    assert_eq!(instants(&mut world), [10_000, 11_000, 12_000]);
    assert_eq!(record(&mut world).next, None);
    let again = Schedule { start: Some(ms(10_000)), count: Some(5), ..every(1_000) };
    put(&mut world, again).expect("taken");
    walk(&mut world, 20_000);
    let record = record(&mut world);
    assert_eq!((record.made, record.next), (5, None), "three were made before");
    let body = Arc::new(Body::bytes(b"new"));
    let again = Schedule { start: Some(ms(10_000)), count: Some(5), body, ..every(1_000) };
    assert_eq!(put(&mut world, again).map(|stored| stored.schedule.record.next), Ok(None), "it is over");
    let over = Schedule { end: Some(ms(0)), ..every(1_000) };
    assert_eq!(put(&mut world, over), Err(ScheduleError::NeverFires));
    assert_eq!(
        put(&mut world, every(10)).expect_err("too short").to_string(),
        "a time of less than 100 ms from one occurrence to the next cannot be"
    );
}

#[test]
fn who_starts_now_starts_now() {
    let mut world = world();
    world.pass_ms(500);
    put(&mut world, Schedule { start: Some(ms(400)), ..every(HOUR) }).expect("taken");
    world.pass_ms(1);
    assert_eq!(instants(&mut world), [400]);
    assert_eq!(record(&mut world).next, ms(400).plus_ms(HOUR));
}

#[test]
fn the_same_again_changes_nothing_and_another_body_leaves_the_instants_alone() {
    let mut world = world();
    let first = put(&mut world, every(1_000)).expect("taken");
    walk(&mut world, 1_500);
    let again = put(&mut world, every(1_000)).expect("taken");
    assert!(!again.created);
    assert_eq!(again.schedule.record.version, first.schedule.record.version);
    let other = Schedule { body: Arc::new(Body::bytes(b"new")), ..every(1_000) };
    let other = put(&mut world, other).expect("taken").schedule.record;
    assert!(other.version > first.schedule.record.version);
    assert_eq!((other.made, other.next), (1, Some(ms(2_000))));
    let slower = put(&mut world, every(5_000)).expect("taken").schedule.record;
    assert_eq!(slower.next, Some(ms(6_500)), "counted anew");
}

/// Schedules; instants made, left out, waiting.
fn figures(world: &mut World) -> (usize, u64, u64, usize) {
    let Answer::Stats(Ok(stats)) = world.ask(Command::Stats(GetStats(ListQueues::default()))) else {
        panic!("figures are always there")
    };
    (stats.schedules, stats.made_total, stats.skipped_total, stats.instants_waiting)
}

#[test]
fn an_instant_waits_for_its_turn_or_is_left_out() {
    for (overlap, made, skipped) in [(Overlap::Skip, 1, 2), (Overlap::Queue, 1, 0), (Overlap::Allow, 3, 0)] {
        let mut world = world();
        put(&mut world, Schedule { overlap, ..every(1_000) }).expect("taken");
        walk(&mut world, 3_000);
        let record = record(&mut world);
        assert_eq!((record.made, record.skipped), (made, skipped), "{overlap:?}");
        let waiting = if overlap == Overlap::Queue { 2 } else { 0 };
        assert_eq!(figures(&mut world), (1, made, skipped, waiting), "{overlap:?}");
    }
    let mut world = world();
    put(&mut world, Schedule { overlap: Overlap::Queue, ..every(1_000) }).expect("taken");
    walk(&mut world, 3_000);
    let mut world = world.crash();
    for wanted in ["s@2017-07-14T02:40:01.000Z", "s@2017-07-14T02:40:02.000Z", "s@2017-07-14T02:40:03.000Z"] {
        let leased = world.lease(10, 1_000);
        assert_eq!(keys(&leased), [wanted]);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    }
    assert_eq!(world.lease(10, 1_000), []);
    let record = record(&mut world);
    assert_eq!((record.made, &record.running[..], record.waiting.len()), (3, &[][..], 0));
}

#[test]
fn an_end_is_the_end_of_what_waits_for_its_turn_too() {
    let mut world = world();
    let queued = Schedule { overlap: Overlap::Queue, ..every(1_000) };
    put(&mut world, queued.clone()).expect("taken");
    walk(&mut world, 3_000);
    let ends = put(&mut world, Schedule { end: Some(ms(2_500)), ..queued }).expect("taken").schedule.record;
    assert_eq!((&ends.waiting[..], ends.skipped, ends.next), (&[ms(2_000)][..], 1, None));
    for wanted in ["s@2017-07-14T02:40:01.000Z", "s@2017-07-14T02:40:02.000Z"] {
        let leased = world.lease(10, 1_000);
        assert_eq!(keys(&leased), [wanted]);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked);
    }
    walk(&mut world, 5_000);
    assert_eq!(world.lease(10, 1_000), []);
}

#[test]
fn a_fixed_delay_counts_from_the_end_of_the_task_before() {
    let mut world = world();
    put(&mut world, Schedule::new(Cadence::FixedDelay { ms: 1_000 })).expect("taken");
    walk(&mut world, 5_000);
    assert_eq!(instants(&mut world), [1_000], "nobody has worked on it");
    let mut world = world.crash();
    let leased = world.lease(1, 10_000);
    walk(&mut world, 300);
    world.ack(leased[0].token);
    assert_eq!(record(&mut world).next, Some(ms(6_300)));
    walk(&mut world, 1_000);
    // A task that is cancelled has ended, too.
    assert_eq!(world.cancel("s@2017-07-14T02:40:06.300Z"), Ok(Cancelled::Cancelled));
    walk(&mut world, 1_000);
    assert_eq!(instants(&mut world), [7_300]);
}

#[test]
fn jitter_moves_a_task_and_not_its_key() {
    let mut world = world();
    put(&mut world, Schedule { jitter_ms: 50_000, ..every(60_000) }).expect("taken");
    walk(&mut world, 10 * 60_000 - 1);
    let late: Vec<u64> = tasks(&mut world).into_iter().map(|(_, late)| late).collect();
    assert_eq!(late.len(), 9);
    assert!(late.iter().all(|&late| late <= 50_000), "{late:?}");
    assert!(late.iter().any(|one| *one != late[0]), "{late:?}");
}

#[test]
fn a_key_that_is_taken_and_a_queue_that_takes_none_are_counted() {
    let mut world = world();
    put(&mut world, every(1_000)).expect("taken");
    world.put_in("s@2017-07-14T02:40:01.000Z", 100_000);
    walk(&mut world, 1_000);
    assert_eq!((record(&mut world).made, record(&mut world).skipped), (0, 1));
    crate::flow::change(&mut world, QueueChange::Drain).expect("taken");
    walk(&mut world, 1_000);
    assert_eq!((record(&mut world).made, record(&mut world).skipped), (0, 2));
    crate::flow::change(&mut world, QueueChange::Resume).expect("taken");
    walk(&mut world, 1_000);
    assert_eq!((record(&mut world).made, record(&mut world).skipped), (1, 2));
}

#[test]
fn a_schedule_that_is_given_up_makes_nothing_more_and_its_tasks_stay() {
    let mut world = world();
    put(&mut world, every(1_000)).expect("taken");
    walk(&mut world, 1_000);
    assert_eq!(delete(&mut world), Ok(()));
    assert_eq!(delete(&mut world), Err(ScheduleError::NotFound));
    let mut world = world.crash();
    walk(&mut world, 10_000);
    assert_eq!(instants(&mut world), [1_000]);
    assert_eq!(world.until_wake_ms(), None, "nothing is to come");
}

#[test]
fn of_no_instant_two_tasks_are_made_whatever_the_clock_does() {
    let mut world = world();
    put(&mut world, every(1_000)).expect("taken");
    walk(&mut world, 2_000);
    let leased = world.lease(10, 1_000);
    leased.iter().for_each(|one| assert_eq!(world.ack(one.token), TokenAnswer::Acked));
    world.step_wall_ms(-1_500);
    walk(&mut world, 1_000);
    assert_eq!(instants(&mut world), [0_i64; 0]);
    let mut world = world.crash();
    walk(&mut world, 500);
    assert_eq!(instants(&mut world), [0_i64; 0]);
    walk(&mut world, 1_000);
    assert_eq!(instants(&mut world), [3_000]);
}

#[test]
fn a_page_of_schedules_goes_by_name() {
    let mut world = world();
    for (of, name) in [("q", "b"), ("q", "a"), ("p", "z"), ("q", "c"), ("r", "a")] {
        let name = ScheduleName::new(name).expect("a name");
        let put = PutSchedule::new(&queue(of), name, Arc::new(every(1_000)));
        assert!(matches!(world.ask(Command::PutSchedule(put)), Answer::PutSchedule(Ok(_))));
    }
    let page = |world: &mut World, after: Option<&str>, max| {
        let after = after.map(|name| ScheduleName::new(name).expect("a name"));
        let list = ListSchedules { queue: queue("q"), after, max };
        let Answer::Schedules(Ok(page)) = world.ask(Command::Schedules(list)) else { panic!("no page") };
        page.into_iter().map(|one| one.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(page(&mut world, None, 2), ["a", "b"]);
    assert_eq!(page(&mut world, Some("b"), 2), ["c"]);
}

#[test]
fn a_page_of_all_schedules_goes_by_queue_and_name() {
    let mut world = world();
    for (of, name) in [("q", "b"), ("q", "a"), ("p", "z"), ("r", "a")] {
        let name = ScheduleName::new(name).expect("a name");
        let put = PutSchedule::new(&queue(of), name, Arc::new(every(1_000)));
        assert!(matches!(world.ask(Command::PutSchedule(put)), Answer::PutSchedule(Ok(_))));
    }
    let page_of = |world: &mut World, prefix: &str, after: Option<(&str, &str)>, max| {
        let after = after.map(|(of, name)| (queue(of), ScheduleName::new(name).expect("a name")));
        let list = Command::AllSchedules(ListAllSchedules { prefix: prefix.into(), after, max });
        let Answer::AllSchedules(Ok(page)) = world.ask(list) else { panic!("no page") };
        page.into_iter()
            .map(|one| format!("{}:{}", one.queue.as_str(), one.name.as_str()))
            .collect::<Vec<_>>()
    };
    let page = |world: &mut World, after, max| page_of(world, "", after, max);
    assert_eq!(page(&mut world, None, 3), ["p:z", "q:a", "q:b"]);
    assert_eq!(page(&mut world, Some(("q", "a")), 3), ["q:b", "r:a"]);
    assert_eq!(page(&mut world, Some(("r", "a")), 3), [""; 0]);
    assert_eq!(page_of(&mut world, "q", None, 3), ["q:a", "q:b"]);
    assert_eq!(page_of(&mut world, "q", Some(("p", "z")), 1), ["q:a"], "a cursor before the prefix");
    assert_eq!(page_of(&mut world, "q", Some(("q", "a")), 3), ["q:b"]);
    assert_eq!(page_of(&mut world, "q", Some(("r", "a")), 3), [""; 0]);
    for none in ["qq", "-", "o"] {
        assert_eq!(page_of(&mut world, none, None, 3), [""; 0], "{none}");
    }
}

#[test]
fn a_page_of_all_schedules_has_an_end_whatever_is_asked_for() {
    let mut world = world();
    for index in 0..=SCHEDULES_PAGE_MAX {
        let name = ScheduleName::new(&format!("{index:04}")).expect("a name");
        let put = PutSchedule::new(&queue("q"), name, Arc::new(every(1_000)));
        assert!(matches!(world.ask(Command::PutSchedule(put)), Answer::PutSchedule(Ok(_))));
    }
    let list = Command::AllSchedules(ListAllSchedules { prefix: "".into(), after: None, max: usize::MAX });
    let Answer::AllSchedules(Ok(page)) = world.ask(list) else { panic!("no page") };
    assert_eq!(page.len(), SCHEDULES_PAGE_MAX);
}

#[test]
fn while_a_key_is_looked_up_the_schedule_may_be_given_up() {
    let mut world = world();
    put(&mut world, every(1_000)).expect("taken");
    world.hold_reads = true;
    world.pass_ms(1_000);
    assert_eq!(world.reads_held(), 1);
    delete(&mut world).expect("there");
    world.release();
    assert_eq!(world.counts(), (0, 0, 0));
}

#[test]
fn a_fixed_delay_does_not_begin_before_its_start() {
    let mut world = world();
    let delay = || Schedule::new(Cadence::FixedDelay { ms: 1_000 });
    put(&mut world, delay()).expect("taken");
    walk(&mut world, 1_000);
    let leased = world.lease(1, 10_000);
    put(&mut world, Schedule { start: Some(ms(60_000)), ..delay() }).expect("taken");
    world.ack(leased[0].token);
    assert_eq!(record(&mut world).next, Some(ms(60_000)));
    walk(&mut world, 61_000);
    assert_eq!(instants(&mut world), [60_000]);
}

#[test]
fn what_was_missed_is_counted() {
    for (catch_up, made, skipped) in [(CatchUp::Skip, 0, 10), (CatchUp::Once, 1, 9), (CatchUp::All, 10, 0)] {
        // A cron expression counts as an interval does: each instant that is left out is one.
        for schedule in [every(HOUR), cron()] {
            let mut world = world();
            put(&mut world, Schedule { catch_up, ..schedule }).expect("taken");
            world.pass_ms(10 * HOUR + 10 * 60_000);
            walk(&mut world, 20);
            let record = record(&mut world);
            assert_eq!(
                (record.made, record.skipped),
                (made, skipped),
                "{catch_up:?} of {:?}",
                record.schedule
            );
            assert_eq!(figures(&mut world), (1, made, skipped, 0), "{catch_up:?}");
        }
    }
}

/// The story: a queue was drained over a night, and `skipped` of its schedule grew by 1 with a cron expression, and by each instant with an interval.
#[test]
fn instants_that_a_queue_does_not_take_are_counted_each() {
    for schedule in [every(HOUR), cron()] {
        let mut world = world();
        put(&mut world, Schedule { catch_up: CatchUp::All, ..schedule }).expect("taken");
        crate::flow::change(&mut world, QueueChange::Drain).expect("taken");
        world.pass_ms(10 * HOUR + 10 * 60_000);
        walk(&mut world, 20);
        let record = record(&mut world);
        assert_eq!((record.made, record.skipped), (0, 10), "{:?}", record.schedule);
    }
}

#[test]
fn between_two_instants_that_are_made_up_for_there_is_a_commit() {
    let mut world = world();
    put(&mut world, Schedule { catch_up: CatchUp::All, ..every(1_000) }).expect("taken");
    world.hold_commits = true;
    world.pass_ms(100_000);
    (0..20).for_each(|_| world.pass_ms(1));
    assert_eq!(world.engine.tasks_in_memory(), 1);
    assert_eq!(world.until_wake_ms(), None, "and nobody spins meanwhile");
    world.release();
    walk(&mut world, 200);
    assert_eq!(instants(&mut world).len(), 100);
}

#[test]
fn an_instant_comes_before_the_call_that_comes_with_it() {
    let mut world = world();
    put(&mut world, every(1_000)).expect("taken");
    world.pass_ms_unseen(1_000);
    let put = Put::new(&queue("q"), occurrence_key(&name(), ms(1_000)));
    let create = Put { mode: PutMode::Create, ..put };
    assert!(matches!(world.put(create), Err(PutError::Live { .. })), "the instant has its task already");
    let record = record(&mut world);
    assert_eq!((record.made, record.skipped), (1, 0));
}

/// The story: one tenant made 10,000 schedules, and no other tenant could make one.
#[test]
fn the_schedules_of_one_scope_have_a_quarter_of_the_places() {
    let mut world = World::new();
    let mut put = |of: &str, name: &str, scope: &[&str]| {
        let name = ScheduleName::new(name).expect("a name");
        let scope = (!scope.is_empty()).then(|| scope.iter().map(|part| Arc::from(*part)).collect());
        let call = PutSchedule { scope, ..PutSchedule::new(&queue(of), name, Arc::new(every(3_600_000))) };
        let Answer::PutSchedule(result) = world.ask(Command::PutSchedule(call)) else {
            panic!("another answer")
        };
        result.map(|stored| stored.created)
    };
    let noisy = ["noisy/", "noisy-too"];
    for number in 0..1_250 {
        assert_eq!(put("noisy/q", &number.to_string(), &noisy), Ok(true));
        assert_eq!(put("noisy-too", &number.to_string(), &noisy), Ok(true));
    }
    let refused = put("noisy/other", "one-more", &noisy);
    assert!(matches!(refused, Err(ScheduleError::ShareUsedUp { schedules: 2_500, .. })), "{refused:?}");
    assert_eq!(put("noisy/q", "7", &noisy), Ok(false), "those that are there can be changed");
    assert_eq!(put("quiet/q", "a", &["quiet/"]), Ok(true), "another scope has its own share");
    assert_eq!(put("noisy-too-2", "a", &["noisy-too-2"]), Ok(true), "a queue is no beginning of another");
    assert_eq!(put("noisy/q", "unscoped", &[]), Ok(true), "a caller without a scope has all places");
}

/// A driver that knows `hours`, in a zone whose clock shows an hour later what it showed under its old rules.
fn an_hour_later(wanted: &InstantWanted) -> InstantFound {
    hours_at(wanted, -3_600)
}

/// The same, an hour earlier.
fn an_hour_earlier(wanted: &InstantWanted) -> InstantFound {
    hours_at(wanted, 3_600)
}

/// A schedule of which three instants have tasks, which are live.
fn three_hours_begun() -> World {
    let mut world = world();
    put(&mut world, cron()).expect("it stands");
    walk(&mut world, 3 * HOUR + 1_000);
    world
}

/// Returns how many tasks a schedule has made since the record `before`, by how many hours its next instant moved, and how many instants were left
/// out.
fn moved_since(before: &ScheduleRecord, world: &mut World) -> (u64, i64, u64) {
    // The driver is asked in the next step, and the answer has to be durable.
    (0..3).for_each(|_| world.pass_ms(1));
    let next = |record: &ScheduleRecord| record.next.expect("it goes on").as_ms();
    let after = record(world);
    (after.made - before.made, (next(&after) - next(before)) / HOUR as i64, after.skipped - before.skipped)
}

/// The story: the rules of a zone changed, and its schedules went on by the old rules until a restart. Where such a change moves the present
/// over a local time, that time must not come twice, and must not be lost.
#[test]
fn new_rules_of_a_zone_let_no_local_time_come_twice_and_lose_none() {
    let change = |world: &mut World, tell: fn(&InstantWanted) -> InstantFound, zone: &str| {
        let before = record(world);
        world.tell = tell;
        world.input(Input::ZonesChanged { zones: ["Mars/Olympus".into(), zone.into()].into() });
        moved_since(&before, world)
    };
    let begun = three_hours_begun;
    assert_eq!(
        change(&mut begun(), an_hour_later, "UTC"),
        (0, 1, 0),
        "the next local time was decided already"
    );
    assert_eq!(change(&mut begun(), an_hour_earlier, "UTC"), (0, 0, 0), "no instant gets a second task");
    assert_eq!(change(&mut begun(), hours, "UTC"), (0, 0, 0));
    assert_eq!(
        change(&mut begun(), an_hour_later, "Europe/Berlin"),
        (0, 0, 0),
        "the schedule has another zone"
    );
    // The schedule has made no task yet. The present is moved over a local time, which gets its task.
    let mut world = world();
    world.pass_ms(3 * HOUR + 1_000);
    put(&mut world, cron()).expect("it stands");
    assert_eq!(change(&mut world, an_hour_earlier, "UTC"), (1, 0, 0), "it is not lost");
    // An instant that waits for the end of a task is not added again.
    let mut world = self::world();
    put(&mut world, Schedule { overlap: Overlap::Queue, ..cron() }).expect("it stands");
    walk(&mut world, 3 * HOUR + 1_000);
    let waiting = record(&mut world).waiting.clone();
    assert_eq!((waiting.len(), change(&mut world, an_hour_earlier, "UTC")), (2, (0, 0, 0)));
    assert_eq!(record(&mut world).waiting, waiting);
}

/// The story: a machine got new zones while its server was stopped, or a server with other zones took a shard over. The first instant after the start
/// was a local time that had its task.
#[test]
fn new_rules_at_a_start_let_no_local_time_come_twice_and_lose_none() {
    let after_start = |mut world: World, tell| {
        let before = record(&mut world);
        world.tell = tell;
        let mut world = world.crash();
        let moved = moved_since(&before, &mut world);
        assert_eq!(moved_since(&record(&mut world), &mut world), (0, 0, 0));
        let decided = record(&mut world).decided;
        assert_eq!(record(&mut world.crash()).decided, decided, "the same rules move nothing again");
        moved
    };
    assert_eq!(after_start(three_hours_begun(), an_hour_later), (0, 1, 0), "the next local time was decided");
    assert_eq!(after_start(three_hours_begun(), an_hour_earlier), (0, 0, 0), "no instant gets a second task");
    assert_eq!(after_start(three_hours_begun(), hours), (0, 0, 0));
    let mut world = world();
    world.pass_ms(3 * HOUR + 1_000);
    put(&mut world, cron()).expect("it stands");
    assert_eq!(after_start(world, an_hour_earlier), (1, 0, 0), "it is not lost");
    // A decided instant does not move over a start in the future.
    let mut world = self::world();
    let start = Timestamp::from_ms(world.now.wall.as_ms() + 10 * HOUR as i64);
    put(&mut world, Schedule { start, ..cron() }).expect("it stands");
    assert_eq!(after_start(world, an_hour_later), (0, 0, 0));
}

/// The ways in which a schedule takes turns, one task a second.
fn by_turns() -> [Schedule; 3] {
    [
        Schedule { overlap: Overlap::Skip, ..every(1_000) },
        Schedule { overlap: Overlap::Queue, ..every(1_000) },
        Schedule::new(Cadence::FixedDelay { ms: 1_000 }),
    ]
}

/// Acks all ready tasks, and returns how many there were.
fn ack_all(world: &mut World) -> usize {
    let leased = world.lease(1_000, 10_000);
    leased.iter().for_each(|one| assert_eq!(world.ack(one.token), TokenAnswer::Acked));
    leased.len()
}

/// Checks that the schedule makes no task for as long as the live tasks of its name live, over a crash, and that it goes on after their end.
fn waits_for_live(mut world: World, live: usize, what: &str) {
    let made = record(&mut world).made;
    walk(&mut world, 3_000);
    assert_eq!(record(&mut world).made, made, "{what}");
    let mut world = world.crash();
    walk(&mut world, 3_000);
    assert_eq!(record(&mut world).made, made, "{what}, after a crash");
    for left in (1..live).rev() {
        let leased = world.lease(1, 10_000);
        assert_eq!(world.ack(leased[0].token), TokenAnswer::Acked, "{what}");
        walk(&mut world, 2_000);
        assert_eq!(record(&mut world).made, made, "{what}, {left} are left");
    }
    assert_eq!(ack_all(&mut world), 1, "{what}");
    walk(&mut world, 1_000);
    assert_eq!(record(&mut world).made, made + 1, "{what}: it goes on");
}

#[test]
fn a_schedule_that_takes_turns_makes_no_task_beside_one_that_was_redriven() {
    let retry = Some(Retry { max_attempts: Some(1), backoff: None });
    for schedule in by_turns() {
        let what = format!("{schedule:?}");
        let mut world = world();
        let terms = Terms { retry, ..Terms::default() };
        put(&mut world, Schedule { terms, ..schedule }).expect("taken");
        walk(&mut world, 1_000);
        let first = world.lease(1, 10_000)[0].clone();
        assert_eq!(world.nack(first.token, None), TokenAnswer::Nacked);
        // Its owner may make it live beside the next task of the schedule.
        walk(&mut world, 1_000);
        assert_eq!(record(&mut world).made, 2, "{what}");
        let redrive = Command::Redrive(Redrive { queue: queue("q"), id: first.id });
        assert!(matches!(world.ask(redrive), Answer::Redrive(Ok(_))), "{what}");
        waits_for_live(world, 2, &what);
    }
}

#[test]
fn a_schedule_that_begins_to_take_turns_waits_for_the_tasks_of_before() {
    for schedule in by_turns() {
        for deletes in [false, true] {
            let what = format!("{schedule:?}, deleted {deletes}");
            let mut world = world();
            put(&mut world, every(1_000)).expect("taken");
            walk(&mut world, 3_000);
            if deletes {
                delete(&mut world).expect("there");
            }
            put(&mut world, schedule.clone()).expect("taken");
            waits_for_live(world, 3, &what);
        }
    }
}

#[test]
fn a_task_that_is_far_from_due_counts_as_live() {
    for schedule in by_turns() {
        let what = format!("{schedule:?}");
        let mut world = world();
        put(&mut world, every(1_000)).expect("taken");
        walk(&mut world, 1_000);
        let leased = world.lease(1, 10_000);
        assert_eq!(world.nack(leased[0].token, Some(100 * HOUR)), TokenAnswer::Nacked);
        delete(&mut world).expect("there");
        let mut world = world.crash();
        assert_eq!(world.engine.tasks_in_memory(), 0, "it is in the store only");
        put(&mut world, schedule).expect("taken");
        walk(&mut world, 3_000);
        let mut world = world.crash();
        walk(&mut world, 3_000);
        assert_eq!(record(&mut world).made, 0, "{what}");
        assert_eq!(world.cancel("s@2017-07-14T02:40:01.000Z"), Ok(Cancelled::Cancelled));
        walk(&mut world, 1_000);
        assert_eq!(record(&mut world).made, 1, "{what}: it goes on");
    }
}

#[test]
fn a_task_that_a_caller_put_under_the_name_counts_as_live() {
    for schedule in by_turns() {
        let what = format!("{schedule:?}");
        let mut world = world();
        put(&mut world, schedule).expect("taken");
        world.put_in("s@2001-01-01T00:00:00.000Z", 0);
        world.put_in("other@2001-01-01T00:00:00.000Z", 0);
        walk(&mut world, 3_000);
        assert_eq!(record(&mut world).made, 0, "{what}");
        assert_eq!(world.cancel("s@2001-01-01T00:00:00.000Z"), Ok(Cancelled::Cancelled));
        walk(&mut world, 1_000);
        assert_eq!(record(&mut world).made, 1, "{what}");
    }
}

#[test]
fn more_live_tasks_than_a_record_names_all_have_to_end() {
    let mut world = world();
    put(&mut world, every(100)).expect("taken");
    walk(&mut world, 100 * (ScheduleRecord::RUNNING_MAX as u64 + 30));
    let made = record(&mut world).made;
    assert_eq!(made, 130);
    let taking_turns = Schedule { overlap: Overlap::Skip, ..every(100) };
    put(&mut world, taking_turns).expect("taken");
    walk(&mut world, 200);
    assert_eq!(record(&mut world).running.len(), ScheduleRecord::RUNNING_MAX);
    let leased = world.lease(ScheduleRecord::RUNNING_MAX, 10_000);
    leased.iter().for_each(|one| assert_eq!(world.ack(one.token), TokenAnswer::Acked));
    walk(&mut world, 1_000);
    let now = record(&mut world);
    assert_eq!((now.made, now.running.len(), now.may_have_more), (made, 30, false));
    let mut world = world.crash();
    assert_eq!(ack_all(&mut world), 30);
    walk(&mut world, 100);
    assert_eq!(record(&mut world).made, made + 1);
}

/// The story: two schedules began to take turns, and the search in the first queue was not over. The second queue was empty, and its schedule waited
/// for the first one.
#[test]
fn a_schedule_of_an_empty_queue_waits_for_no_search_in_another() {
    let mut world = world();
    world.put_in("far", 3 * HOUR);
    world.hold_reads = true;
    put(&mut world, Schedule { overlap: Overlap::Skip, ..every(1_000) }).expect("taken");
    assert_eq!(world.reads_held(), 1, "the search is under way");
    world.hold_reads = false;
    let schedule = Schedule { overlap: Overlap::Skip, ..every(1_000) };
    let other = PutSchedule::new(&queue("z"), name(), Arc::new(schedule));
    let Answer::PutSchedule(Ok(_)) = world.ask(Command::PutSchedule(other)) else { panic!("refused") };
    world.pass_ms(1_000);
    let live = world.all_counts().into_iter().map(|one| (one.queue.as_str().to_owned(), one.ready));
    assert_eq!(live.collect::<Vec<_>>(), [("q".to_owned(), 0), ("z".to_owned(), 1)]);
    world.release();
    world.pass_ms(1_000);
    assert_eq!(world.counts().1, 1, "the search is over");
}

/// A store that cannot answer in time does not stop a schedule for ever.
#[test]
fn a_search_that_fails_again_and_again_is_given_up() {
    let mut world = world();
    world.put_in("far", 3 * HOUR);
    world.hold_reads = true;
    put(&mut world, Schedule { overlap: Overlap::Skip, ..every(1_000) }).expect("taken");
    for _ in 0..5 {
        assert!(record(&mut world).may_have_more);
        world.leave_unanswered();
        world.pass_ms(1_000);
    }
    assert!(!record(&mut world).may_have_more);
    world.release();
    world.pass_ms(1_000);
    assert_eq!(world.counts().1, 1, "it makes its tasks");
}

/// The story: a database was away for a minute. Each second one page of the search failed, so the schedule took turns no more with its live task.
#[test]
fn a_search_waits_for_a_store_that_is_away() {
    let mut world = world();
    world.put_in("s@2001-01-01T00:00:00.000Z", 3 * HOUR);
    let mut world = world.crash();
    world.hold_reads = true;
    put(&mut world, Schedule { overlap: Overlap::Skip, ..every(1_000) }).expect("taken");
    world.hold_commits = true;
    for _ in 0..60 {
        assert_eq!(world.reads_held(), 1, "the search is under way");
        world.leave_unanswered();
        world.pass_ms(1_000);
    }
    assert!(record(&mut world).may_have_more);
    world.release();
    world.pass_ms(5_000);
    let now = record(&mut world);
    assert_eq!((now.may_have_more, now.running.len(), now.made), (false, 1, 0), "it waits for the live task");
}
