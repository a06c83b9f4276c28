//! A test of the oracle. A small correct server plays random histories, which the oracle must accept. Then the same server
//! gets one fault, which the oracle must find and name. This shows that the oracle is neither too strict nor too tolerant.
//!
//! Each call changes the memory of the server at one instant. A commit takes time and writes down all of the memory. A
//! reply is held until a commit covers it. After a crash the state is that of the last commit, or of the one under way.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Answer, Call, CallId, Delivery, Due, How, Mode, Oracle, State, There, TokenAnswer, Verb, View, Violation,
    priority_of,
};

/// The faults that the server may have, one in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    ReplyBeforeSync,
    AckNotWritten,
    CancelNotWritten,
    RevokeNotWritten,
    Early,
    OldInstantFires,
    LeasedTwice,
    AttemptNotCounted,
    OldTokenWorks,
    SecondAckExpires,
    GoodTokenExpires,
    NewIdOnReplace,
    VersionStays,
    CreateOnLive,
    PatchHalfApplied,
    ReadyUnready,
    WrongOrder,
    TaskKeptBack,
    CountOff,
    StopForgetsLeases,
    NeverFires,
}

#[derive(Clone, Debug)]
struct Task {
    id: u64,
    version: u64,
    place: u64,
    due: i64,
    /// The due instant that was replaced last. Only a faulty server lets it fire.
    old_due: Option<i64>,
    payload: u64,
    ended: u32,
    ready: bool,
    lease: Option<(String, u64)>,
    cut_off: Option<String>,
}

/// The data that a commit writes. Leases are in it only for a graceful stop and for old tokens.
#[derive(Clone, Debug, Default)]
struct Memory {
    tasks: BTreeMap<String, Task>,
    done: BTreeMap<String, bool>,
    /// `tokens`: the key of each token. `revoked`: for each key, the token that was revoked last.
    tokens: BTreeMap<String, String>,
    revoked: BTreeMap<String, String>,
    acked: BTreeSet<String>,
    seq: u64,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// The progress of a call.
#[derive(Debug)]
enum Way {
    Sent,
    /// The call was executed; the reply waits for the commit with this number.
    Held(Answer, u64),
    Replied(Answer),
}

struct World {
    random: Random,
    bug: Option<Bug>,
    oracle: Oracle,
    mono: u64,
    wall: i64,
    memory: Memory,
    durable: Memory,
    /// The memory that the commit under way writes, and the number of the commit that ends next.
    writing: Option<Memory>,
    commit: u64,
    /// `calls`: calls on their way. `waiting`: the calls whose answer a client still waits for.
    calls: BTreeMap<u64, (Call, Way)>,
    waiting: Vec<u64>,
    listing: bool,
    calls_made: u64,
    known_tokens: Vec<String>,
    known_versions: Vec<u64>,
    /// Tasks whose end is not written down, because of a fault.
    graves: Vec<(String, Task)>,
    /// The number of answers of each kind.
    said: BTreeMap<String, u64>,
}

impl World {
    fn new(seed: u64, bug: Option<Bug>) -> Self {
        let wall = 1_500_000_000_000;
        World {
            random: Random(seed),
            bug,
            oracle: Oracle::new(0, wall),
            mono: 0,
            wall,
            memory: Memory::default(),
            durable: Memory::default(),
            writing: None,
            commit: 1,
            calls: BTreeMap::new(),
            waiting: Vec::new(),
            listing: false,
            calls_made: 0,
            known_tokens: Vec::new(),
            known_versions: Vec::new(),
            graves: Vec::new(),
            said: BTreeMap::new(),
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn run(&mut self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            match self.random.below(300) {
                0 => self.crash()?,
                1 if self.random.one_in(2) => self.stop()?,
                1..=4 => {
                    let far = [5, 50, 3_600_000][self.random.below(3) as usize];
                    let jump = self.random.below(2 * far + 1) as i64 - far as i64;
                    self.clocks(0, jump);
                }
                5..=49 => {
                    let ms = [1, 3, 20, 150][self.random.below(4) as usize];
                    let ms = self.random.below(ms + 1);
                    self.clocks(ms, ms as i64);
                }
                50..=69 => self.wake(),
                70..=119 => self.commit()?,
                120..=219 => self.travel()?,
                220..=229 => self.give_up_waiting()?,
                _ => self.send(),
            }
        }
        self.end()
    }

    fn clocks(&mut self, mono: u64, wall: i64) {
        self.mono += mono;
        self.wall += wall;
        self.oracle.time(self.mono, self.wall);
    }

    fn send(&mut self) {
        if self.waiting.len() >= 3 || self.listing {
            return;
        }
        let verb = self.verb();
        if matches!(verb, Verb::List) && !self.waiting.is_empty() {
            return;
        }
        self.listing = matches!(verb, Verb::List);
        let keyed = matches!(
            verb,
            Verb::Put { .. } | Verb::Import { .. } | Verb::Get | Verb::Patch { .. } | Verb::Cancel { .. }
        );
        let made =
            matches!(verb, Verb::Put { mode: Mode::Upsert, if_match: None, .. }) && self.random.one_in(4);
        let key = (keyed && !made).then(|| ["a", "b", "c", "d"][self.random.below(4) as usize].to_owned());
        self.issue(key, verb);
    }

    fn issue(&mut self, key: Option<String>, verb: Verb) -> u64 {
        self.calls_made += 1;
        let call = Call { queue: "q".to_owned(), key, verb };
        self.oracle.called(CallId(self.calls_made), call.clone());
        self.calls.insert(self.calls_made, (call, Way::Sent));
        self.waiting.push(self.calls_made);
        self.calls_made
    }

    fn verb(&mut self) -> Verb {
        let random = &mut self.random;
        let due = match random.below(5) {
            0 => None,
            1 => Some(Due::In(random.below(400))),
            2 => Some(Due::At(self.wall / 1_000 * 1_000)),
            _ => Some(Due::At(self.wall + random.below(1_000) as i64 - 300)),
        };
        let version = |random: &mut Random, versions: &[u64]| {
            let some = random.one_in(5) && !versions.is_empty();
            some.then(|| versions[versions.len() - 1 - random.below(versions.len().min(4) as u64) as usize])
        };
        let if_match = version(random, &self.known_versions);
        let revoke = random.one_in(4);
        let mode = [Mode::Upsert, Mode::Upsert, Mode::Create, Mode::Replace][random.below(4) as usize];
        let mut tokens = Vec::new();
        for _ in 0..random.below(3) + 1 {
            let known = self.known_tokens.len() as u64;
            if known > 0 {
                let back = random.below(4).min(random.below(known)).min(random.below(known));
                tokens.push(self.known_tokens[(known - 1 - back) as usize].clone());
            }
        }
        let lease_ms = 50 + random.below(300);
        let payload = self.calls_made + 1_000_000;
        match random.below(26) {
            0..=5 => Verb::Put { due, payload, mode, if_match, revoke },
            6..=7 => Verb::Get,
            8..=9 => {
                let payload = random.one_in(2).then_some(payload);
                Verb::Patch { due: due.filter(|_| !random.one_in(3)), payload, if_match, revoke }
            }
            10..=11 => Verb::Cancel { if_match, revoke },
            12..=16 => Verb::Lease { max: random.below(3) as usize + 1, lease_ms },
            17..=18 => Verb::Ack { tokens },
            19..=20 => {
                let delay_ms = random.one_in(2).then(|| random.below(200));
                Verb::Nack { tokens, delay_ms, at_least_ms: None, how: How::Returned }
            }
            21 if random.one_in(3) => Verb::Return { tokens },
            21 => Verb::Extend { tokens, lease_ms },
            22..=23 => Verb::Counts,
            24 => Verb::List,
            _ => {
                let there = [There::Skip, There::Replace, There::Refuse][random.below(3) as usize];
                let due = self.wall + random.below(1_000) as i64 - 300;
                Verb::Import { due, payload, attempts: random.below(2) as u32, there, revoke }
            }
        }
    }

    /// Moves one random call one step on.
    fn travel(&mut self) -> Result<(), Violation> {
        let index = self.random.below(self.calls.len().max(1) as u64) as usize;
        let Some(&id) = self.calls.keys().nth(index) else {
            return Ok(());
        };
        let (call, way) = self.calls.remove(&id).expect("it was just found");
        match way {
            Way::Sent => {
                if self.random.one_in(2) {
                    self.wake();
                }
                let answer = self.execute(&call);
                let way = if self.has(Bug::ReplyBeforeSync) {
                    Way::Replied(answer)
                } else {
                    // The commit under way was filled before this call, so it does not cover the call.
                    Way::Held(answer, self.commit + u64::from(self.writing.is_some()))
                };
                self.calls.insert(id, (call, way));
            }
            Way::Held(answer, commit) => drop(self.calls.insert(id, (call, Way::Held(answer, commit)))),
            Way::Replied(answer) => {
                let awaited = self.waiting.iter().position(|&waiting| waiting == id);
                let Some(index) = awaited else {
                    return self.oracle.settled(CallId(id));
                };
                self.waiting.swap_remove(index);
                self.listing &= !matches!(call.verb, Verb::List);
                match self.random.below(12) {
                    0 => {
                        self.oracle.lost(CallId(id))?;
                        self.oracle.settled(CallId(id))?;
                    }
                    1 => {
                        self.oracle.answered(CallId(id), Answer::Unknown)?;
                        self.oracle.settled(CallId(id))?;
                    }
                    _ => {
                        *self.said.entry(word(&answer)).or_insert(0) += 1;
                        if let Answer::Delivered(found) = &answer {
                            self.known_tokens.extend(found.iter().map(|one| one.token.clone()));
                        }
                        if let Answer::Stored { task, .. } = &answer {
                            self.known_versions.push(task.version);
                        }
                        self.oracle.answered(CallId(id), answer)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A client stops waiting for its answer. Its request may have been lost on the way.
    fn give_up_waiting(&mut self) -> Result<(), Violation> {
        if self.waiting.is_empty() || !self.random.one_in(6) {
            return Ok(());
        }
        let index = self.random.below(self.waiting.len() as u64) as usize;
        let id = self.waiting.swap_remove(index);
        self.listing = false;
        self.oracle.lost(CallId(id))?;
        if matches!(self.calls.get(&id), Some((_, Way::Sent))) && self.random.one_in(2) {
            self.calls.remove(&id);
            self.oracle.settled(CallId(id))?;
        }
        Ok(())
    }

    /// Begins a commit; or ends the one under way, which sends the replies that it covers.
    fn commit(&mut self) -> Result<(), Violation> {
        let Some(written) = self.writing.take() else {
            self.writing = Some(self.memory.clone());
            return Ok(());
        };
        self.durable = written;
        for (_, way) in self.calls.values_mut() {
            if let Way::Held(answer, commit) = way
                && *commit <= self.commit
            {
                *way = Way::Replied(answer.clone());
            }
        }
        self.commit += 1;
        Ok(())
    }

    fn crash(&mut self) -> Result<(), Violation> {
        let stopping = self.random.one_in(6);
        let mut lives_on = false;
        if stopping {
            self.oracle.stopping();
            lives_on = self.random.one_in(2);
        }
        let written = self.writing.take().filter(|_| self.random.one_in(2));
        let before = std::mem::take(&mut self.durable);
        let now = std::mem::take(&mut self.memory);
        self.memory = written.unwrap_or(before);
        if self.has(Bug::AckNotWritten) || self.has(Bug::CancelNotWritten) {
            // The task comes back as it was before its end, if its key has no task.
            let acked = self.has(Bug::AckNotWritten);
            for (key, task) in std::mem::take(&mut self.graves) {
                let ended = self.memory.done.get(&key).copied();
                if !self.memory.tasks.contains_key(&key) && ended == Some(acked) {
                    self.memory.tasks.insert(key, task);
                }
            }
        }
        if self.has(Bug::RevokeNotWritten) {
            self.memory.revoked.clear();
        }
        if stopping && lives_on {
            self.memory = now;
        }
        self.oracle.crashed()?;
        self.come_back(stopping && lives_on)
    }

    fn stop(&mut self) -> Result<(), Violation> {
        self.oracle.stopping();
        self.oracle.stopped()?;
        let keep = !self.has(Bug::StopForgetsLeases);
        self.come_back(keep)
    }

    fn come_back(&mut self, leases: bool) -> Result<(), Violation> {
        self.calls.clear();
        self.waiting.clear();
        self.writing = None;
        self.listing = false;
        let stopped_at = (self.mono, self.wall);
        let (ms, jump) = (self.random.below(100), self.random.below(100) as i64 - 50);
        self.clocks(ms, ms as i64 + jump);
        for task in self.memory.tasks.values_mut() {
            task.ready = task.due <= self.wall;
            if let Some((token, until)) = task.lease.take() {
                if leases {
                    let left = until.saturating_sub(stopped_at.0);
                    let by_wall = (stopped_at.1 + left as i64 - self.wall).max(0) as u64;
                    task.lease = Some((token, self.mono + by_wall.min(left)));
                } else {
                    task.cut_off = Some(token);
                }
            }
        }
        self.durable = self.memory.clone();
        self.oracle.recovered();
        Ok(())
    }

    /// Makes due tasks ready, and ends leases that have run out.
    fn wake(&mut self) {
        let early = if self.has(Bug::Early) { 40 } else { 0 };
        let (old, counted) = (self.has(Bug::OldInstantFires), !self.has(Bug::AttemptNotCounted));
        let (unready, never) = (self.has(Bug::ReadyUnready), self.has(Bug::NeverFires));
        for task in self.memory.tasks.values_mut() {
            if unready && task.due > self.wall {
                task.ready = false;
            }
            if !(never && task.payload.is_multiple_of(5)) {
                task.ready |= task.due <= self.wall + early;
            }
            task.ready |= old && task.old_due.is_some_and(|due| due <= self.wall);
            if task.lease.as_ref().is_some_and(|lease| lease.1 <= self.mono) {
                task.lease = None;
                task.ready = true;
                task.ended += u32::from(counted);
            }
        }
    }

    fn view(key: &str, task: &Task) -> View {
        let state = match (&task.lease, task.ready) {
            (Some(_), _) => State::Leased,
            (None, true) => State::Ready,
            (None, false) => State::Scheduled,
        };
        let attempt = task.ended + u32::from(task.lease.is_some());
        let (key, due_at) = (key.to_owned(), task.due);
        View {
            key,
            id: task.id,
            version: task.version,
            state,
            due_at,
            payload: task.payload,
            attempt,
            expire_at: None,
        }
    }

    /// The owner takes the task back: its lease ends and is revoked.
    fn take_back(&mut self, key: &str) {
        if let Some(task) = self.memory.tasks.get_mut(key) {
            task.cut_off = None;
            if let Some((token, _)) = task.lease.take() {
                task.ended += 1;
                self.memory.revoked.insert(key.to_owned(), token);
            }
        }
    }

    fn instant(&self, due: Option<Due>) -> i64 {
        match due {
            None => self.wall,
            Some(Due::At(at)) => at,
            Some(Due::In(ms)) => self.wall + ms as i64,
        }
    }

    fn execute(&mut self, call: &Call) -> Answer {
        self.memory.seq += 1;
        let seq = self.memory.seq;
        let key = call.key.clone().unwrap_or_else(|| seq.to_string());
        let found = self.memory.tasks.get(&key).cloned();
        let leased = found.as_ref().is_some_and(|task| task.lease.is_some());
        let version = found.as_ref().map(|task| task.version);
        let odd = |if_match: &Option<u64>| if_match.is_some() && *if_match != version;
        let absent = match self.memory.done.get(&key) {
            Some(true) => Answer::Done,
            _ => Answer::NotFound,
        };
        match &call.verb {
            Verb::Redrive { .. }
            | Verb::ById { .. }
            | Verb::ByKey { .. }
            | Verb::Settle(_)
            | Verb::Pause(_)
            | Verb::Drain
            | Verb::Delete => {
                unreachable!("nobody dies at a rehearsal, and nothing is laid down")
            }
            Verb::Put { if_match, .. } if odd(if_match) => Answer::VersionMismatch,
            Verb::Put { mode: Mode::Create, .. } if found.is_some() && !self.has(Bug::CreateOnLive) => {
                Answer::Live
            }
            Verb::Put { mode: Mode::Replace, .. } if found.is_none() => Answer::NotFound,
            Verb::Put { revoke: false, .. } if leased => Answer::Leased,
            Verb::Put { due, payload, .. } => {
                self.take_back(&key);
                let due = self.instant(*due);
                let created = found.is_none();
                let keep = !self.has(Bug::NewIdOnReplace);
                let id = found.as_ref().filter(|_| keep).map_or(seq, |task| task.id);
                let version =
                    found.as_ref().filter(|_| self.has(Bug::VersionStays)).map_or(seq, |task| task.version);
                let task = Task {
                    id,
                    version,
                    place: seq,
                    due,
                    old_due: found.map(|task| task.due),
                    payload: *payload,
                    ended: 0,
                    ready: due <= self.wall,
                    lease: None,
                    cut_off: None,
                };
                let view = Self::view(&key, &task);
                self.memory.tasks.insert(key, task);
                Answer::Stored { created, task: view }
            }
            Verb::Import { there: There::Skip, .. }
                if found.is_some() || self.memory.done.contains_key(&key) =>
            {
                Answer::Skipped
            }
            Verb::Import { there: There::Refuse, .. } if found.is_some() => Answer::Live,
            Verb::Import { revoke: false, .. } if leased => Answer::Leased,
            Verb::Import { due, payload, attempts, .. } => {
                self.take_back(&key);
                let is_there = found.is_some();
                let task = Task {
                    id: found.as_ref().map_or(seq, |task| task.id),
                    version: seq,
                    place: seq,
                    due: *due,
                    old_due: found.map(|task| task.due),
                    payload: *payload,
                    ended: *attempts,
                    ready: *due <= self.wall,
                    lease: None,
                    cut_off: None,
                };
                self.memory.tasks.insert(key, task);
                if is_there { Answer::Replaced } else { Answer::Added }
            }
            Verb::Get => found.map_or(Answer::NotFound, |task| Answer::Task(Self::view(&key, &task))),
            Verb::Patch { .. } | Verb::Cancel { .. } if found.is_none() => match call.verb {
                Verb::Patch { .. } => Answer::NotFound,
                _ => absent,
            },
            Verb::Patch { if_match, .. } | Verb::Cancel { if_match, .. } if odd(if_match) => {
                Answer::VersionMismatch
            }
            Verb::Patch { revoke: false, .. } | Verb::Cancel { revoke: false, .. } if leased => {
                Answer::Leased
            }
            Verb::Patch { due, payload, .. } => {
                self.take_back(&key);
                let half = self.has(Bug::PatchHalfApplied) && due.is_some();
                let (new, wall) = (self.instant(*due), self.wall);
                let task = self.memory.tasks.get_mut(&key).expect("it was found");
                task.version = seq;
                task.payload = payload.filter(|_| !half).unwrap_or(task.payload);
                if due.is_some() {
                    task.old_due = Some(task.due);
                    task.due = new;
                    task.ready = new <= wall;
                }
                Answer::Stored { created: false, task: Self::view(&key, task) }
            }
            Verb::Cancel { .. } => {
                self.take_back(&key);
                self.end_task(&key, false);
                if leased { Answer::Revoked } else { Answer::Cancelled }
            }
            Verb::Lease { max, lease_ms } => self.lease(*max, *lease_ms, seq),
            Verb::Ack { tokens }
            | Verb::Nack { tokens, .. }
            | Verb::Extend { tokens, .. }
            | Verb::Return { tokens } => {
                Answer::Tokens(tokens.iter().map(|token| self.token(&call.verb, token)).collect())
            }
            Verb::List => {
                Answer::Listed(self.memory.tasks.iter().map(|(key, task)| Self::view(key, task)).collect())
            }
            Verb::Counts => {
                let states: Vec<State> =
                    self.memory.tasks.values().map(|task| Self::view("", task).state).collect();
                let count = |wanted| states.iter().filter(|state| **state == wanted).count();
                let off = usize::from(self.has(Bug::CountOff) && seq.is_multiple_of(4));
                let (ready, leased) = (count(State::Ready), count(State::Leased) + off);
                Answer::Counted { scheduled: count(State::Scheduled), ready, leased, dead: 0 }
            }
        }
    }

    fn end_task(&mut self, key: &str, acked: bool) {
        if let Some(task) = self.memory.tasks.remove(key) {
            self.memory.done.insert(key.to_owned(), acked);
            if self.has(if acked { Bug::AckNotWritten } else { Bug::CancelNotWritten }) {
                self.graves.push((key.to_owned(), task));
            }
        }
    }

    fn lease(&mut self, max: usize, lease_ms: u64, seq: u64) -> Answer {
        let mut order: Vec<(u32, i64, u64, String)> = Vec::new();
        for (key, task) in &self.memory.tasks {
            let twice = self.has(Bug::LeasedTwice) && seq.is_multiple_of(3);
            if task.ready && (task.lease.is_none() || twice) {
                order.push((priority_of(task.payload), task.due, task.place, key.clone()));
            }
        }
        order.sort();
        if self.has(Bug::WrongOrder) {
            order.reverse();
        }
        if self.has(Bug::TaskKeptBack) && seq.is_multiple_of(3) {
            order.pop();
        }
        let mut found = Vec::new();
        for (_, _, _, key) in order.into_iter().take(max) {
            let token = format!("t{seq}-{key}");
            let task = self.memory.tasks.get_mut(&key).expect("it was just seen");
            task.lease = Some((token.clone(), self.mono + lease_ms));
            task.cut_off = None;
            let (id, due_at, payload, attempt) = (task.id, task.due, task.payload, task.ended + 1);
            let lease_until = self.wall + lease_ms as i64;
            self.memory.tokens.insert(token.clone(), key.clone());
            found.push(Delivery { key, id, due_at, payload, attempt, token, lease_until });
        }
        Answer::Delivered(found)
    }

    fn token(&mut self, verb: &Verb, token: &String) -> TokenAnswer {
        if matches!(verb, Verb::Return { .. }) {
            self.give_back(token);
            return TokenAnswer::Returned;
        }
        let old_works = self.has(Bug::OldTokenWorks);
        let Some(key) = self.memory.tokens.get(token).cloned() else {
            return TokenAnswer::Expired;
        };
        let holds = self.memory.tasks.get(&key).is_some_and(|task| match &task.lease {
            Some((holder, _)) => holder == token || old_works,
            None => task.cut_off.as_ref() == Some(token),
        });
        let ack = matches!(verb, Verb::Ack { .. });
        if ack && self.memory.acked.contains(token) && !self.has(Bug::SecondAckExpires) {
            return TokenAnswer::Acked;
        }
        if !holds || (self.has(Bug::GoodTokenExpires) && self.memory.seq.is_multiple_of(5)) {
            let revoked = self.memory.revoked.get(&key) == Some(token);
            return if revoked { TokenAnswer::Revoked } else { TokenAnswer::Expired };
        }
        let (mono, wall, counted) = (self.mono, self.wall, !self.has(Bug::AttemptNotCounted));
        let task = self.memory.tasks.get_mut(&key).expect("it was just seen");
        match verb {
            Verb::Nack { delay_ms, .. } => {
                (task.lease, task.cut_off, task.ready) = (None, None, true);
                task.ended += u32::from(counted);
                if let Some(ms) = delay_ms.filter(|&ms| ms > 0) {
                    task.due = wall + ms as i64;
                    task.ready = false;
                }
                TokenAnswer::Nacked
            }
            Verb::Extend { lease_ms, .. } => {
                (task.lease, task.cut_off) = (Some((token.clone(), mono + lease_ms)), None);
                TokenAnswer::Extended
            }
            _ => {
                self.end_task(&key, true);
                self.memory.acked.insert(token.clone());
                TokenAnswer::Acked
            }
        }
    }

    /// Ends the lease of a delivery that reached no worker.
    fn give_back(&mut self, token: &String) {
        let key = self.memory.tokens.get(token);
        if let Some(task) = key.and_then(|key| self.memory.tasks.get_mut(key))
            && task.lease.as_ref().is_some_and(|(holder, _)| holder == token)
        {
            task.lease = None;
        }
    }

    /// Ends the run without faults (except `NeverFires`): every task that falls due is delivered and acked.
    fn end(&mut self) -> Result<(), Violation> {
        self.bug = self.bug.filter(|bug| *bug == Bug::NeverFires);
        self.oracle.crashed()?;
        self.come_back(false)?;
        for _ in 0..40 {
            self.clocks(500, 500);
            self.wake();
            let Answer::Delivered(found) = self.ask(Verb::Lease { max: 10, lease_ms: 60_000 })? else {
                panic!("a lease is answered by a delivery");
            };
            let tokens: Vec<String> = found.into_iter().map(|one| one.token).collect();
            if !tokens.is_empty() {
                self.ask(Verb::Ack { tokens })?;
            }
        }
        self.ask(Verb::List)?;
        self.oracle.finish()
    }

    fn ask(&mut self, verb: Verb) -> Result<Answer, Violation> {
        let id = self.issue(None, verb);
        let (call, _) = self.calls.remove(&id).expect("it was just issued");
        self.waiting.clear();
        let answer = self.execute(&call);
        self.clocks(1, 1);
        self.oracle.answered(CallId(id), answer.clone())?;
        Ok(answer)
    }
}

/// The kind of an answer.
fn word(answer: &Answer) -> String {
    let text = match answer {
        Answer::Delivered(found) => format!("{} delivered", found.len().min(2)),
        Answer::Tokens(said) => format!("{:?}", said.iter().min_by_key(|one| **one == TokenAnswer::Expired)),
        other => format!("{other:?}"),
    };
    text.split([' ', '{', '(', '[']).take(2).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn seeds(default: u64) -> u64 {
    std::env::var("ORACLE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(default)
}

#[test]
fn a_correct_server_is_never_accused() {
    let (mut given_up, mut calls, mut said) = (0, 0, BTreeMap::new());
    for seed in 0..seeds(150) {
        let mut world = World::new(seed, None);
        if let Err(violation) = world.run(1_500) {
            panic!("seed {seed}: {violation:#?}");
        }
        given_up += world.oracle.given_up();
        for (word, times) in world.said {
            *said.entry(word).or_insert(0) += times;
        }
        calls += world.calls_made;
    }
    println!("{calls} calls, {given_up} keys given up: {said:?}");
    assert!(calls > 150 * 100, "only {calls} calls");
    assert!(given_up * 1_000_000 <= calls as usize, "{given_up} keys were given up in {calls} calls");
}

#[test]
fn every_fault_is_found_and_named() {
    let faults: [(Bug, &[&str]); 21] = [
        (Bug::ReplyBeforeSync, &["P1", "P4", "P5", "P6"]),
        (Bug::AckNotWritten, &["P4"]),
        (Bug::CancelNotWritten, &["P5"]),
        (Bug::RevokeNotWritten, &["P5"]),
        (Bug::Early, &["P2"]),
        (Bug::OldInstantFires, &["P2", "P5"]),
        (Bug::LeasedTwice, &["P4"]),
        (Bug::AttemptNotCounted, &["P4"]),
        (Bug::OldTokenWorks, &["P4"]),
        (Bug::SecondAckExpires, &["P4"]),
        (Bug::GoodTokenExpires, &["P4"]),
        (Bug::NewIdOnReplace, &["P6"]),
        (Bug::VersionStays, &["P6"]),
        (Bug::CreateOnLive, &["P6"]),
        (Bug::PatchHalfApplied, &["P1"]),
        (Bug::ReadyUnready, &["P7", "P4", "counts"]),
        (Bug::WrongOrder, &["order"]),
        (Bug::TaskKeptBack, &["P4"]),
        (Bug::CountOff, &["counts"]),
        (Bug::StopForgetsLeases, &["P4"]),
        (Bug::NeverFires, &["P3"]),
    ];
    for (bug, promises) in faults {
        let mut named = BTreeMap::new();
        for seed in 0..seeds(30) {
            if let Err(violation) = World::new(seed, Some(bug)).run(1_500) {
                *named.entry(violation.promise).or_insert(0) += 1;
            }
        }
        let most = named.iter().max_by_key(|(_, times)| **times).map(|(promise, _)| *promise);
        assert!(most.is_some_and(|promise| promises.contains(&promise)), "{bug:?} was named {named:?}");
        println!("{bug:?}: {named:?}");
    }
}
