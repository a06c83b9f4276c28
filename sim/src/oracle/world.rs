//! One possible truth about one key, and the rules by which a call changes it.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::call::{Answer, Call, CallId, Due, Mode, State, TokenAnswer, Verb, View};
use super::clock::{Clock, Moment};

/// A promise, and how it was broken.
pub(super) type Broken = (&'static str, String);

/// A call, or its share that concerns one key: one token, one delivery, one row of the list.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) id: CallId,
    pub(super) call: Rc<Call>,
    /// Which of the call's tokens this is; 0 where there are none.
    pub(super) part: usize,
    /// It took effect, if ever, in `from..=to`.
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// Numbers of its two ends in the order of the history; `answered` is `u64::MAX` if no answer came.
    pub(super) called: u64,
    pub(super) answered: u64,
    /// What this key was told; a row of a list stands here as the answer to a get.
    pub(super) said: Option<Answer>,
}

/// How the key's last task ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    #[default]
    NeverWas,
    Cancelled,
    Done,
}

/// What the server may hold for one key. Comparable, so that equal worlds merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) task: Option<Task>,
    end: End,
    /// The highest version seen; the next one must be higher.
    version_floor: u64,
    ids_ended: Vec<u64>,
    /// Token of the latest revoked lease: answers `revoked`.
    revoked: Option<String>,
    /// Older revoked leases: `revoked` or `expired`.
    revoked_before: Vec<String>,
    /// Calls without an answer that took effect in this world.
    pub(super) used: BTreeSet<(CallId, usize)>,
}

/// A live task. `None` is what no answer has shown yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    id: Option<u64>,
    version: Option<u64>,
    /// The earliest and the latest instant it can be; equal once seen.
    pub(super) due: (i64, i64),
    /// When `due` was set at the earliest, or the restart since then.
    since: Moment,
    payload: u64,
    leases_ended: u32,
    /// The put that gave it its place among tasks of the same instant.
    pub(super) put_by: CallId,
    pub(super) phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Waiting {
        /// Ready for certain; `Some(false)`: as the wall clock says; `None`: either.
        ready: Option<bool>,
        /// The lease that a crash cut off, and the restarts since. Its token still works until somebody else gets the
        /// task. After two restarts a server may have forgotten that nobody did, so then it may also be expired.
        cut_off: Option<(String, u8)>,
    },
    Leased {
        /// `None` if the answer with it never came.
        token: Option<String>,
        /// Monotonic ms, and wall ms for a lease written down by a graceful stop: it cannot end before both.
        until: u64,
        wall_until: i64,
        written: bool,
    },
}

/// How the server went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Down {
    Crash,
    CrashWhileStopping,
    Stop,
}

/// The answer a world calls for.
#[derive(Debug)]
enum Expected {
    Stored { created: bool },
    Task,
    Plain(Answer),
    Token(Vec<TokenAnswer>),
    Delivered,
}

impl World {
    /// The worlds in which `op` took effect next, a lease's end before it included; or why its answer cannot be.
    /// Without an answer: only the worlds that it changes.
    pub(super) fn step(&self, op: &Op, clock: &Clock) -> Vec<Result<World, Broken>> {
        let mut next = Vec::new();
        for base in [Some(self.clone()), self.after_expiry(op.to, clock)].into_iter().flatten() {
            match base.take(op, clock) {
                Ok(same) if op.said.is_none() && same == base => {}
                Ok(mut world) => {
                    if op.said.is_none() {
                        world.used.insert((op.id, op.part));
                    }
                    next.push(Ok(world));
                }
                Err(broken) => next.push(Err(broken)),
            }
        }
        next
    }

    /// This world after its lease ended by time, if that can have happened by `to`.
    pub(super) fn after_expiry(&self, to: Moment, clock: &Clock) -> Option<World> {
        let mut world = self.clone();
        let task = world.task.as_mut()?;
        let Phase::Leased { until, wall_until, written, .. } = task.phase else { return None };
        if clock.mono(to) < until && !(written && clock.walls(task.since, to).1 >= wall_until) {
            return None;
        }
        task.leases_ended += 1;
        task.phase = Phase::Waiting { ready: Some(true), cut_off: None };
        Some(world)
    }

    /// The worlds that may come up again after the server went `down`.
    pub(super) fn restart(mut self, down: Down, clock: &Clock) -> Vec<World> {
        self.used.clear();
        let (mut kept, (mono, wall)) = (self.clone(), clock.0[clock.now()]);
        match (self.task.as_mut().map(|task| &mut task.phase), kept.task.as_mut().map(|task| &mut task.phase))
        {
            (Some(Phase::Waiting { ready, cut_off }), _) => {
                *ready = Some(false);
                cut_off.iter_mut().for_each(|(_, restarts)| *restarts = restarts.saturating_add(1));
                vec![self]
            }
            (Some(phase), Some(Phase::Leased { token, until, wall_until, written })) => {
                let was_written = std::mem::replace(written, true);
                *wall_until =
                    (*wall_until).min(wall.saturating_add_unsigned(*until).saturating_sub_unsigned(mono));
                *phase =
                    Phase::Waiting { ready: Some(false), cut_off: token.clone().map(|token| (token, 1)) };
                match down {
                    Down::Stop => vec![kept],
                    Down::Crash if !was_written => vec![self],
                    Down::Crash | Down::CrashWhileStopping => vec![self, kept],
                }
            }
            _ => vec![self],
        }
    }

    /// A restart is over: from now on `due_at` alone decides, and written leases go on by what is left of them.
    pub(super) fn recovered(&mut self, clock: &Clock) {
        let Some(task) = &mut self.task else { return };
        task.since = clock.now();
        if let Phase::Leased { until, wall_until, .. } = &mut task.phase {
            let (mono, wall) = clock.0[clock.now()];
            *until = mono.saturating_add_signed(wall_until.saturating_sub(wall).max(0));
        }
    }

    /// One call on one world: what it changes, and whether its answer fits.
    fn take(&self, op: &Op, clock: &Clock) -> Result<World, Broken> {
        let mut world = self.clone();
        let expected = world.rule(op, clock)?;
        match (&expected, &op.said) {
            (_, None) | (Expected::Delivered, _) => {}
            (Expected::Stored { created: new }, Some(Answer::Stored { created, task })) if new == created => {
                world.see(task, op, clock)?;
            }
            (Expected::Task, Some(Answer::Task(view))) => world.see(view, op, clock)?,
            (Expected::Plain(plain), Some(said)) if plain == said => {}
            (Expected::Token(may), Some(Answer::Tokens(said)))
                if said.iter().all(|one| may.contains(one)) => {}
            _ => return Err(self.blame(op, &format!("{expected:?}"))),
        }
        Ok(world)
    }

    fn rule(&mut self, op: &Op, clock: &Clock) -> Result<Expected, Broken> {
        let leased = matches!(self.task, Some(Task { phase: Phase::Leased { .. }, .. }));
        let live_version = self.task.as_ref().and_then(|task| task.version);
        let mismatch = |if_match: Option<u64>| if_match.is_some() && if_match != live_version;
        let plain = |answer| Ok(Expected::Plain(answer));
        match &op.call.verb {
            Verb::Put { if_match, .. } if mismatch(*if_match) => plain(Answer::VersionMismatch),
            Verb::Put { mode: Mode::Create, .. } if self.task.is_some() => plain(Answer::Live),
            Verb::Put { mode: Mode::Replace, .. } if self.task.is_none() => plain(Answer::NotFound),
            Verb::Put { revoke: false, .. } if leased => plain(Answer::Leased),
            Verb::Put { due, payload, revoke, .. } => {
                let created = self.task.is_none();
                self.take_back(*revoke);
                self.revoked_before.extend(self.revoked.take_if(|_| created));
                self.task = Some(Task {
                    id: self.task.as_ref().and_then(|task| task.id),
                    version: None,
                    due: instant(due.unwrap_or(Due::In(0)), op, clock),
                    since: op.from,
                    payload: *payload,
                    leases_ended: 0,
                    put_by: op.id,
                    phase: Phase::Waiting { ready: Some(false), cut_off: None },
                });
                Ok(Expected::Stored { created })
            }
            Verb::Get | Verb::List if self.task.is_some() => Ok(Expected::Task),
            Verb::Get | Verb::List => plain(Answer::NotFound),
            // A patch may tell `done` apart, as a cancel must.
            Verb::Patch { .. } if self.task.is_none() && op.said == Some(Answer::Done) => {
                plain(self.absent())
            }
            Verb::Patch { .. } if self.task.is_none() => plain(Answer::NotFound),
            Verb::Patch { if_match, .. } if mismatch(*if_match) => plain(Answer::VersionMismatch),
            Verb::Patch { revoke: false, .. } if leased => plain(Answer::Leased),
            Verb::Patch { due, payload, revoke, .. } => {
                self.take_back(*revoke);
                let task = self.task.as_mut().expect("an absent task was answered above");
                task.version = None;
                task.payload = payload.unwrap_or(task.payload);
                if let Some(due) = due {
                    (task.due, task.since) = (instant(*due, op, clock), op.from);
                    task.phase = Phase::Waiting { ready: Some(false), cut_off: None };
                }
                Ok(Expected::Stored { created: false })
            }
            Verb::Cancel { .. } if self.task.is_none() => plain(self.absent()),
            Verb::Cancel { if_match, .. } if mismatch(*if_match) => plain(Answer::VersionMismatch),
            Verb::Cancel { revoke: false, .. } if leased => plain(Answer::Leased),
            Verb::Cancel { revoke, .. } => {
                self.take_back(*revoke);
                let token = self.revoked.take_if(|_| leased);
                self.close(End::Cancelled);
                self.revoked = token;
                plain(if leased { Answer::Revoked } else { Answer::Cancelled })
            }
            Verb::Lease { lease_ms, .. } => self.lease(*lease_ms, op, clock),
            Verb::Ack { tokens } | Verb::Nack { tokens, .. } | Verb::Extend { tokens, .. } => {
                Ok(Expected::Token(self.token(&tokens[op.part], op, clock)))
            }
            Verb::Counts => unreachable!("counts concern no single key"),
        }
    }

    fn lease(&mut self, lease_ms: u64, op: &Op, clock: &Clock) -> Result<Expected, Broken> {
        let found = match &op.said {
            Some(Answer::Delivered(found)) => found.first(),
            _ => None,
        };
        let blame = self.blame(op, "no delivery");
        let Some(Task { phase: Phase::Waiting { .. }, .. }) = self.task else { return Err(blame) };
        if let Some(found) = found {
            self.bind(found.id, found.due_at, found.payload, "P5")?;
        }
        let task = self.task.as_mut().expect("it was there");
        task.become_ready(op.to, clock)?;
        if let Some(found) = found.filter(|found| found.attempt != task.leases_ended + 1) {
            return Err(("P4", format!("delivered as attempt {}, but {task:?}", found.attempt)));
        }
        let wall_until = clock.walls(op.from, op.to).0.saturating_add_unsigned(lease_ms);
        let until = clock.mono(op.from).saturating_add(lease_ms);
        let token = found.map(|found| found.token.clone());
        task.phase = Phase::Leased { token, until, wall_until, written: false };
        Ok(Expected::Delivered)
    }

    /// Ack, nack or extend by one token; what it may be told.
    fn token(&mut self, token: &String, op: &Op, clock: &Clock) -> Vec<TokenAnswer> {
        let told_expired = op.said == Some(Answer::Tokens(vec![TokenAnswer::Expired]));
        let Some(task) = self.task.as_mut().filter(|task| match &task.phase {
            Phase::Leased { token: holder, .. } => holder.as_ref() == Some(token),
            Phase::Waiting { cut_off: Some((holder, restarts)), .. } => {
                holder == token && (*restarts == 1 || !told_expired)
            }
            Phase::Waiting { cut_off: None, .. } => false,
        }) else {
            return match () {
                () if self.revoked.as_ref() == Some(token) => vec![TokenAnswer::Revoked],
                () if self.revoked_before.contains(token) => vec![TokenAnswer::Revoked, TokenAnswer::Expired],
                () => vec![TokenAnswer::Expired],
            };
        };
        match op.call.verb {
            Verb::Nack { delay_ms, .. } => {
                task.leases_ended += 1;
                task.phase = Phase::Waiting { ready: Some(delay_ms.is_none()), cut_off: None };
                if let Some(delay_ms) = delay_ms {
                    (task.due, task.since) = (instant(Due::In(delay_ms), op, clock), op.from);
                }
                vec![TokenAnswer::Nacked]
            }
            Verb::Extend { lease_ms, .. } => {
                let mut wall = clock.walls(op.from, op.to).0.saturating_add_unsigned(lease_ms);
                let until = clock.mono(op.from).saturating_add(lease_ms);
                let mut was_written = false;
                if let Phase::Leased { written: true, wall_until, .. } = task.phase {
                    // A crash may bring back what the stop wrote: keep the earlier end.
                    (wall, was_written) = (wall.min(wall_until), true);
                }
                let token = Some(token.clone());
                task.phase = Phase::Leased { token, until, wall_until: wall, written: was_written };
                vec![TokenAnswer::Extended]
            }
            _ => {
                self.close(End::Done);
                vec![TokenAnswer::Acked]
            }
        }
    }

    /// The owner takes the task back: its lease, if any, ends now and its token answers `revoked`.
    fn take_back(&mut self, revoke: bool) {
        let Some(task) = &mut self.task else { return };
        match &mut task.phase {
            Phase::Leased { token, .. } => {
                self.revoked_before.extend(std::mem::replace(&mut self.revoked, token.take()));
                task.leases_ended += 1;
                task.phase = Phase::Waiting { ready: None, cut_off: None };
            }
            Phase::Waiting { cut_off, .. } => {
                let cut_off = cut_off.take().filter(|_| revoke);
                self.revoked_before.extend(cut_off.map(|(token, _)| token));
            }
        }
    }

    fn close(&mut self, end: End) {
        self.ids_ended.extend(self.task.take().and_then(|task| task.id));
        self.revoked_before.extend(self.revoked.take());
        self.end = end;
    }

    fn absent(&self) -> Answer {
        if self.end == End::Done { Answer::Done } else { Answer::NotFound }
    }

    /// A view of the live task: compare what is known, learn what is not.
    fn see(&mut self, view: &View, op: &Op, clock: &Clock) -> Result<(), Broken> {
        self.bind(view.id, view.due_at, view.payload, "P1")?;
        let task = self.task.as_mut().expect("a view is compared with a live task only");
        if task.version.map_or(view.version <= self.version_floor, |version| version != view.version) {
            return Err((
                "P6",
                format!("version {} above {}, but {task:?}", view.version, self.version_floor),
            ));
        }
        task.version = Some(view.version);
        self.version_floor = view.version;
        match (view.state, &mut task.phase) {
            (State::Ready, Phase::Waiting { .. }) => task.become_ready(op.to, clock)?,
            (State::Scheduled, Phase::Waiting { ready, .. }) if *ready != Some(true) => *ready = Some(false),
            (State::Leased, Phase::Leased { .. }) => {}
            (State::Scheduled, Phase::Waiting { .. }) => {
                return Err(("P7", format!("scheduled again without a restart, but {task:?}")));
            }
            (state, _) => return Err(("P4", format!("shown {state:?}, but {task:?}"))),
        }
        let attempt = task.leases_ended + u32::from(matches!(task.phase, Phase::Leased { .. }));
        if view.attempt != attempt {
            return Err(("P4", format!("shown with attempt {}, not {attempt}: {task:?}", view.attempt)));
        }
        Ok(())
    }

    /// Compares id, due instant and payload; `wrong_due` names the promise that another instant breaks.
    fn bind(&mut self, id: u64, due: i64, payload: u64, wrong_due: &'static str) -> Result<(), Broken> {
        let task = self.task.as_mut().expect("only a live task is compared");
        if task.id.map_or(self.ids_ended.contains(&id), |known| known != id) {
            return Err((
                "P6",
                format!("id {id} is another task of the key (ended: {:?}), but {task:?}", self.ids_ended),
            ));
        }
        if due < task.due.0 || due > task.due.1 {
            return Err((wrong_due, format!("due_at {due}, but {task:?}")));
        }
        if payload != task.payload {
            return Err(("P1", format!("payload {payload:#x}, but {task:?}")));
        }
        (task.id, task.due) = (Some(id), (due, due));
        Ok(())
    }

    /// Which promise an answer of the wrong kind breaks.
    fn blame(&self, op: &Op, expected: &str) -> Broken {
        let revoke =
            expected.contains("Revoked") || op.said == Some(Answer::Tokens(vec![TokenAnswer::Revoked]));
        let promise = match (&self.task, &op.call.verb, &op.said) {
            (Some(_), Verb::Put { mode: Mode::Create, .. }, _) => "P6",
            (Some(_), _, Some(Answer::NotFound | Answer::Done | Answer::Stored { created: true, .. })) => {
                "P1"
            }
            (_, Verb::Cancel { .. }, _) => "P5",
            (_, Verb::Ack { .. } | Verb::Nack { .. } | Verb::Extend { .. }, _) if revoke => "P5",
            (Some(_), Verb::Ack { .. } | Verb::Nack { .. } | Verb::Extend { .. } | Verb::Lease { .. }, _) => {
                "P4"
            }
            (None, ..) if self.end == End::Cancelled => "P5",
            (None, ..) if self.end == End::Done => "P4",
            (None, Verb::Ack { .. } | Verb::Nack { .. } | Verb::Extend { .. }, _) => "P4",
            _ => "P6",
        };
        let held = match &self.task {
            Some(task) => format!("{task:?}"),
            None => format!("no task (the last one: {:?})", self.end),
        };
        (promise, format!("answered {:?}, expected {expected}: the key has {held}", op.said))
    }
}

impl Task {
    /// Ready, or able to be by `to`: the wall clock must have shown its instant since it was set.
    pub(super) fn become_ready(&mut self, to: Moment, clock: &Clock) -> Result<(), Broken> {
        let high = clock.walls(self.since, to).1;
        match &mut self.phase {
            Phase::Waiting { ready: Some(false), .. } if high < self.due.0 => {
                Err(("P2", format!("ready while the wall clock had reached {high} at most: {self:?}")))
            }
            Phase::Waiting { ready, .. } => {
                *ready = Some(true);
                Ok(())
            }
            Phase::Leased { .. } => Err(("P4", format!("leased, yet ready: {self:?}"))),
        }
    }
}

/// The span in which `due` falls.
fn instant(due: Due, op: &Op, clock: &Clock) -> (i64, i64) {
    match due {
        Due::At(at) => (at, at),
        Due::In(ms) => {
            let (low, high) = clock.walls(op.from, op.to);
            (low.saturating_add_unsigned(ms), high.saturating_add_unsigned(ms))
        }
    }
}
