//! Makes the golden directory of the present format. The same source makes the same bytes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tickwheel_engine::{
    Backoff, Batch, Body, Cadence, CatchUp, Dead, Death, Ended, EngineState, Epoch, Extra, Failed, Failure,
    Group, Key, LeaseNo, Moment, Outcome, Overlap, QueueName, QueueRecord, QueueSettings, Rate, Reply,
    Request, Retention, Retry, Rule, RuleEffect, RuleName, Schedule, ScheduleName, ScheduleRecord, Seq,
    StoredLease, Tag, Tally, Task, TaskEffect, Terms, Timestamp,
};
use tickwheel_store::conformance::{Owner, sample_job, sample_rule, sample_task};

use super::{PRESENT, Store, golden, listing, open};

pub(super) const START_MS: i64 = 1_700_000_000_000;
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// The delays between a put and its due time (ms): none, minutes, hours, days and months.
const AHEAD_MS: [i64; 6] = [0, 10 * MINUTE_MS, 300 * MINUTE_MS, 20 * DAY_MS, 75 * DAY_MS, 400 * DAY_MS];

#[test]
#[ignore = "writes the golden directory; run by hand when the format changes"]
fn make_the_golden_directory() {
    let dir = golden(PRESENT);
    if dir.exists() {
        fs::remove_dir_all(&dir).expect("removed");
    }
    fs::create_dir(&dir).expect("made");
    write(&dir);
    // The code that reads the directory must not write it: the listing comes from a copy, so the directory stays as the crash left it.
    let copy = super::copy();
    fs::write(golden(&format!("{PRESENT}.txt")), listing::of(&mut open(copy.path()))).expect("written");
}

/// A queue whose record says all that one can say.
fn every_setting() -> RuleEffect {
    let settings = QueueSettings {
        max_in_flight: Some(300),
        max_in_flight_per_group: Some(2),
        rate: Some(Rate { tasks: 5, per_ms: 1_000, burst: 10 }),
        max_backlog: Some(1_000_000),
        default_lease_ms: Some(45_000),
        retry: Some(Retry { max_attempts: Some(4), backoff: None }),
        history: Some(Retention { keep_ms: 3_600_000, keys: 500 }),
    };
    let paused_until = Timestamp::from_ms(START_MS + DAY_MS);
    let record = QueueRecord { settings, paused_until, draining: true, target: None };
    (RuleName::Queue(queue("settings/all")), Some(Arc::new(Rule::Queue(record))))
}

/// A schedule whose record says all that one can say.
fn every_member() -> RuleEffect {
    let at = |days: i64| Timestamp::from_ms(START_MS + days * DAY_MS).expect("after 1970");
    let schedule = Schedule {
        cadence: Cadence::Cron { text: "0 2 * * *".into(), zone: "Europe/Berlin".into() },
        start: Some(at(0)),
        end: Some(at(900)),
        count: Some(500),
        jitter_ms: 60_000,
        catch_up: CatchUp::All,
        overlap: Overlap::Queue,
        body: Arc::new(Body { tags: vec![Tag::new("nightly").expect("a tag")], ..Body::bytes(b"report") }),
        terms: Terms {
            priority: 7,
            group: Some(Group::new("reports").expect("a group")),
            retry: Some(Retry { max_attempts: Some(4), backoff: None }),
            expire_after_ms: Some(3_600_000),
        },
    };
    let record = ScheduleRecord {
        schedule: Arc::new(schedule),
        version: Seq(3),
        anchor: at(0),
        decided: at(2),
        next: Some(at(3)),
        offset_s: None,
        next_offset_s: None,
        last: Some(at(1)),
        made: 2,
        skipped: 1,
        running: vec![9],
        may_have_more: false,
        waiting: vec![at(2)],
    };
    let name = ScheduleName::new("report").expect("a name");
    (RuleName::Schedule(queue("settings/all"), name), Some(Arc::new(Rule::Schedule(record))))
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue name")
}

struct Life {
    owner: Owner<Store>,
    wall_ms: i64,
    seq: u64,
    live: Vec<Arc<Task>>,
}

fn write(dir: &Path) {
    let mut life = Life { owner: Owner::acquire(open(dir)), wall_ms: START_MS, seq: 0, live: Vec::new() };
    life.commit(Vec::new(), Some(EngineState::from_parts(128, 1 << 44 | 1 << 6 | 1 << 3)));
    life.apply_rule(vec![every_setting(), every_member(), sample_rule("gone", 1), sample_rule("changed", 2)]);
    life.apply_rule(vec![sample_job(1_700_000_000_000, b"page 1"), sample_job(9, b"\x00\xff")]);
    life.some(1..40);
    // Months have come near and are split, hours are long past.
    life.wall_ms += 70 * DAY_MS;
    life.some(40..120);
    life.rest();
    life = life.stopped_and_started(dir);
    life.some(120..150);
    life.rest();
    // Behind the last checkpoint: each kind of record once more.
    let (changed, gone) = (Arc::clone(&life.live[3]), life.live.remove(7));
    life.put(150);
    let known = Arc::clone(&life.live[life.live.len() - 1]);
    life.change(&known);
    life.change(&changed);
    life.end(&gone);
    life.commit(Vec::new(), Some(EngineState::from_parts(256, 0)));
    life.apply_rule(vec![(RuleName::Queue(queue("gone")), None), sample_rule("changed", 5)]);
    life.apply_rule(vec![sample_job(1_700_000_000_000, b"page 2"), (RuleName::Job(9), None)]);
    life.put_big(151);
    drop(life.owner);
    fs::remove_file(dir.join("lock")).expect("removed");
}

impl Life {
    fn apply_rule(&mut self, rules: Vec<RuleEffect>) {
        self.commit_batch(Batch { rules, ..Batch::default() });
    }

    fn commit(&mut self, effects: Vec<TaskEffect>, state: Option<EngineState>) {
        self.commit_batch(Batch { effects, state, ..Batch::default() });
    }

    fn commit_batch(&mut self, batch: Batch) {
        let request = Request::Commit {
            ownership: self.owner.acquired.ownership,
            seq: Seq(self.seq),
            wall: self.at(0),
            batch,
        };
        let reply = self.owner.ask(request);
        assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    }

    fn at(&self, ahead_ms: i64) -> Timestamp {
        Timestamp::from_ms(self.wall_ms + ahead_ms).expect("after 1970")
    }

    /// Commits of nothing, so that the background gets somewhere.
    fn rest(&mut self) {
        (0..200).for_each(|_| self.commit(Vec::new(), None));
    }

    fn stopped_and_started(mut self, dir: &Path) -> Self {
        let reply = self.owner.ask(Request::Release { ownership: self.owner.acquired.ownership });
        assert!(matches!(reply, Reply::Released), "{reply:?}");
        drop(self.owner);
        Self { owner: Owner::acquire(open(dir)), ..self }
    }

    /// Puts tasks, changes some, ends others, and time goes on.
    fn some(&mut self, ids: core::ops::Range<u64>) {
        for id in ids {
            self.put(id);
            if id.is_multiple_of(3) {
                let task = Arc::clone(&self.live[self.live.len() / 2]);
                self.change(&task);
            }
            if id % 5 < 2 {
                let task = self.live.remove(self.live.len() / 3);
                self.end(&task);
            }
            self.wall_ms += 20 * MINUTE_MS;
        }
    }

    fn put(&mut self, id: u64) {
        self.seq += 1;
        let queue = ["shop/close", "mail", "q"][(id % 3) as usize];
        let due_ms = self.wall_ms + AHEAD_MS[(id % 6) as usize];
        let key = if id.is_multiple_of(4) { id.to_string() } else { format!("Auftrag über {id}") };
        let mut task = sample_task(id, self.seq, queue, &key, due_ms);
        task.put_at = self.at(0);
        if id.is_multiple_of(5) {
            (task.priority, task.lease_fence) = (id as u32 % 2, LeaseNo::first_of(Epoch(1)).next());
            let no = LeaseNo(task.lease_fence.0 + id);
            task.lease =
                Some(StoredLease { no, until: self.at(30_000), left_ms: 30_000, written_in: Epoch(1) });
        }
        if id % 8 == 1 {
            task.revoked = Some(LeaseNo(id));
        }
        if id.is_multiple_of(7) {
            let group = Some(Group::new("customer 7").expect("a group"));
            let trace = Some("00-4bf92f3577b34da6-01".into());
            let retry = Some(Retry {
                max_attempts: Some(3),
                backoff: Some(Backoff { doubles: true, base_ms: 1_000, max_ms: 600_000, jitter_percent: 50 }),
            });
            let reason = Some("out of paper".into());
            let failure = Failure { at: self.at(0), attempt: 1, how: Failed::Nacked, reason };
            task.extra = Some(Box::new(Extra {
                group,
                ttr_ms: Some(120_000),
                origin: 1,
                expire_at: Some(self.at(DAY_MS)),
                trace,
                retry,
                failures: vec![failure],
                dead: None,
                step: u32::from(id.is_multiple_of(2)),
                acked: id.is_multiple_of(2).then_some(LeaseNo(id)),
                tally: Tally { leases: 1, nacks: 1, delay_ms: Some(700), ..Tally::default() },
            }));
            let payload = if id.is_multiple_of(2) { vec![0, 1, 2, 253, 254, 255] } else { vec![b'x'; 1_500] };
            let content_type = "application/octet-stream".into();
            task.body = Arc::new(Body {
                payload,
                content_type,
                tags: ["red", "a b", "ü"].map(|tag| Tag::new(tag).expect("a tag")).to_vec(),
                timeline: if id.is_multiple_of(2) {
                    vec![self.moment(0), self.moment(1)]
                } else {
                    Vec::new()
                },
            });
        }
        if id % 11 == 3 {
            let why = if id.is_multiple_of(3) { Death::Buried } else { Death::MaxAttempts };
            let dead = Dead { at: self.at(0), due_at: task.due_at, why, keyless: id.is_multiple_of(2) };
            task.extra_mut().dead = Some(dead);
            task.due_at = self.at(30 * DAY_MS);
        }
        let task = Arc::new(task);
        self.live.push(Arc::clone(&task));
        self.commit(vec![TaskEffect::Stored { task, body_known: false }], None);
    }

    fn moment(&self, days: i64) -> Moment {
        Moment { at: self.at(days * DAY_MS), payload: vec![b'm'; 3], content_type: "text/plain".into() }
    }

    /// A record that no log file takes which was used before: it gets one of its own size.
    fn put_big(&mut self, id: u64) {
        self.seq += 1;
        let mut task = sample_task(id, self.seq, "q", "big", self.wall_ms + DAY_MS);
        task.body = Arc::new(Body::bytes(vec![b'y'; 5_000]));
        let task = Arc::new(task);
        self.live.push(Arc::clone(&task));
        self.commit(vec![TaskEffect::Stored { task, body_known: false }], None);
    }

    fn change(&mut self, task: &Task) {
        self.seq += 1;
        let (due_at, attempts) = (task.due_at.saturating_plus_ms(90_000), task.attempts + 1);
        let changed = Arc::new(Task { seq: Seq(self.seq), due_at, attempts, ..task.clone() });
        if let Some(known) = self.live.iter_mut().find(|known| known.id == task.id) {
            *known = Arc::clone(&changed);
        }
        self.commit(vec![TaskEffect::Stored { task: changed, body_known: true }], None);
    }

    fn end(&mut self, task: &Task) {
        self.seq += 1;
        let outcome = match task.id % 4 {
            0 => Outcome::Done(LeaseNo(task.id)),
            1 => Outcome::Cancelled,
            2 => Outcome::Forgotten,
            _ => Outcome::Revoked(LeaseNo(task.id)),
        };
        let (queue, key): (QueueName, Key) = (task.queue.clone(), task.key.clone());
        let ended = Ended { id: task.id, queue, key, seq: Seq(self.seq), at: self.at(0), outcome };
        self.commit(vec![TaskEffect::Ended(ended)], None);
    }
}
