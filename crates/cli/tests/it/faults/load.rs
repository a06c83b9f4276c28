//! Clients that put, move, cancel, lease and ack until the server is gone.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::faults::caller::{Caller, Leased, Said};
use crate::faults::history::{Answer, Call, Key, queue_of, wall_ms};
use crate::faults::readback::QUEUES;
use crate::kit::Random;

const WRITERS: u64 = 4;
const WORKERS: u64 = 2;
/// From this number of live tasks on, tasks are cancelled in batches, so that a readback does not take long.
const LIVE_MAX: usize = 2_500;
/// Due times after the end of the test (ms), around a minute, an hour and a day.
const FAR_MS: [i64; 10] = [
    61_000,
    120_000,
    3_540_000,
    3_600_000,
    3_660_000,
    18_000_000,
    86_400_000,
    40 * 86_400_000,
    400 * 86_400_000,
    9 * 365 * 86_400_000,
];
/// The percentage of large calls by default.
pub(crate) const LARGE: u64 = 3;
/// The number of keys that are used repeatedly.
const SLOTS: u64 = 60;
/// The number of keys in a round that all clients use, and the limit of such calls for each client.
const HOT: u64 = 6;
const HOT_CALLS: usize = 24;

/// One period of load.
pub(crate) struct Load<'a> {
    pub(crate) seed: u64,
    pub(crate) round: u64,
    /// The percentage of large calls.
    pub(crate) large: u64,
    /// Keys that are live at the start.
    pub(crate) live: &'a [Key],
    /// Set to end the clients while the server still runs.
    pub(crate) stop: &'a AtomicBool,
    /// Leases without an ack: a worker tries some of their tokens.
    pub(crate) kept: &'a Mutex<Vec<Leased>>,
}

impl Load<'_> {
    /// Runs until the server is gone or takes no more, or until the load is stopped. `meanwhile` runs at the same
    /// time and may ask whether all writers have ended.
    pub(crate) fn run(&self, caller: &Caller<'_>, meanwhile: impl FnOnce(&dyn Fn() -> bool)) {
        thread::scope(|scope| {
            let mut writers = Vec::new();
            for writer in 0..WRITERS {
                let caller = caller.clone();
                writers.push(scope.spawn(move || Writer::new(self, caller, writer).write()));
            }
            for worker in 0..WORKERS {
                let caller = caller.clone();
                scope.spawn(move || self.work(&caller, worker));
            }
            meanwhile(&|| writers.iter().all(|writer| writer.is_finished()));
        });
    }

    /// Leases and acks; some tasks are not acked, some tokens are used late.
    fn work(&self, caller: &Caller<'_>, worker: u64) {
        let mut random = self.random(100 + worker);
        while !self.stop.load(Ordering::Relaxed) {
            for queue in QUEUES {
                let max = 1 + usize::try_from(random.below(12)).expect("small");
                let Ok(mut leased) = caller.lease(queue, max, 10) else { return };
                let late = leased.extract_if(.., |_| random.below(6) == 0).collect::<Vec<_>>();
                let mut kept = self.kept.lock().expect("pushing does not panic");
                kept.extend(late);
                if kept.len() > 40 {
                    let old = kept.swap_remove(usize::try_from(random.below(40)).expect("small"));
                    if queue_of(&old.key) == queue {
                        leased.push(old);
                    }
                }
                drop(kept);
                if !leased.is_empty() && caller.ack(queue, &leased).is_err() {
                    return;
                }
            }
        }
    }

    fn random(&self, client: u64) -> Random {
        Random::new(self.seed.wrapping_mul(1_000_003).wrapping_add(self.round * 1_009 + client))
    }
}

struct Writer<'a> {
    load: &'a Load<'a>,
    caller: Caller<'a>,
    random: Random,
    writer: u64,
    made: u32,
    hot_calls: usize,
    live: usize,
    /// The keys of large puts, the oldest first.
    larges: VecDeque<Vec<Key>>,
}

impl<'a> Writer<'a> {
    fn new(load: &'a Load<'a>, caller: Caller<'a>, writer: u64) -> Self {
        let (random, live) = (load.random(writer), load.live.len());
        Self { load, caller, random, writer, made: 0, hot_calls: 0, live, larges: VecDeque::new() }
    }

    fn write(mut self) {
        while !self.load.stop.load(Ordering::Relaxed) {
            if self.turn().is_err() {
                return;
            }
        }
    }

    fn turn(&mut self) -> Said<()> {
        if self.live > LIVE_MAX && self.random.below(8) == 0 {
            return self.batch(60, |_| Call::Cancel);
        }
        if self.random.below(100) < self.load.large {
            return self.large();
        }
        match self.random.below(100) {
            0..31 => self.put_near(),
            31..44 => self.put_far(),
            44..53 => self.batch(30, Self::any_call),
            53..64 => self.on_live(|_| Call::Cancel),
            64..75 => self.on_live(|writer| Call::Patch { due_ms: writer.due_ms() }),
            75..84 => self.cancel_when_due(),
            84..92 => self.hot(),
            _ => self.slot(),
        }
    }

    fn put_near(&mut self) -> Said<()> {
        let key = self.new_key("w");
        let due_ms = wall_ms() + self.below(250);
        self.put(&key, due_ms)
    }

    fn put_far(&mut self) -> Said<()> {
        let key = self.new_key("f");
        let due_ms = self.due_ms();
        self.live += 1;
        self.put(&key, due_ms)
    }

    /// A due time that is soon (0.3 to 5.3 s, some rounds away) or far.
    fn due_ms(&mut self) -> i64 {
        let far = FAR_MS[usize::try_from(self.random.below(FAR_MS.len() as u64)).expect("small")];
        match self.random.below(3) {
            0 => wall_ms() + 300 + self.below(5_000),
            _ => wall_ms() + far + self.below(2_000),
        }
    }

    /// Sends a batch in which no two lines have the same key.
    fn batch(&mut self, lines: usize, call: impl Fn(&mut Self) -> Call) -> Said<()> {
        let queue = QUEUES[usize::try_from(self.random.below(3)).expect("small")];
        let mut batch: Vec<(Key, Call)> = Vec::new();
        for _ in 0..lines {
            let call = call(self);
            let key = match call {
                Call::Put { .. } => Some(self.new_key_of(queue, "n")),
                _ => self.pick().filter(|key| queue_of(key) == queue),
            };
            if let Some(key) = key.filter(|key| batch.iter().all(|(other, _)| other != key)) {
                batch.push((key, call));
            }
        }
        self.live = self.live.saturating_sub(batch.iter().filter(|(_, call)| *call == Call::Cancel).count());
        if batch.is_empty() { Ok(()) } else { self.caller.batch(&batch) }
    }

    fn any_call(&mut self) -> Call {
        match self.random.below(4) {
            0 => Call::Cancel,
            1 => Call::Patch { due_ms: self.due_ms() },
            _ => Call::Put { due_ms: wall_ms() + self.below(3_000), number: self.made },
        }
    }

    /// Puts a quarter of a megabyte, so that files fill and checkpoints happen. Removes the batch that was put three
    /// batches before, and some batches of earlier rounds.
    fn large(&mut self) -> Said<()> {
        let old = self.load.live.iter().filter(|key| key.contains(":b") && self.random.below(WRITERS) == 0);
        let mut old: Vec<Key> = old.take(40).cloned().collect();
        if self.larges.len() > 2 {
            old.extend(self.larges.pop_front().into_iter().flatten());
        }
        for queue in QUEUES {
            let of_queue = old.iter().filter(|key| queue_of(key) == queue);
            let lines: Vec<_> = of_queue.map(|key| (Key::clone(key), Call::Cancel)).collect();
            if !lines.is_empty() {
                self.caller.batch(&lines)?;
            }
        }
        let queue = QUEUES[usize::try_from(self.random.below(3)).expect("small")];
        let keys: Vec<Key> = (0..20).map(|_| self.new_key_of(queue, "b")).collect();
        let lines: Vec<_> = keys
            .iter()
            .map(|key| (Key::clone(key), Call::Put { due_ms: self.due_ms(), number: self.made }))
            .collect();
        self.larges.push_back(keys);
        self.caller.batch(&lines)
    }

    fn on_live(&mut self, call: impl Fn(&mut Self) -> Call) -> Said<()> {
        let Some(key) = self.pick() else { return Ok(()) };
        match call(self) {
            Call::Patch { due_ms } => self.caller.patch(&key, due_ms)?,
            _ => self.caller.cancel(&key)?,
        };
        Ok(())
    }

    /// Sends a cancel within a few milliseconds of the due time.
    fn cancel_when_due(&mut self) -> Said<()> {
        let key = self.new_key("c");
        let due_ms = wall_ms() + 8 + self.below(20);
        self.put(&key, due_ms)?;
        let until = due_ms - 3 + self.below(5);
        // The cancel should come at the due time. This is the load's only wait for a time.
        thread::sleep(Duration::from_millis(u64::try_from(until - wall_ms()).unwrap_or_default()));
        let answer = self.caller.cancel(&key)?;
        let definite = matches!(answer, Answer::Cancelled | Answer::Leased | Answer::Done);
        if definite && (wall_ms() - due_ms).abs() <= 5 {
            self.caller.history().note_close_cancel();
        }
        Ok(())
    }

    /// Uses a key that other clients use, too.
    fn hot(&mut self) -> Said<()> {
        self.hot_calls += 1;
        if self.hot_calls > HOT_CALLS {
            return Ok(());
        }
        let number = self.random.below(HOT);
        let key = Key::from(format!("{}:h{}:{number}", number % 3, self.load.round));
        match self.random.below(4) {
            0 | 1 => {
                let due_ms = wall_ms() + self.below(30);
                self.put(&key, due_ms)
            }
            2 => {
                let due_ms = wall_ms() + self.below(30);
                self.caller.patch(&key, due_ms).map(drop)
            }
            _ => self.caller.cancel(&key).map(drop),
        }
    }

    /// Uses a key of earlier rounds.
    fn slot(&mut self) -> Said<()> {
        let slot = self.random.below(SLOTS);
        let key = Key::from(format!("{}:s{slot}", slot % 3));
        let due_ms = if self.random.below(2) == 0 { wall_ms() + self.below(200) } else { self.due_ms() };
        match self.random.below(3) {
            0 => self.caller.cancel(&key).map(drop),
            _ => self.put(&key, due_ms),
        }
    }

    /// Puts a task. Each put of a round has its own number, so that the payloads differ.
    fn put(&mut self, key: &Key, due_ms: i64) -> Said<()> {
        self.made += 1;
        let number = u32::try_from(self.writer).expect("small") << 24 | self.made;
        self.caller.put(key, due_ms, number).map(drop)
    }

    fn new_key(&mut self, kind: &str) -> Key {
        let queue = QUEUES[usize::try_from(self.random.below(3)).expect("small")];
        self.new_key_of(queue, kind)
    }

    fn new_key_of(&mut self, queue: &str, kind: &str) -> Key {
        self.made += 1;
        format!("{queue}:{kind}{}:{}:{}", self.load.round, self.writer, self.made).into()
    }

    fn pick(&mut self) -> Option<Key> {
        let count = self.load.live.len() as u64;
        (count > 0)
            .then(|| self.load.live[usize::try_from(self.random.below(count)).expect("an index")].clone())
    }

    fn below(&mut self, bound: u64) -> i64 {
        i64::try_from(self.random.below(bound)).expect("small")
    }
}
