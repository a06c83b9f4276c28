//! [`Options`]: what can be chosen about a queue before it is opened.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_engine::{Engine, EngineConfig, ShardId, Timestamp};
use tickwheel_store::{
    AckLevel, ClockMode, OpenStore, OpenedStore, QueueStore, RecoveryReport, StoreOptions,
};

use crate::backup::Source;
use crate::driver::{Driver, Message, SHARD_THREAD};
use crate::health::Shared;
use crate::notice::{Listener, Notice};
use crate::opened::Opened;
use crate::queue::Queue;
use crate::shard::Shard;
use crate::stores::{Directory, Memory};
use crate::time::Time;
use crate::watch::Watch;

/// A commit that takes this long is told of unless another time is chosen.
pub const SLOW_COMMIT_DEFAULT: Duration = Duration::from_secs(1);

/// Why a queue could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be used; nothing in it was changed unless the error says so.
    #[error(transparent)]
    Store(#[from] tickwheel_store::OpenError),
    /// The operating system has no random bytes for the secret that signs lease tokens.
    #[error("get random bytes from the operating system: {0}")]
    Random(String),
    /// The operating system gives no thread.
    #[error("start the queue's thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The store failed right after it was opened.
    #[error("take the shard: {why}")]
    Taken {
        /// What failed.
        why: String,
    },
    /// What is due soon cannot be read, so nobody could say what is ready.
    #[error(
        "{why}; `tickwheel doctor --deep` says what else is damaged: restore the data directory from a copy, or save what can be read of it \
         with `tickwheel salvage`, and keep this one as it is until then"
    )]
    Near {
        /// What failed, with file and byte.
        why: String,
    },
}

impl From<std::convert::Infallible> for OpenError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// What can be chosen about a queue before it is opened. Start from [`Queue::options`].
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel_queue::Queue;
/// let queue = Queue::options().virtual_clock().open_memory()?;
/// let before = queue.now();
/// queue.advance(Duration::from_secs(15 * 86_400)).wait()?;
/// assert_eq!(queue.now().ms_since(before), 15 * 86_400_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    virtual_clock: Option<VirtualStart>,
    horizon: Option<Duration>,
    near_bytes_max: Option<u64>,
    ack_level: AckLevel,
    log_file_bytes: Option<u64>,
    checkpoint_after_bytes: Option<u64>,
    slow_commit: Option<Duration>,
    listener: Listener,
}

#[derive(Copy, Clone, Debug)]
enum VirtualStart {
    /// The later of the real time and the last one in the directory.
    Now,
    At(Timestamp),
}

impl Options {
    /// A clock that stands still until [`Queue::advance`] moves it. It starts at the real time, or at the last time the
    /// directory knows if that is later. A directory belongs to one kind of clock for good.
    #[must_use]
    pub fn virtual_clock(mut self) -> Self {
        self.virtual_clock = Some(VirtualStart::Now);
        self
    }

    /// A virtual clock that starts at `start`, or at the last time the directory knows if that is later.
    #[must_use]
    pub fn virtual_clock_at(mut self, start: Timestamp) -> Self {
        self.virtual_clock = Some(VirtualStart::At(start));
        self
    }

    /// Tasks due so far ahead are kept in memory; later ones are loaded in time. Default: an hour; at least 1 s.
    #[must_use]
    pub fn horizon(mut self, horizon: Duration) -> Self {
        self.horizon = Some(horizon);
        self
    }

    /// Tasks that are due soon or ready may take about so many bytes of memory. Default: 256 MiB; at least 1 MiB.
    ///
    /// Beyond them tasks are kept in memory for less than the horizon, and of a ready task behind the first of its queue 64
    /// bytes are kept, the rest being read before it is leased. Nothing is late or refused for that. Not counted: tasks in
    /// workers' hands, changes on their way to the disk, and the 64 bytes of each task that is ready or due within 2 s.
    #[must_use]
    pub fn near_bytes_max(mut self, bytes: u64) -> Self {
        self.near_bytes_max = Some(bytes);
        self
    }

    /// When a call is answered that changes something: when it is synced (the default), when it is written, or at once.
    /// [`AckLevel`] says what an answer survives then. It makes no difference to a queue in memory.
    #[must_use]
    pub fn ack_level(mut self, level: AckLevel) -> Self {
        self.ack_level = level;
        self
    }

    /// Bytes of one log file. Default: 16 MiB.
    #[must_use]
    pub fn log_file_bytes(mut self, bytes: u64) -> Self {
        self.log_file_bytes = Some(bytes);
        self
    }

    /// A checkpoint starts when so many bytes of log have been written since the last one. Default: 32 MiB.
    #[must_use]
    pub fn checkpoint_after_bytes(mut self, bytes: u64) -> Self {
        self.checkpoint_after_bytes = Some(bytes);
        self
    }

    /// Calls `listen` with what an operator should know while the queue runs, such as a full disk: see [`Notice`]. It is called on the
    /// queue's own thread, between two turns, so it must not block.
    ///
    /// ```
    /// use tickwheel_queue::{Notice, Queue};
    ///
    /// let queue = Queue::options().on_notice(|notice| {
    ///     if let Notice::ReadOnly { why } = notice {
    ///         eprintln!("nothing is changed any more: {why}");
    ///     }
    /// });
    /// let queue = queue.open_memory()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_notice(mut self, listen: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.listener = Listener::new(listen);
        self
    }

    /// A commit that takes this long or longer is told of: [`Notice::CommitSlow`], and [`Notice::CommitWaits`] while it is under way. By the
    /// monotonic clock, so never on a virtual one. Default: 1 s.
    #[must_use]
    pub fn slow_commit(mut self, threshold: Duration) -> Self {
        self.slow_commit = Some(threshold);
        self
    }

    /// Opens the queue in `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Queue, OpenError> {
        let mut options = StoreOptions::new(secret()?);
        if self.virtual_clock.is_some() {
            options.clock = ClockMode::Virtual;
        }
        options.ack_level = self.ack_level;
        options.log_file_bytes = self.log_file_bytes.unwrap_or(options.log_file_bytes);
        options.checkpoint_after_bytes =
            self.checkpoint_after_bytes.unwrap_or(options.checkpoint_after_bytes);
        self.open_store(Directory { path: directory.as_ref(), options })
    }

    /// A queue without a directory: its tasks live as long as the process.
    ///
    /// # Errors
    /// [`OpenError::Random`], [`OpenError::Thread`].
    pub fn open_memory(self) -> Result<Queue, OpenError> {
        // The identity has a secret of its own, so that it tells nothing of the one that signs.
        self.open_store(Memory { secret: secret()?, identity: u128::from_be_bytes(secret()?) })
    }

    /// Opens the queue over another store. Of the options, those that concern a directory have no effect.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_store<O: OpenStore>(self, store: O) -> Result<Queue, OpenError>
    where
        OpenError: From<O::Error>,
    {
        let begun = Instant::now();
        let (messages, inbox) = channel();
        let wake = messages.clone();
        let opened = store.open(Box::new(move || {
            // The thread may have ended; then nothing has to be polled.
            let _gone = wake.send(Message::Store);
        }))?;
        let OpenedStore { store, last_wall, identity, durability, recovery, directory } = opened;
        let mut time = self.time(last_wall);
        let mut config = EngineConfig::default();
        if let Some(horizon) = self.horizon {
            config.horizon_ms = u64::try_from(horizon.as_millis()).unwrap_or(u64::MAX).max(1_000);
        }
        if let Some(bytes) = self.near_bytes_max {
            config.near_bytes_max = bytes.max(1 << 20);
        }
        let shard = load(Shard::new(ShardId::ONLY, store, config, time.now()), &mut time, &inbox)?;
        let warned = recovery.as_ref().and_then(warning).map(Into::into);
        let shared = Arc::new(Shared::new(durability, time.is_virtual(), warned));
        shared.update(&shard, time.clock_status());
        let time = Arc::new(Mutex::new(time));
        let watch = Watch::new(self.listener, self.slow_commit.unwrap_or(SLOW_COMMIT_DEFAULT));
        let driver =
            Driver::new(shard, Arc::clone(&time), inbox, messages.clone(), Arc::clone(&shared), watch);
        let thread = std::thread::Builder::new()
            .name(SHARD_THREAD.to_owned())
            .spawn(move || driver.run())
            .map_err(OpenError::Thread)?;
        let opened = Opened { identity: identity.into(), recovery, took: begun.elapsed() };
        Ok(Queue::new(messages, time, shared, Source::new(directory, durability), thread, opened))
    }

    fn time(&self, last: Timestamp) -> Time {
        match self.virtual_clock {
            None => Time::real(),
            Some(VirtualStart::At(start)) => Time::virtual_at(start.max(last)),
            Some(VirtualStart::Now) => Time::virtual_at(Time::real().now().wall.max(last)),
        }
    }
}

/// Runs the shard until all that is near is in memory. Before that no caller can ask, so that the task that was due first is delivered
/// first.
fn load<S: QueueStore>(
    mut shard: Shard<S>,
    time: &mut Time,
    inbox: &Receiver<Message>,
) -> Result<Shard<S>, OpenError> {
    loop {
        shard.turn(time.now(), &mut Vec::new());
        shard.take_answers(&mut Vec::new());
        if shard.is_serving() {
            return Ok(shard);
        }
        if shard.is_unowned() {
            return Err(OpenError::Taken { why: "another process has it".to_owned() });
        }
        if let Some(why) = shard.refusal() {
            return Err(OpenError::Taken { why: why.to_owned() });
        }
        if let Some(why) = shard.engine().and_then(Engine::failure) {
            return Err(OpenError::Near { why: why.to_string() });
        }
        // The store says when it has more; a second is the cap of every wait.
        let _woken = inbox.recv_timeout(Duration::from_secs(1));
    }
}

fn secret() -> Result<[u8; 16], OpenError> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|error| OpenError::Random(error.to_string()))?;
    Ok(secret)
}

/// What an operator should know of a recovery; `None` if all was in order.
fn warning(report: &RecoveryReport) -> Option<String> {
    let torn = report.torn.as_ref().map(|torn| {
        format!(
            "{} bytes at byte {} of {} were no whole write and were left out: a crash cut it short, or it was damaged since",
            torn.bytes, torn.offset, torn.file
        )
    });
    let damaged = report
        .damaged_checkpoint
        .as_ref()
        .map(|file| format!("the checkpoint {file} is damaged; an older one and the log made up for it"));
    match (torn, damaged) {
        (Some(torn), Some(damaged)) => Some(format!("{torn}; {damaged}")),
        (torn, damaged) => torn.or(damaged),
    }
}
