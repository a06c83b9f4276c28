//! Opens a queue with its [`Options`]: over a directory, in memory, or over another store.

pub(crate) mod options;
mod stores;

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwheel_engine::{Engine, ShardId, Timestamp, instance_of};
use tickwheel_store::{
    ClockMode, ClockNote, OpenError as StoreError, OpenStore, OpenedStore, QueueStore, RecoveryReport, Root,
    StoreOptions, WallClock,
};

use self::options::{NEAR_BYTES_MIN, OpenError, Opened, Options, SLOW_COMMIT_DEFAULT, VirtualStart};
use self::stores::{Directory, Memory};
use crate::backup::{Manifest, Source};
use crate::clock::time::Time;
use crate::handle::LockedRoot;
use crate::panics::Panics;
use crate::queue::Queue;
use crate::router::Router;
use crate::shard::Shard;
use crate::shard::health::Shared;
use crate::shard::inbox::InboxCalls;
use crate::spanning::shards::{ShardHandle, Shards};
use crate::thread::driver::Driver;
use crate::thread::mailbox::{Caller, Mailbox, Message, Signal};
use crate::thread::shard_thread::{SHARD_THREAD, ShardThread};
use crate::thread::watch::Watch;

impl Options {
    /// Opens the queue in `directory`, which is made if it does not exist. A directory of several shards has a folder for each of them
    /// (`0000`, `0001` and so on).
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Queue, OpenError> {
        self.check_shards()?;
        let mut options = StoreOptions::new(secret()?);
        if self.virtual_clock.is_some() {
            options.clock = ClockMode::Virtual;
        }
        options.ack_level = self.ack_level;
        options.log_file_bytes = self.log_file_bytes.unwrap_or(options.log_file_bytes);
        options.checkpoint_after_bytes =
            self.checkpoint_after_bytes.unwrap_or(options.checkpoint_after_bytes);
        let path = directory.as_ref();
        let Some(mut root) = Root::open(path, self.shards, &options)? else {
            let (path, root) = (path.to_owned(), path.to_owned());
            return self.open_stores(vec![Directory { path, root, options }]);
        };
        let mut stores = Vec::new();
        for (shard, directory) in root.directories() {
            let options = StoreOptions { shard, secret: secret()?, ..options.clone() };
            stores.push(Directory { path: directory, root: path.to_owned(), options });
        }
        let queue = self.open_stores(stores)?;
        root.made().map_err(StoreError::Io)?;
        // A root that was opened is no longer a backup. See the opening of a directory of one shard.
        let _absent = std::fs::remove_file(path.join(Manifest::FILE));
        Ok(queue.below(root))
    }

    /// Opens a queue without a directory. Its tasks are in memory only, and are gone when the queue is closed.
    ///
    /// # Errors
    /// [`OpenError::Random`], [`OpenError::Thread`], [`OpenError::Shards`].
    pub fn open_memory(self) -> Result<Queue, OpenError> {
        // The identity has random bytes of its own, so that it tells nothing about the secret that signs lease tokens.
        let shards = self.check_shards()?;
        let secret = secret()?;
        let identity = u128::from_be_bytes(self::secret()?);
        self.open_stores(shards.all().map(|shard| Memory { secret, identity, shard }).collect())
    }

    /// Opens the queue over another store, which keeps all tasks in one shard. The options that concern a directory have no effect.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_store<O: OpenStore>(self, store: O) -> Result<Queue, OpenError>
    where
        OpenError: From<O::Error>,
    {
        self.open_stores(vec![store])
    }

    /// Opens the queue over other stores, one for each shard, in the order of the numbers of the shards. The options that concern a directory
    /// have no effect.
    ///
    /// If the stores share their data with other processes, another process may have a shard. Then the queue is opened without the shard,
    /// refuses its calls, and takes it once it is free.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shards<O: OpenStore>(self, stores: Vec<O>) -> Result<Queue, OpenError>
    where
        OpenError: From<O::Error>,
    {
        self.open_stores(stores)
    }

    fn open_stores<O: OpenStore>(mut self, stores: Vec<O>) -> Result<Queue, OpenError>
    where
        OpenError: From<O::Error>,
    {
        let begun = Instant::now();
        let count = u32::try_from(stores.len()).unwrap_or(u32::MAX);
        let router = Router::new(count).ok_or(OpenError::Shards { shards: stores.len() })?;
        // All shards of the process share the memory for tasks.
        self.engine.near_bytes_max = (self.engine.near_bytes_max / u64::from(count)).max(NEAR_BYTES_MIN);
        let mut groups: Vec<Group<O::Store>> =
            (0..self.threads(stores.len())).map(|_| Group::new()).collect();
        let threads = groups.len();
        let mut opened = Vec::with_capacity(stores.len());
        for (index, (id, store)) in router.all().zip(stores).enumerate() {
            let mailbox = groups[index % threads].next_mailbox();
            let wake = mailbox.clone();
            let store = store.open(Box::new(move || {
                // The shard thread may have ended. Then no thread polls the store any more.
                let _gone = wake.signal(Signal::Store);
            }));
            opened.push((id, mailbox, store.map_err(|error| of_shard(id, error.into()))?));
        }
        let last_wall = opened.iter().map(|(_, _, store)| store.last_wall).max().unwrap_or_default();
        let shared = opened.first().and_then(|(_, _, store)| store.shared.clone());
        let notes: Vec<_> = opened.iter().filter_map(|(_, _, opened)| opened.store.clock_note()).collect();
        let mut time = self.time(last_wall, &notes, shared.as_ref().map(|shared| shared.wall.clone()));
        let ahead = time.ahead_at_start();
        if let Some(max) = self.clock_max_ahead.filter(|max| ahead > *max) {
            return Err(OpenError::ClockAhead { ahead_s: ahead.as_secs(), max_s: max.as_secs() });
        }
        let (calls, panics) = (Arc::new(AtomicU64::new(1)), Panics::default());
        let listener = self.listener.counted_by(panics.clone());
        let mut handles = Vec::with_capacity(opened.len());
        let mut found = Found::default();
        for (index, (id, mailbox, store)) in opened.into_iter().enumerate() {
            let OpenedStore { store, last_wall: _, identity, durability, recovery, directory, shared: _ } =
                store;
            let warned = recovery.as_ref().and_then(warning).map(Into::into);
            let shared = Arc::new(Shared::new(id, durability, time.is_virtual(), warned, panics.clone()));
            found.add(identity, recovery);
            let group = &mut groups[index % threads];
            group.shards.push((Shard::new(id, store, self.engine.clone(), time.now()), Arc::clone(&shared)));
            let source = Source::new(directory, durability);
            let caller = Caller::new(mailbox, Arc::clone(&calls), panics.clone());
            handles.push(ShardHandle { caller, shared, source });
        }
        let until = shared.is_some().then(|| Instant::now() + SHARED_LOAD_MAX);
        for group in &mut groups {
            group.load(&mut time, until)?;
        }
        let instance = shared.map_or_else(|| groups[0].instance(), |shared| instance_of(&shared.secret));
        let time = Arc::new(Mutex::new(time));
        let slow_commit = self.slow_commit.unwrap_or(SLOW_COMMIT_DEFAULT);
        let shards = Shards::new(router, handles);
        let root = LockedRoot::default();
        let mut threads = Vec::with_capacity(groups.len());
        for group in groups {
            let watch = || Watch::new(listener.clone(), slow_commit);
            let inbox = || InboxCalls::new(Arc::clone(&calls), listener.clone());
            match group.run(&time, &root, inbox, watch) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    shards.stop();
                    for thread in threads {
                        let _ended = JoinHandle::join(thread);
                    }
                    return Err(OpenError::Thread(error));
                }
            }
        }
        let Found { identity, recovery } = found;
        let opened = Opened { identity: identity.into(), recovery, instance, took: begun.elapsed() };
        Ok(Queue::new(shards, (time, panics), (threads, root), opened))
    }

    /// Returns the router for the number of shards that was asked for, or for one shard.
    fn check_shards(&self) -> Result<Router, OpenError> {
        let shards = self.shards.unwrap_or(1);
        Router::new(shards).ok_or(OpenError::Shards { shards: shards as usize })
    }

    /// Returns the number of threads that drive this many shards. A virtual clock moves on only while all shards are idle, so one thread
    /// drives all of them.
    fn threads(&self, shards: usize) -> usize {
        if self.virtual_clock.is_some() {
            return 1;
        }
        std::thread::available_parallelism().map_or(1, Into::into).min(shards)
    }

    fn time(&self, last: Timestamp, notes: &[ClockNote], source: Option<WallClock>) -> Time {
        match self.virtual_clock {
            None => Time::going_on(source, notes, last),
            Some(VirtualStart::At(start)) => Time::virtual_at(start.max(last)),
            Some(VirtualStart::Now) => Time::virtual_at(Time::real().now().wall.max(last)),
        }
    }
}

/// The shards that one thread will drive.
struct Group<S> {
    shards: Vec<(Shard<S>, Arc<Shared>)>,
    mailboxes: Vec<Mailbox>,
    thread: Sender<Message>,
    inbox: Receiver<Message>,
}

/// An opening waits this long for shards in a database that does not get on.
const SHARED_LOAD_MAX: Duration = Duration::from_secs(10);

impl<S: QueueStore + Send + 'static> Group<S> {
    fn new() -> Self {
        let (thread, inbox) = channel();
        Self { shards: Vec::new(), mailboxes: Vec::new(), thread, inbox }
    }

    /// Returns the mailbox of the next shard of the group.
    fn next_mailbox(&mut self) -> Mailbox {
        let mailbox = Mailbox::new(self.mailboxes.len(), self.thread.clone());
        self.mailboxes.push(mailbox.clone());
        mailbox
    }

    /// Runs the shards until the first scan of each for near tasks has ended. No caller can ask before, so the task that was due first is
    /// delivered first. Data that processes share is waited for `until` an instant, and a shard that another process has is not waited for: the
    /// health of the queue says why a shard does not serve.
    fn load(&mut self, time: &mut Time, until: Option<Instant>) -> Result<(), OpenError> {
        loop {
            let mut is_loaded = true;
            for (shard, shared) in &mut self.shards {
                let has_loaded = has_loaded(shard, time, until.is_some());
                is_loaded &= has_loaded.map_err(|error| of_shard(shard.id(), error))?;
                shared.update(shard, time.clock_status(), 0);
            }
            if is_loaded || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(());
            }
            // A store sends a message when it has something new. The wait ends after one second in any case.
            let _woken = self.inbox.recv_timeout(Duration::from_secs(1));
        }
    }

    /// Returns the instance number of the first shard, which is loaded.
    fn instance(&self) -> u32 {
        let (shard, _) = self.shards.first().expect("a thread has a shard");
        shard.engine().expect("a loaded shard runs").instance()
    }

    /// Starts the thread.
    fn run(
        self,
        time: &Arc<Mutex<Time>>,
        root: &LockedRoot,
        inbox: impl Fn() -> InboxCalls,
        watch: impl Fn() -> Watch,
    ) -> std::io::Result<JoinHandle<()>> {
        let drivers = self.shards.into_iter().zip(self.mailboxes).map(|((shard, shared), mailbox)| {
            Driver::new(shard, Arc::clone(time), mailbox, shared, inbox(), watch())
        });
        let thread = ShardThread::new(drivers.collect(), Arc::clone(time), self.inbox);
        let root = Arc::clone(root);
        std::thread::Builder::new().name(SHARD_THREAD.to_owned()).spawn(move || {
            thread.run();
            // The thread writes nothing any more, so it no longer needs the lock of the root.
            drop(root);
        })
    }
}

/// Says which shard could not be opened, if there are several.
fn of_shard(shard: ShardId, error: OpenError) -> OpenError {
    if shard.count() == 1 { error } else { OpenError::OfShard { shard, source: Box::new(error) } }
}

/// Gives the shard a turn. Returns whether its first scan for near tasks has ended, or another process has the shard.
fn has_loaded<S: QueueStore>(
    shard: &mut Shard<S>,
    time: &mut Time,
    is_shared: bool,
) -> Result<bool, OpenError> {
    if shard.is_serving() {
        return Ok(true);
    }
    shard.turn(time.now(), &mut Vec::new());
    shard.take_answers(&mut Vec::new());
    if is_shared && shard.is_unowned() {
        return Ok(true);
    }
    let unowned = shard.is_unowned().then_some("another process has it");
    if let Some(why) = unowned.or(shard.refusal()) {
        return Err(OpenError::Taken { why: why.to_owned() });
    }
    if let Some(why) = shard.engine().and_then(Engine::failure) {
        return Err(OpenError::Near { why: why.to_string() });
    }
    Ok(shard.is_serving())
}

/// The report of the openings of all shards.
#[derive(Default)]
struct Found {
    /// The identity of the first shard.
    identity: String,
    recovery: Option<RecoveryReport>,
}

impl Found {
    fn add(&mut self, identity: String, recovery: Option<RecoveryReport>) {
        if self.identity.is_empty() {
            self.identity = identity;
        }
        let Some(found) = recovery else { return };
        let Some(sum) = &mut self.recovery else {
            self.recovery = Some(found);
            return;
        };
        sum.created &= found.created;
        sum.tasks += found.tasks;
        sum.frames += found.frames;
        sum.checkpoint = sum.checkpoint.take().or(found.checkpoint);
        sum.torn = sum.torn.take().or(found.torn);
        sum.damaged_checkpoint = sum.damaged_checkpoint.take().or(found.damaged_checkpoint);
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
