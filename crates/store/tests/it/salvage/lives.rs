//! Small lives, made to lose one frame that matters.

use std::sync::Arc;

use tickwheel_engine::{Batch, Overlap};
use tickwheel_engine::{
    Body, Cadence, Dead, Death, Ended, LeaseNo, Outcome, QueueName, QueueRecord, Reply, Request, Rule,
    RuleName, Schedule, ScheduleName, ScheduleRecord, Seq, Task, TaskEffect, Timestamp,
};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::salvage::{Fate, RuleFate, Unit};
use tickwheel_store::{DiskStore, InlineIo, Table};

use crate::disk::Image;
use crate::salvage::history::open;
use crate::salvage::honest::{contents, salvage};
use crate::salvage::shared::Shared;

const LOG: &str = "shard-0000/log-00000001";
const DUE_MS: i64 = 1_800_000_000_000;

struct Life {
    disk: Shared,
    owner: Owner<DiskStore<Shared, InlineIo<Shared>>>,
    seq: u64,
    /// Where the log ended before each commit.
    commits: Vec<usize>,
}

impl Life {
    fn begin() -> Self {
        let disk = Shared::default();
        Self { disk: disk.clone(), owner: Owner::acquire(open(disk)), seq: 0, commits: Vec::new() }
    }

    /// A commit of one effect. Returns its number.
    fn commit(&mut self, batch: Batch) -> usize {
        let bytes = self.disk.image().files[LOG].clone();
        self.commits.push(bytes.iter().rposition(|byte| *byte != 0).expect("a header") + 1);
        let (ownership, seq) = (self.owner.acquired.ownership, Seq(self.seq));
        let wall = Timestamp::from_ms(DUE_MS - 1_000).expect("after 1970");
        let reply = self.owner.ask(Request::Commit { ownership, seq, wall, batch });
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
        self.commits.len() - 1
    }

    fn effect(&mut self, effect: TaskEffect) -> usize {
        self.commit(Batch { effects: vec![effect], ..Batch::default() })
    }

    fn put(&mut self, id: u64, key: &str) -> Task {
        self.seq += 1;
        let task = sample_task(id, self.seq, "q", key, DUE_MS + id as i64);
        self.effect(TaskEffect::Stored { task: task.clone().into(), body_known: false });
        task
    }

    fn store(&mut self, task: &mut Task, body_known: bool) -> usize {
        self.seq += 1;
        task.seq = Seq(self.seq);
        self.effect(TaskEffect::Stored { task: task.clone().into(), body_known })
    }

    fn end(&mut self, task: &Task) -> usize {
        self.seq += 1;
        let Task { id, queue, key, due_at, .. } = task.clone();
        let (seq, outcome) = (Seq(self.seq), Outcome::Done(LeaseNo(9)));
        self.effect(TaskEffect::Ended(Ended { id, queue, key, seq, at: due_at, outcome }))
    }

    /// The directory, all it had, and the same without the frame of this commit.
    fn without(self, commit: usize) -> (Image, Table) {
        self.without_byte(commit, 75)
    }

    /// The same with this byte of the frame damaged.
    fn without_byte(self, commit: usize, byte: usize) -> (Image, Table) {
        drop(self.owner);
        let image = self.disk.image();
        let whole = contents(&image);
        let mut damaged = image;
        let from = (self.commits[commit] - 16).next_multiple_of(8);
        let bytes = damaged.files.get_mut(LOG).expect("there");
        let at = (from..).step_by(8).find(|at| bytes[*at..].starts_with(b"TWfr")).expect("a frame");
        bytes[at + byte] ^= 1;
        (damaged, whole)
    }
}

#[test]
fn of_two_tasks_with_one_key_the_earlier_had_ended() {
    let mut life = Life::begin();
    let first = life.put(1, "order");
    let end = life.end(&first);
    life.put(2, "order");
    let other = life.put(3, "other");
    life.end(&other);
    let (mut damaged, whole) = life.without(end);
    let outcome = salvage(&mut damaged, &whole, "an end that is lost").expect("it can be read");
    assert_eq!((outcome.report.superseded, outcome.back.len(), outcome.lost.len()), (1, 0, 0));
    let now = contents(&outcome.image);
    assert_eq!(now.tasks_from(0).map(|task| task.id).collect::<Vec<_>>(), [2]);
}

/// The death of a task.
fn dead(keyless: bool) -> Option<Dead> {
    let at = Timestamp::from_ms(DUE_MS).expect("after 1970");
    Some(Dead { at, due_at: at, why: Death::MaxAttempts, keyless })
}

/// The story: a dead task was redriven after another task had had its key and had ended. The end of that one was lost, and the salvage kept
/// it and dropped the live one, because it was put earlier.
#[test]
fn a_task_that_was_redriven_has_its_key_though_it_was_put_earlier() {
    let mut life = Life::begin();
    let mut first = life.put(1, "order");
    first.extra_mut().dead = dead(false);
    life.store(&mut first, true);
    first.extra_mut().dead = dead(true);
    life.store(&mut first, true);
    let second = life.put(2, "order");
    let end = life.end(&second);
    first.extra_mut().dead = None;
    first.version = Seq(life.seq + 1);
    life.store(&mut first, true);
    let (mut damaged, whole) = life.without(end);
    let outcome = salvage(&mut damaged, &whole, "an end before a redrive").expect("it can be read");
    assert_eq!((outcome.lost.len(), outcome.back.len(), outcome.report.superseded), (0, 0, 1));
    let left_out = &outcome.report.superseded_tasks[0];
    assert_eq!((left_out.id, left_out.key.as_str(), left_out.by), (2, "order", 1));
}

/// The story: a redrive took the key from a task that was put later and is dead. The frame was lost, a later change of the redriven task was
/// not, and the salvage dropped the live task for the dead one.
#[test]
fn a_task_that_was_redriven_takes_the_key_from_a_dead_one_that_was_put_later() {
    let mut life = Life::begin();
    let mut first = life.put(1, "order");
    first.extra_mut().dead = dead(true);
    life.store(&mut first, true);
    let mut second = life.put(2, "order");
    second.extra_mut().dead = dead(false);
    life.store(&mut second, true);
    life.seq += 2;
    first.extra_mut().dead = None;
    (first.seq, first.version) = (Seq(life.seq - 1), Seq(life.seq - 1));
    second.extra_mut().dead = dead(true);
    second.seq = Seq(life.seq);
    let effect = |task: &Task| TaskEffect::Stored { task: task.clone().into(), body_known: true };
    let redrive = life.commit(Batch { effects: vec![effect(&first), effect(&second)], ..Batch::default() });
    life.store(&mut first, true);
    let (mut damaged, whole) = life.without(redrive);
    let outcome = salvage(&mut damaged, &whole, "a redrive").expect("it can be read");
    assert_eq!((outcome.lost.len(), outcome.back.len(), outcome.report.superseded), (0, 0, 0));
    let now = contents(&outcome.image);
    let keyed = |id| now.get(id).map(|task| (task.dead().is_some(), task.is_keyed()));
    assert_eq!((keyed(1), keyed(2)), (Some((false, true)), Some((true, false))));
}

/// The story: a task without a key of its own had one like its number, and ended. That end was lost, and another task had been put with
/// this number as its key: two live tasks had one key.
#[test]
fn a_key_that_the_server_made_is_settled_too() {
    let mut life = Life::begin();
    let first = life.put(1, "1");
    let end = life.end(&first);
    life.put(2, "1");
    life.put(3, "other");
    let (mut damaged, whole) = life.without(end);
    let outcome = salvage(&mut damaged, &whole, "a made key").expect("it can be read");
    assert_eq!((outcome.lost.len(), outcome.back.len(), outcome.report.superseded), (0, 0, 1));
}

#[test]
fn a_dead_task_whose_key_leads_to_another_one_stays_dead() {
    let mut life = Life::begin();
    let mut first = life.put(1, "order");
    let at = first.due_at;
    first.extra_mut().dead = Some(Dead { at, due_at: at, why: Death::MaxAttempts, keyless: false });
    life.store(&mut first, true);
    first.extra_mut().dead = Some(Dead { at, due_at: at, why: Death::MaxAttempts, keyless: true });
    let keyless = life.store(&mut first, true);
    life.put(2, "order");
    let last = life.put(3, "other");
    life.end(&last);
    let (mut damaged, whole) = life.without(keyless);
    let outcome = salvage(&mut damaged, &whole, "the key of a dead task").expect("it can be read");
    let now = contents(&outcome.image);
    let dead = now.get(1).expect("it is there");
    assert!(dead.dead().is_some_and(|dead| dead.keyless), "{dead:?}");
    assert_eq!((now.len(), outcome.report.superseded), (2, 0));
}

#[test]
fn a_payload_that_is_lost_is_made_up_for_by_an_older_one_and_that_is_told() {
    let mut life = Life::begin();
    let mut task = life.put(1, "order");
    (task.body, task.version) = (Arc::new(Body::bytes(b"new")), Seq(2));
    let put_again = life.store(&mut task, false);
    task.version = Seq(3);
    life.store(&mut task, true);
    life.put(2, "other");
    let (mut damaged, whole) = life.without(put_again);
    let outcome = salvage(&mut damaged, &whole, "a payload").expect("it can be read");
    let told = &outcome.loss().tasks;
    assert_eq!((told.len(), told[0].id, told[0].fate), (1, 1, Fate::OlderPayload), "{told:?}");
    assert_eq!(told[0].key.as_ref().map(|key| key.as_str()), Some("order"));
    let now = contents(&outcome.image);
    let saved = now.get(1).expect("it is there");
    assert_eq!((saved.seq, saved.body.payload.as_slice()), (Seq(3), &b"{\"seq\":1}"[..]));
}

#[test]
fn a_task_whose_payload_is_nowhere_is_lost_and_named() {
    let mut life = Life::begin();
    life.put(2, "other");
    let mut task = life.put(1, "order");
    let put = life.commits.len() - 1;
    life.store(&mut task, true);
    life.put(3, "third");
    let (mut damaged, whole) = life.without(put);
    let outcome = salvage(&mut damaged, &whole, "a put").expect("it can be read");
    let lost: Vec<_> = outcome.loss().tasks.iter().filter(|task| task.fate == Fate::Lost).collect();
    assert_eq!((lost.len(), lost[0].id), (1, 1), "{:?}", outcome.loss());
    assert_eq!(lost[0].key.as_ref().map(|key| key.as_str()), Some("order"));
    assert_eq!((outcome.loss().unit, outcome.lost.len()), (Unit::Frame, 1));
}

#[test]
fn a_schedule_does_not_wait_for_a_task_that_is_lost() {
    let queue = QueueName::new("q").expect("a name");
    let name = |text| RuleName::Schedule(queue.clone(), ScheduleName::new(text).expect("a name"));
    let record = |cadence, running| {
        let schedule = Schedule { overlap: Overlap::Queue, ..Schedule::new(cadence) };
        let at = Timestamp::from_ms(DUE_MS).expect("after 1970");
        let record = ScheduleRecord::new(Arc::new(schedule), Seq(1), at, at);
        Some(Arc::new(Rule::Schedule(ScheduleRecord { running: vec![running], ..record })))
    };
    let mut life = Life::begin();
    life.seq += 1;
    let rules = vec![
        (name("delayed"), record(Cadence::FixedDelay { ms: 5_000 }, 1)),
        (name("every"), record(Cadence::Every { ms: 5_000 }, 2)),
    ];
    life.commit(Batch { rules, ..Batch::default() });
    life.put(1, "delayed@1");
    let put = life.commits.len() - 1;
    life.put(2, "every@1");
    let (mut damaged, whole) = life.without(put);
    let outcome = salvage(&mut damaged, &whole, "a put").expect("it can be read");
    let rules = contents(&outcome.image).rules();
    let of = |index: usize| match &*rules[index].1 {
        Rule::Schedule(record) => record.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((of(0).running, of(1).running), (vec![], vec![2]));
    assert!(of(0).next.is_some(), "it goes on");
    assert!(outcome.report.notes.iter().any(|note| note.contains("delayed")), "{:?}", outcome.report.notes);
}

/// A job is told by its number, in whatever state it is.
#[test]
fn a_lost_page_of_a_job_is_told() {
    let of = |before: Option<&[u8]>, lost: Option<&[u8]>| {
        let mut life = Life::begin();
        let job = |value: Option<&[u8]>| Batch {
            rules: vec![(RuleName::Job(7), value.map(|value| Arc::new(Rule::Job(value.into()))))],
            ..Batch::default()
        };
        life.seq += 1;
        life.commit(job(before));
        life.seq += 1;
        let frame = life.commit(job(lost));
        life.put(1, "order");
        let (mut damaged, whole) = life.without_byte(frame, 1);
        let outcome = salvage(&mut damaged, &whole, "a job").expect("it can be read");
        let told = outcome.loss().rules.iter().map(|rule| (rule.name.clone(), rule.fate)).collect::<Vec<_>>();
        (outcome.report.written.jobs, told)
    };
    let told = |fate| vec![(RuleName::Job(7), fate)];
    assert_eq!(of(Some(b"page 1"), Some(b"page 2")), (1, told(RuleFate::PerhapsOlder)));
    assert_eq!(of(Some(b"page 1"), None), (1, told(RuleFate::PerhapsRemoved)));
    assert_eq!(of(None, Some(b"page 1")), (0, told(RuleFate::PerhapsLost)));
}

/// The settings of a queue.
fn settings(queue: &str, draining: Option<bool>) -> Batch {
    let record = |draining| Arc::new(Rule::Queue(QueueRecord { draining, ..QueueRecord::default() }));
    let name = RuleName::Queue(QueueName::new(queue).expect("a name"));
    Batch { rules: vec![(name, draining.map(record))], ..Batch::default() }
}

/// The story: a frame with the removal of a schedule or with `pause` was lost. The schedule came back and made tasks for ever, and nothing
/// was told but "at most 1 task".
#[test]
fn lost_changes_of_settings_are_told_by_name() {
    let of = |before: Option<bool>, lost: Option<bool>, behind: Option<Option<bool>>| {
        let mut life = Life::begin();
        life.seq += 1;
        life.commit(settings("q", before));
        life.seq += 1;
        let frame = life.commit(settings("q", lost));
        if let Some(behind) = behind {
            life.seq += 1;
            life.commit(settings("q", behind));
        }
        life.put(1, "order");
        let (mut damaged, whole) = life.without_byte(frame, 1);
        let outcome = salvage(&mut damaged, &whole, "a rule").expect("it can be read");
        let loss = outcome.loss();
        assert!(loss.rules_may_be_older && loss.ends_may_be_forgotten, "{loss:?}");
        assert_eq!(outcome.unnamed_rules(), 0, "{loss:?}");
        loss.rules.iter().map(|rule| (rule.name.clone(), rule.fate)).collect::<Vec<_>>()
    };
    let q = || RuleName::Queue(QueueName::new("q").expect("a name"));
    let told = |fate| vec![(q(), fate)];
    assert_eq!(of(Some(false), Some(true), None), told(RuleFate::PerhapsOlder));
    assert_eq!(of(Some(false), None, None), told(RuleFate::PerhapsRemoved));
    assert_eq!(of(None, Some(true), None), told(RuleFate::PerhapsLost));
    // A later frame makes up for it, or nothing is different.
    assert_eq!(of(Some(false), Some(true), Some(Some(false))), []);
    assert_eq!(of(Some(true), Some(true), None), []);
}

/// The block of a checkpoint with the schedules is zeroes: tasks `name@instant` say which there were.
#[test]
fn schedules_of_a_lost_block_are_named_by_their_tasks() {
    let mut life = Life::begin();
    let queue = QueueName::new("q").expect("a name");
    let at = Timestamp::from_ms(DUE_MS).expect("after 1970");
    let record = ScheduleRecord::new(Arc::new(Schedule::new(Cadence::Every { ms: 5_000 })), Seq(1), at, at);
    let name = ScheduleName::new("nightly").expect("a name");
    life.seq += 1;
    let rule = Some(Arc::new(Rule::Schedule(record)));
    life.commit(Batch { rules: vec![(RuleName::Schedule(queue, name), rule)], ..Batch::default() });
    life.put(1, "nightly@2027-01-15T08:00:00.000Z");
    life.put(2, "somebody@example.com");
    (0..300).for_each(|id| drop(life.put(10 + id, &format!("order {id}"))));
    drop(life.owner);
    let image = life.disk.image();
    let whole = contents(&image);
    let checkpoint = image.first("shard-0000/checkpoint-");
    let mut damaged = image.clone();
    let bytes = damaged.files.get_mut(&checkpoint).expect("there");
    let at = bytes.windows(7).position(|bytes| bytes == b"nightly").expect("it has the schedule");
    bytes[at - 20..at + 20].fill(0);
    let outcome = salvage(&mut damaged, &whole, "a block of schedules").expect("it can be read");
    let loss = outcome.loss();
    assert_eq!((loss.unit, loss.rules.len(), loss.rules_may_be_older), (Unit::Block, 1, true), "{loss:?}");
    assert!(matches!(&loss.rules[0].name, RuleName::Schedule(_, name) if name.as_str() == "nightly"));
    assert_eq!((loss.rules[0].fate, outcome.unnamed_rules()), (RuleFate::PerhapsLost, 0));
}
