//! A small world without random numbers. One caller makes one call at a time, and equal operations give equal calls of
//! the disk.

use std::fmt;

use tickwheel_engine::{CallId as ProductCall, Command, EngineConfig, Input, Now, Timestamp};
use tickwheel_queue::{List, Shard, ShardId};
use tickwheel_store::{DiskStore, HistoryLimits, InlineIo, StoreOptions};

use crate::disk::SimDisk;
use crate::oracle::{Answer, Call, CallId, Due, Mode, Oracle, Verb, Violation};
use crate::words;

const WALL_START_MS: i64 = 1_500_000_000_000;
const QUEUE: &str = "q";
const LEASE_MS: u64 = 1_000;
const FAR_MS: u64 = 864_000_000;
/// A number of turns that no operation of a correct server needs.
const TURNS_MAX: usize = 200;

type Server = Shard<DiskStore<SimDisk, InlineIo<SimDisk>>>;

/// The possible operations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Puts `a`, due in 5 ms.
    Put,
    /// Puts `b`, due in ten days: beyond the horizon.
    PutFar,
    /// Cancels the task that was put last.
    Cancel,
    /// Moves the task that was put last. A far task becomes near, and a near one far.
    Reschedule,
    /// Lets time pass until the server wants to be woken.
    Wake,
    Lease,
    /// Acks the last lease.
    Ack,
    /// Runs 20 turns, which give the background work of the store as much time as it wants.
    Checkpoint,
}

/// All operations.
pub(crate) const OPERATIONS: [Operation; 8] = [
    Operation::Put,
    Operation::PutFar,
    Operation::Cancel,
    Operation::Reschedule,
    Operation::Wake,
    Operation::Lease,
    Operation::Ack,
    Operation::Checkpoint,
];

/// The reason why a play ended early.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The machine died.
    Died,
    /// The store has failed or refuses to open; the text says why.
    Failed(String),
    Broken(Violation),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => f.write_str("the machine died"),
            Self::Failed(why) => write!(f, "the server has failed: {why}"),
            Self::Broken(Violation { promise, what, story }) => {
                write!(f, "{promise} is broken: {what}")?;
                story.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

impl From<Violation> for Stopped {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// The small world: a disk, a server, its clocks and an oracle.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) disk: SimDisk,
    server: Option<Server>,
    pub(crate) oracle: Oracle,
    now: Now,
    calls: u64,
    /// Calls that have no answer yet. There is more than one only after a crash.
    open: Vec<CallId>,
    token: Option<String>,
    /// The key of the last put, and whether its task is far.
    last: Option<(&'static str, bool)>,
}

impl Play {
    /// A world whose server is not started yet.
    pub(crate) fn new(disk: SimDisk) -> Self {
        let wall = Timestamp::from_ms(WALL_START_MS).expect("after 1970");
        Self {
            disk,
            server: None,
            oracle: Oracle::new(0, WALL_START_MS),
            now: Now { mono_ns: 0, wall, wall_sub_ns: 0, wall_width_ns: 0, held_ms: 0 },
            calls: 0,
            open: Vec::new(),
            token: None,
            last: None,
        }
    }

    /// A copy of this world at the moment of a crash, on the disk `disk`.
    pub(crate) fn crashed_on(&self, disk: SimDisk) -> Result<Self, Violation> {
        let mut oracle = self.oracle.clone();
        oracle.crashed()?;
        Ok(Self {
            disk,
            server: None,
            oracle,
            now: self.now,
            calls: self.calls,
            open: Vec::new(),
            token: self.token.clone(),
            last: self.last,
        })
    }

    /// Ends the process of the server. The machine goes on, so no unsynced change is lost.
    pub(crate) fn kill(&mut self) -> Result<(), Violation> {
        self.server = None;
        self.open.clear();
        self.oracle.crashed()
    }

    /// Starts the server.
    pub(crate) fn start(&mut self) -> Result<(), Stopped> {
        let opened = DiskStore::open(self.disk.clone(), InlineIo::new(), options());
        let store = opened.map_err(|error| self.stopped(&error.to_string()))?;
        let config = EngineConfig {
            horizon_ms: 1_000,
            scan_max: 2,
            dead_ms: u64::MAX,
            history_ms: u64::MAX,
            ..EngineConfig::default()
        };
        let mut server = Shard::new(ShardId::ONLY, store, config, self.now);
        self.oracle.recovered();
        for _ in 0..TURNS_MAX {
            server.turn(self.now, &mut Vec::new());
            if let Some(why) = server.refusal() {
                return Err(self.stopped(why));
            }
            if self.disk.is_crashed() {
                return Err(Stopped::Died);
            }
            if server.is_loaded() {
                self.server = Some(server);
                return Ok(());
            }
        }
        Err(Stopped::Failed("the server does not load".to_owned()))
    }

    /// Does one operation. `false`: the operation had nothing to do, so a play without it is the same.
    pub(crate) fn act(&mut self, operation: Operation) -> Result<bool, Stopped> {
        let payload = 2 * (self.calls + 1);
        let put = |ms| Verb::Put {
            due: Some(Due::In(ms)),
            payload,
            mode: Mode::Upsert,
            if_match: None,
            revoke: true,
        };
        let verb = match (operation, self.last, &self.token) {
            (Operation::Put, ..) => {
                self.last = Some(("a", false));
                put(5)
            }
            (Operation::PutFar, ..) => {
                self.last = Some(("b", true));
                put(FAR_MS)
            }
            (Operation::Cancel, Some(_), _) => Verb::Cancel { if_match: None, revoke: true },
            (Operation::Reschedule, Some((key, far)), _) => {
                self.last = Some((key, !far));
                let due = Some(Due::In(if far { 5 } else { FAR_MS }));
                Verb::Patch { due, payload: None, if_match: None, revoke: true }
            }
            (Operation::Lease, ..) => Verb::Lease { max: 1, lease_ms: LEASE_MS },
            (Operation::Ack, _, Some(token)) => Verb::Ack { tokens: vec![token.clone()] },
            (Operation::Cancel | Operation::Reschedule, None, _) | (Operation::Ack, _, None) => {
                return Ok(false);
            }
            (Operation::Wake, ..) => return self.wake(),
            (Operation::Checkpoint, ..) => {
                (0..20).try_for_each(|_| self.turn(&mut Vec::new()).map(|_| ()))?;
                return Ok(true);
            }
        };
        let keyed = matches!(verb, Verb::Put { .. } | Verb::Patch { .. } | Verb::Cancel { .. });
        let key = self.last.filter(|_| keyed).map(|(key, _)| key.to_owned());
        self.call(key, verb)?;
        Ok(true)
    }

    /// Reads the list, then lets time pass until every task is delivered and acked, and checks that no task is left.
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        self.list()?;
        for _ in 0..TURNS_MAX {
            let Answer::Delivered(found) = self.call(None, Verb::Lease { max: 10, lease_ms: LEASE_MS })?
            else {
                return Err(Stopped::Failed("a lease was not answered with deliveries".to_owned()));
            };
            let tokens: Vec<String> = found.into_iter().map(|one| one.token).collect();
            if !tokens.is_empty() {
                self.call(None, Verb::Ack { tokens })?;
            } else if !self.wake()? {
                self.list()?;
                return Ok(self.oracle.finish()?);
            }
        }
        Err(Stopped::Failed("it does not come to an end".to_owned()))
    }

    fn list(&mut self) -> Result<(), Stopped> {
        let id = self.open_call(None, Verb::List);
        let list = List { max: 100, ..List::new(&words::queue(QUEUE)) };
        match self.ask(Command::List(list))? {
            tickwheel_engine::Answer::List(Ok(page)) => {
                self.open.retain(|open| *open != id);
                Ok(self.oracle.answered(id, Answer::Listed(words::rows(&page)))?)
            }
            other => Err(Stopped::Failed(format!("a list was answered {other:?}"))),
        }
    }

    /// Lets time pass until the next instant at which the server wants to be woken. `false`: there is no such instant.
    fn wake(&mut self) -> Result<bool, Stopped> {
        for _ in 0..TURNS_MAX {
            if self.server.as_ref().is_some_and(|server| server.is_idle()) {
                break;
            }
            self.turn(&mut Vec::new())?;
        }
        let Some(server) = &self.server else { return Err(Stopped::Died) };
        let wake = server.next_wake();
        let by_wall = wake.wall.map(|at| at.ms_since(self.now.wall));
        let by_mono = wake.mono_ms.map(|at| at.saturating_sub(self.now.mono_tick()));
        let Some(by_ms) = by_wall.into_iter().chain(by_mono).min() else { return Ok(false) };
        self.now.mono_ns += by_ms * 1_000_000;
        self.now.wall = self.now.wall.saturating_plus_ms(by_ms);
        self.oracle.time(self.now.mono_tick(), self.now.wall.as_ms());
        self.turn(&mut Vec::new())?;
        Ok(true)
    }

    fn open_call(&mut self, key: Option<String>, verb: Verb) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.oracle.called(id, Call { queue: QUEUE.to_owned(), key, verb });
        self.open.push(id);
        id
    }

    fn call(&mut self, key: Option<String>, verb: Verb) -> Result<Answer, Stopped> {
        let call = Call { queue: QUEUE.to_owned(), key: key.clone(), verb: verb.clone() };
        let id = self.open_call(key, verb);
        let answer = words::answer(&call, self.ask(words::command(&call))?);
        if let Answer::Delivered(found) = &answer
            && let Some(one) = found.last()
        {
            self.token = Some(one.token.clone());
        }
        self.open.retain(|open| *open != id);
        self.oracle.answered(id, answer.clone())?;
        match (self.failure(), &answer) {
            (Some(why), _) => Err(Stopped::Failed(why)),
            (None, Answer::Unknown | Answer::Refused) => Err(Stopped::Failed(format!("answered {answer:?}"))),
            (None, _) => Ok(answer),
        }
    }

    fn ask(&mut self, command: Command) -> Result<tickwheel_engine::Answer, Stopped> {
        let mut inputs = vec![Input::Call { call: ProductCall(self.calls), command }];
        for _ in 0..TURNS_MAX {
            if let Some(answer) = self.turn(&mut inputs)? {
                return Ok(answer);
            }
        }
        Err(Stopped::Failed("no answer".to_owned()))
    }

    fn turn(&mut self, inputs: &mut Vec<Input>) -> Result<Option<tickwheel_engine::Answer>, Stopped> {
        let Some(server) = &mut self.server else { return Err(Stopped::Died) };
        let mut answers = Vec::new();
        server.turn(self.now, inputs);
        server.take_answers(&mut answers);
        if self.disk.is_crashed() {
            return Err(Stopped::Died);
        }
        match (answers.pop(), self.failure()) {
            (None, Some(why)) => Err(Stopped::Failed(why)),
            (answer, _) => Ok(answer.map(|(_, answer)| answer)),
        }
    }

    fn failure(&self) -> Option<String> {
        let engine = self.server.as_ref()?.engine()?;
        engine.failure().map(|why| why.to_string())
    }

    fn stopped(&self, why: &str) -> Stopped {
        if self.disk.is_crashed() { Stopped::Died } else { Stopped::Failed(why.to_owned()) }
    }
}

/// Options with small files, and a checkpoint as soon as there is time for one.
fn options() -> StoreOptions {
    let mut options = StoreOptions::new(*b"a small world...");
    options.history = HistoryLimits::last(10_000);
    options.log_file_bytes = 8_192;
    options.checkpoint_after_bytes = 0;
    options.background_step_bytes = 4_096;
    options.segment_bytes = 1_024;
    options.block_bytes = 256;
    options
}
