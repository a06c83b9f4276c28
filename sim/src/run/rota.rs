//! The planner: one client that puts schedules in a queue of its own, and works on the tasks that they make.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tickwheel_engine::{CallId as ProductCall, Input};
use tickwheel_queue as product;

use super::{Step, World};
use crate::options::Options;
use crate::oracle::Violation;
use crate::oracle::rota::{Beat, Early, Made, Missed, OFFSET_MS_MAX, Plan, Rota, Shown};
use crate::rng::Rng;

/// The queue of the planner. No other client uses it.
const QUEUE: &str = "rota";
const NAMES: [&str; 3] = ["a", "b", "c"];
/// A time zone whose rules change.
const ZONE: &str = "Sim/Moving";
/// The longest jitter of a schedule (ms).
const JITTER_MS_MAX: u64 = 30;
const LEASE_MS: u64 = 3_600_000;

/// The planner, with its oracle of schedules.
pub(super) struct Planner {
    rng: Rng,
    percent: u64,
    bounds_percent: u64,
    wall_ms: i64,
    oracle: Rota,
    /// The number of the call that the planner waits for, and what it asked.
    open: Option<(u64, Asked)>,
    /// The running leases of the planner: the token, the name of the schedule, and the instant of the task.
    held: Vec<(product::Token, &'static str, i64)>,
    numbers: u64,
    /// For each schedule that existed at the end of the run: its name, and the number of tasks that it had made.
    made: Vec<(&'static str, u64)>,
    zone: Zone,
}

/// The zone whose rules change.
#[derive(Debug)]
struct Zone {
    /// Draws for the zone, so that the rest of a run is the same without it.
    rng: Rng,
    permille: u64,
    /// By how much its clock is ahead of UTC (s).
    ahead_s: Arc<AtomicI32>,
    changes: u64,
    /// Whether the server has decided all instants by the present rules, durably.
    is_settled: bool,
    /// The number of changes when the open call was made, if all was settled then.
    asked_at: Option<u64>,
}

impl Zone {
    fn settled_at(&self) -> Option<u64> {
        self.is_settled.then_some(self.changes)
    }
}

#[derive(Clone, Debug)]
enum Asked {
    Put(&'static str, Plan),
    Delete(&'static str),
    Look(&'static str),
    Lease,
    Ack(Vec<(product::Token, &'static str, i64)>),
}

impl Planner {
    pub(super) fn new(options: &Options, rng: Rng, zones: Rng) -> Self {
        let percent = options.schedules_percent;
        let mut oracle = Rota::default();
        oracle.zone_is_ahead(0);
        let zone = Zone {
            rng: zones,
            permille: options.zones_permille,
            ahead_s: Arc::default(),
            changes: 0,
            is_settled: true,
            asked_at: None,
        };
        Self {
            rng,
            percent,
            bounds_percent: options.bounds_percent,
            wall_ms: options.wall_start_ms as i64,
            oracle,
            open: None,
            held: Vec::new(),
            numbers: 0,
            made: Vec::new(),
            zone,
        }
    }

    /// Returns the offset of each zone from UTC (s), as all nodes find it.
    pub(super) fn offsets(&self) -> impl Fn(&str) -> Option<i32> + Send + 'static {
        let ahead_s = Arc::clone(&self.zone.ahead_s);
        move |name| match name {
            "UTC" => Some(0),
            ZONE => Some(ahead_s.load(Ordering::Relaxed)),
            _ => None,
        }
    }

    pub(super) fn time(&mut self, wall_ms: i64) {
        self.oracle.time(wall_ms);
        self.wall_ms = wall_ms;
        if let Some((_, Asked::Ack(acks))) = &self.open {
            // The ack may take effect at any time until it is answered.
            acks.iter().for_each(|(_, name, at)| self.oracle.acks(name, *at, wall_ms));
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// The connection of the planner is closed.
    pub(super) fn forget(&mut self) {
        self.open = None;
        self.held.clear();
        // The next server asks for its decided instants by the present rules.
        self.zone.is_settled = false;
    }

    fn next(&mut self) -> Asked {
        if let Some(name) = NAMES.into_iter().find(|name| self.oracle.stands(name).is_none()) {
            return Asked::Look(name);
        }
        let name = self.rng.pick(&NAMES);
        match self.rng.below(20) {
            0..4 => Asked::Put(name, self.plan(name)),
            4 => Asked::Delete(name),
            5..8 => Asked::Look(name),
            8..14 => Asked::Lease,
            _ if self.held.is_empty() => Asked::Lease,
            _ => {
                let count = 1 + self.rng.index(self.held.len());
                Asked::Ack(self.held.drain(..count).collect())
            }
        }
    }

    fn plan(&mut self, name: &str) -> Plan {
        let stands = self.oracle.stands(name).flatten();
        if let Some(same) = stands.filter(|_| self.rng.chance(30)) {
            return same;
        }
        self.numbers += 1;
        let missed = self.rng.pick(&[Missed::Skip, Missed::Once, Missed::All]);
        // The clock may jump by years. So a plan that makes up for all missed instants always has a limit of its tasks.
        let ms = self.rng.pick(&[1_000, 60_000, 3_600_000, 86_400_000]);
        let beat = match stands.filter(|_| self.rng.chance(40)) {
            Some(before) => before.beat,
            None => self.rng.pick(&[Beat::Every(ms), Beat::Cron(ms), Beat::Delay(ms)]),
        };
        let beat = match beat {
            Beat::Cron(ms) if self.zone.permille > 0 && self.zone.rng.chance(70) => {
                Beat::Zoned(ms.max(OFFSET_MS_MAX))
            }
            beat => beat,
        };
        let few = Some(self.rng.pick(&[1, 5, 40]));
        // Under other rules, another local time may be the first one after the start.
        let (start, end) = match (self.bounds(ms), beat) {
            ((_, end), Beat::Zoned(_)) => (None, end),
            (bounds, _) => bounds,
        };
        Plan {
            number: self.numbers,
            beat,
            start,
            end,
            count: few.filter(|_| missed == Missed::All || self.rng.chance(20)),
            jitter_ms: self.rng.pick(&[0, 0, JITTER_MS_MAX]),
            missed,
            early: self.rng.pick(&[Early::Skip, Early::Queue, Early::Allow]),
        }
    }

    /// Draws the start and the end of a schedule, some intervals away from now. Some schedules have begun already, and
    /// some are over.
    fn bounds(&mut self, step_ms: u64) -> (Option<i64>, Option<i64>) {
        if self.bounds_percent == 0 || !self.rng.chance(self.bounds_percent) {
            return (None, None);
        }
        let reach = self.rng.pick(&[1, 3, 50]) * step_ms;
        let first = self.wall_ms.saturating_sub_unsigned(reach).max(1);
        let start = first.saturating_add_unsigned(self.rng.below(2 * reach));
        let end = start.saturating_add_unsigned(self.rng.below(3 * reach));
        match self.rng.below(3) {
            0 => (Some(start), None),
            1 => (None, Some(end)),
            _ => (Some(start), Some(end)),
        }
    }

    fn command(&self, asked: &Asked) -> product::Command {
        let queue = queue();
        match asked {
            Asked::Put(of, plan) => product::Command::PutSchedule(product::PutSchedule::new(
                &queue,
                name(of),
                Arc::new(schedule(plan)),
            )),
            Asked::Delete(of) => product::Command::DeleteSchedule(product::DeleteSchedule {
                queue,
                name: name(of),
                if_version: None,
            }),
            Asked::Look(of) => product::Command::GetSchedule(product::GetSchedule { queue, name: name(of) }),
            Asked::Lease => {
                let lease_ms = Some(LEASE_MS);
                product::Command::Lease(product::Lease { max: 5, lease_ms, ..product::Lease::new(&queue) })
            }
            Asked::Ack(held) => {
                product::Command::Ack(product::Ack::new(&queue, held.iter().map(|(token, ..)| *token)))
            }
        }
    }

    fn called(&mut self, asked: &Asked, wall_ms: i64) {
        match asked {
            Asked::Put(name, plan) => self.oracle.called(name, Some(*plan)),
            Asked::Delete(name) => self.oracle.called(name, None),
            Asked::Look(_) | Asked::Lease => {}
            Asked::Ack(held) => held.iter().for_each(|(_, name, at)| self.oracle.acks(name, *at, wall_ms)),
        }
    }

    /// Takes an answer to what was asked. Returns what the answer shows; `None` if the outcome of the call is unknown.
    fn answered(&mut self, asked: &Asked, answer: product::Answer) -> Result<Option<Seen>, Violation> {
        use product::{Answer as A, ScheduleError as E, Unavailable as U};
        match (asked, answer) {
            (
                _,
                A::PutSchedule(Err(E::Unavailable(U::Indeterminate { .. })))
                | A::DeleteSchedule(Err(E::Unavailable(U::Indeterminate { .. })))
                | A::GetSchedule(Err(E::Unavailable(_)))
                | A::Lease(Err(_))
                | A::Ack(Err(_)),
            ) => Ok(None),
            (Asked::Put(name, _), A::PutSchedule(Ok(stored))) => {
                let shown = shown(&stored.schedule);
                self.oracle.stored(name, stored.created, &shown)?;
                Ok(Some(Seen::Schedule(shown)))
            }
            (Asked::Put(name, _), A::PutSchedule(Err(E::NeverFires | E::Unavailable(_)))) => {
                self.oracle.refused(name);
                Ok(Some(Seen::Nothing))
            }
            (Asked::Delete(name), A::DeleteSchedule(Ok(()))) => {
                self.oracle.deleted(name, true)?;
                Ok(Some(Seen::Nothing))
            }
            (Asked::Delete(name), A::DeleteSchedule(Err(E::NotFound))) => {
                self.oracle.deleted(name, false)?;
                Ok(Some(Seen::Nothing))
            }
            (Asked::Delete(name), A::DeleteSchedule(Err(E::Unavailable(_)))) => {
                self.oracle.refused(name);
                Ok(Some(Seen::Nothing))
            }
            (Asked::Look(name), A::GetSchedule(Ok(view))) => {
                let shown = shown(&view);
                self.oracle.seen(name, Some(&shown))?;
                if self.zone.asked_at.is_some() && self.zone.asked_at == self.zone.settled_at() {
                    self.oracle.is_by_these_rules(name, &shown)?;
                }
                Ok(Some(Seen::Schedule(shown)))
            }
            (Asked::Look(name), A::GetSchedule(Err(E::NotFound))) => {
                self.oracle.seen(name, None)?;
                Ok(Some(Seen::Nothing))
            }
            (Asked::Lease, A::Lease(Ok(leased))) => {
                for one in &leased {
                    let (name, made) = made_of(one)?;
                    self.oracle.delivered(name, &made)?;
                    self.held.push((one.token, name, made.at));
                }
                Ok(Some(Seen::Tasks(leased.len())))
            }
            (Asked::Ack(held), A::Ack(Ok(answers))) => {
                for ((_, name, at), answer) in held.iter().zip(answers) {
                    if answer == product::TokenAnswer::Acked {
                        self.oracle.acked(name, *at);
                    }
                }
                Ok(Some(Seen::Nothing))
            }
            (asked, answer) => {
                let what = format!("{asked:?} was answered {answer:?}");
                Err(Violation { promise: "P6", what, story: Vec::new() })
            }
        }
    }
}

enum Seen {
    Nothing,
    Schedule(Shown),
    Tasks(usize),
}

impl World {
    /// Changes the rules of the zone now and then, and lets the server look at them.
    pub(super) fn change_zone(&mut self) {
        let zone = &mut self.planner.zone;
        if zone.permille == 0 || self.stopping || self.starved {
            return;
        }
        let Some(server) = &mut self.server else { return };
        if !zone.is_settled {
            // A schedule that has still to be asked about keeps the server awake.
            let is_asleep = server.next_wake().wall != Some(product::Timestamp::EPOCH);
            zone.is_settled =
                server.is_idle() && is_asleep && self.inputs.is_empty() && !server.asks_for_room();
            return;
        }
        if zone.rng.below(1_000) >= zone.permille {
            return;
        }
        let below_s = i32::try_from(OFFSET_MS_MAX / 1_000).expect("a minute");
        let ahead_s = i32::try_from(zone.rng.below(below_s.unsigned_abs().into())).expect("below a minute");
        zone.ahead_s.store(ahead_s, Ordering::Relaxed);
        self.planner.oracle.zone_is_ahead(u64::from(ahead_s.unsigned_abs()) * 1_000);
        self.trace.event(format_args!("the zone is {ahead_s} s ahead from now on"));
        self.look_at_zone();
    }

    /// Lets the server look at the rules of the zone.
    pub(super) fn look_at_zone(&mut self) {
        let changed = self.server.as_mut().map(|server| server.changed_zones()).unwrap_or_default();
        if !changed.is_empty() {
            self.coverage.zones += 1;
            self.planner.zone.changes += 1;
            self.planner.zone.is_settled = false;
            self.inputs.push(Input::ZonesChanged { zones: changed.into() });
        }
    }

    /// Makes the planner's next call, unless it waits for an answer. The options set the percentage of steps in which
    /// it does so.
    pub(super) fn plan(&mut self) {
        if self.planner.is_waiting() || !self.planner.rng.chance(self.planner.percent) {
            return;
        }
        let asked = self.planner.next();
        let input = self.ask_rota(asked);
        self.inputs.push(input);
    }

    fn ask_rota(&mut self, asked: Asked) -> Input {
        self.next_call += 1;
        let id = self.next_call;
        self.trace.event(format_args!("call {id} of the planner: {asked:?}"));
        self.coverage.planned += 1;
        self.planner.called(&asked, self.clocks.now().wall.as_ms());
        self.planner.zone.asked_at = self.planner.zone.settled_at();
        let command = self.planner.command(&asked);
        self.planner.open = Some((id, asked));
        Input::Call { call: ProductCall(id), command }
    }

    /// Takes an answer, if it is the planner's.
    pub(super) fn answer_planner(&mut self, id: u64, answer: &product::Answer) -> Result<bool, Violation> {
        match &self.planner.open {
            Some((open, _)) if *open == id => {}
            _ => return Ok(false),
        }
        let (_, asked) = self.planner.open.take().expect("it was there");
        self.trace.event(format_args!("call {id} of the planner is answered {answer:?}"));
        let failed = self.has_failed();
        match self.planner.answered(&asked, answer.clone()) {
            // A failed store shows only its durable state, so what it shows is not judged.
            Err(_) if failed && matches!(asked, Asked::Look(_)) => Ok(true),
            other => other.map(|_| true),
        }
    }

    /// Lets the schedules make all tasks that are due by the clock, checks them, and deletes the schedules.
    pub(super) fn end_schedules(&mut self) -> Step {
        if self.planner.percent == 0 {
            return Ok(());
        }
        // A server that had no space for a task looks for space once a second, and may still use the result of the last look.
        // A start that found the clock far ahead holds schedules back for a minute.
        let mut turns = 0;
        while turns < 5 || self.clocks.now().held_ms > 0 {
            self.count_step()?;
            self.advance(1_100_000_000);
            self.turn()?;
            turns += 1;
        }
        while self.work_off_rota()? {}
        // The server computes the next instant of a schedule only when the last change of the schedule is durable.
        self.settle()?;
        for name in NAMES {
            if let Seen::Schedule(shown) = self.finish_rota(Asked::Look(name))? {
                let wall_ms = self.clocks.now().wall.as_ms();
                self.planner.oracle.caught_up(name, &shown, wall_ms)?;
                self.planner.made.push((name, shown.made));
                self.give_up(name)?;
            }
        }
        Ok(())
    }

    /// Checks that all tasks that the schedules made were delivered. At this point no more tasks fall due.
    pub(super) fn all_made_came(&self) -> Step {
        let Planner { oracle, made, .. } = &self.planner;
        made.iter().try_for_each(|(name, made)| oracle.complete(name, *made))
    }

    /// Deletes a schedule without telling the oracle, which would forget the tasks of a deleted schedule.
    fn give_up(&mut self, of: &'static str) -> Step {
        let gone = product::DeleteSchedule { queue: queue(), name: name(of), if_version: None };
        self.next_call += 1;
        let call = ProductCall(self.next_call);
        match self.ask_calmly(call, product::Command::DeleteSchedule(gone))? {
            product::Answer::DeleteSchedule(Ok(())) => Ok(()),
            other => {
                let what = format!("a schedule that stands cannot be given up: {other:?}");
                Err(Violation { promise: "P8", what, story: Vec::new() })
            }
        }
    }

    /// Leases ready tasks and acks them. Returns whether there were any.
    pub(super) fn work_off_rota(&mut self) -> Result<bool, Violation> {
        if self.planner.percent == 0 {
            return Ok(false);
        }
        let Seen::Tasks(count) = self.finish_rota(Asked::Lease)? else { unreachable!("a lease shows tasks") };
        let held = std::mem::take(&mut self.planner.held);
        // The ack of a task that was leased earlier counts as work, too: after it, the schedule may make another task.
        let ends = !held.is_empty();
        if ends {
            self.finish_rota(Asked::Ack(held))?;
        }
        Ok(count > 0 || ends)
    }

    fn finish_rota(&mut self, asked: Asked) -> Result<Seen, Violation> {
        let Input::Call { call, command } = self.ask_rota(asked) else { unreachable!("it is a call") };
        let (_, asked) = self.planner.open.take().expect("it was just asked");
        let answer = self.ask_calmly(call, command)?;
        self.trace.event(format_args!("the planner is answered {answer:?}"));
        let seen = self.planner.answered(&asked, answer)?;
        seen.ok_or_else(|| self.hang("a schedule is not shown though the faults are over"))
    }
}

fn queue() -> product::QueueName {
    product::QueueName::new(QUEUE).expect("a queue name")
}

fn name(of: &str) -> product::ScheduleName {
    product::ScheduleName::new(of).expect("a name")
}

fn schedule(plan: &Plan) -> product::Schedule {
    let cadence = match plan.beat {
        Beat::Every(ms) => product::Cadence::Every { ms },
        Beat::Delay(ms) => product::Cadence::FixedDelay { ms },
        Beat::Cron(ms) | Beat::Zoned(ms) => {
            let text = match ms {
                1_000 => "* * * * * *",
                60_000 => "0 * * * * *",
                3_600_000 => "0 0 * * * *",
                _ => "0 0 0 * * *",
            };
            let zone = if matches!(plan.beat, Beat::Zoned(_)) { ZONE } else { "UTC" };
            product::Cadence::Cron { text: text.into(), zone: zone.into() }
        }
    };
    let instant = |ms| product::Timestamp::from_ms(ms).expect("after 1970");
    product::Schedule {
        start: plan.start.map(instant),
        end: plan.end.map(instant),
        count: plan.count,
        jitter_ms: plan.jitter_ms,
        catch_up: match plan.missed {
            Missed::Skip => product::CatchUp::Skip,
            Missed::Once => product::CatchUp::Once,
            Missed::All => product::CatchUp::All,
        },
        overlap: match plan.early {
            Early::Skip => product::Overlap::Skip,
            Early::Queue => product::Overlap::Queue,
            Early::Allow => product::Overlap::Allow,
        },
        body: Arc::new(product::Body::bytes(plan.number.to_be_bytes())),
        ..product::Schedule::new(cadence)
    }
}

fn number_of(body: &product::Body) -> u64 {
    body.payload.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn shown(view: &product::ScheduleView) -> Shown {
    let record = &view.record;
    Shown {
        number: number_of(&record.schedule.body),
        version: record.version.0,
        anchor: record.anchor.as_ms(),
        next: record.next.map(product::Timestamp::as_ms),
        running: !record.running.is_empty(),
        made: record.made,
        waiting: record.waiting.len(),
    }
}

/// Returns the schedule and the instant of a task. The product writes the key from both, so the key is compared with the expected one.
fn made_of(one: &product::Leased) -> Result<(&'static str, Made), Violation> {
    let of = NAMES.into_iter().find(|of| one.key.as_str().starts_with(&format!("{of}@")));
    let instants = (0..=JITTER_MS_MAX)
        .filter_map(|jitter| product::Timestamp::from_ms(one.due_at.as_ms().checked_sub_unsigned(jitter)?));
    let found = of.and_then(|of| {
        let is_it = |at: &product::Timestamp| product::occurrence_key(&name(of), *at) == one.key;
        Some((of, instants.clone().find(is_it)?))
    });
    let Some((of, at)) = found else {
        let what = format!("no key of a schedule, or not due at its instant: {one:?}");
        return Err(Violation { promise: "P2", what, story: Vec::new() });
    };
    let made = Made { at: at.as_ms(), id: one.id, due_at: one.due_at.as_ms(), number: number_of(&one.body) };
    Ok((of, made))
}
