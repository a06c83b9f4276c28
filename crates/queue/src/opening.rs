//! Opens a queue with its [`Options`]: over a directory, in memory, or over another store.

use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_engine::{Engine, ShardId, Timestamp};
use tickwheel_store::{ClockMode, OpenStore, OpenedStore, QueueStore, RecoveryReport, StoreOptions};

use crate::backup::Source;
use crate::driver::{Driver, SHARD_THREAD};
use crate::health::Shared;
use crate::message::Message;
use crate::opened::Opened;
use crate::options::{OpenError, Options, SLOW_COMMIT_DEFAULT, VirtualStart};
use crate::queue::Queue;
use crate::shard::Shard;
use crate::stores::{Directory, Memory};
use crate::time::Time;
use crate::watch::Watch;

impl Options {
    /// Opens the queue in `directory`, which is made if it does not exist.
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

    /// Opens a queue without a directory. Its tasks are in memory only, and are gone when the queue is closed.
    ///
    /// # Errors
    /// [`OpenError::Random`], [`OpenError::Thread`].
    pub fn open_memory(self) -> Result<Queue, OpenError> {
        // The identity has random bytes of its own, so that it tells nothing about the secret that signs lease tokens.
        self.open_store(Memory { secret: secret()?, identity: u128::from_be_bytes(secret()?) })
    }

    /// Opens the queue over another store. The options that concern a directory have no effect.
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
            // The shard thread may have ended. Then no thread polls the store any more.
            let _gone = wake.send(Message::Store);
        }))?;
        let OpenedStore { store, last_wall, identity, durability, recovery, directory } = opened;
        let mut time = self.time(last_wall);
        let shard = Shard::new(ShardId::ONLY, store, self.engine, time.now());
        let shard = load(shard, &mut time, &inbox)?;
        let instance = shard.engine().expect("a loaded shard runs").instance();
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
        let opened = Opened { identity: identity.into(), recovery, instance, took: begun.elapsed() };
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

/// Runs the shard until the first scan for near tasks has ended. No caller can ask before, so the task that was due first is delivered
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
        let unowned = shard.is_unowned().then_some("another process has it");
        if let Some(why) = unowned.or(shard.refusal()) {
            return Err(OpenError::Taken { why: why.to_owned() });
        }
        if let Some(why) = shard.engine().and_then(Engine::failure) {
            return Err(OpenError::Near { why: why.to_string() });
        }
        // The store sends a message when it has something new. The wait ends after one second in any case.
        let _woken = inbox.recv_timeout(Duration::from_secs(1));
    }
}

fn secret() -> Result<[u8; 16], OpenError> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|error| OpenError::Random(error.to_string()))?;
    Ok(secret)
}

/// Returns what an operator should know about a recovery; `None` if everything was in order.
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
    let told: Vec<String> = torn.into_iter().chain(damaged).collect();
    (!told.is_empty()).then(|| told.join("; "))
}
