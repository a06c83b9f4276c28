//! [`PostgresOptions`]: opens the stores of all shards of a data set.

use std::convert::Infallible;
use std::sync::Arc;

use tickwheel_engine::ShardId;
use tickwheel_store::{Durability, HistoryLimits, OpenStore, OpenedStore, SharedData, Wake, WallClock};

use crate::database::NodeEntry;
use crate::process::node::Node;
use crate::process::run::Threads;
use crate::shard::inbox_row::PayloadCheck;
use crate::shard::store::PostgresStore;
use crate::sql::{Cluster, ClusterClock, Plan, Postgres, SetupError, hex, random};

/// Connections that commit. The shards are spread over them.
const COMMIT_WORKERS: usize = 4;
/// Connections that read: one for pages, counts and the history, and the others for look-ups.
const READERS: usize = 3;

/// How the process takes part in a data set on PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The URL of the database, such as `postgres://tickwheel@db1,db2/tickwheel`. What it does not say comes from the environment, as with
    /// `psql`.
    pub url: String,
    /// The data set that is made if there is none.
    pub plan: Plan,
    /// The name of the process, for people.
    pub name: String,
    /// Where the process is reached, for people.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// How many ended tasks each shard remembers.
    pub history: HistoryLimits,
    /// The check of each payload that comes by the inbox. [`new`](Self::new) takes all: JSON is nothing to this crate.
    pub payload_check: PayloadCheck,
}

impl PostgresOptions {
    /// Returns the options for this database, with a real clock. The lease of a new data set is 5 s.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        let plan = Plan { shards: None, clock: ClusterClock::Real, lease_ms: 5_000, migrates: true };
        Self {
            url: url.into(),
            plan,
            name: "tickwheel".to_owned(),
            address: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            history: HistoryLimits::default(),
            payload_check: |_, _| Ok(()),
        }
    }

    /// Connects to the database, makes the data set if there is none, and starts the threads of this process. Returns the stores of all
    /// shards, to be opened in their order.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn connect(self) -> Result<Vec<OpenShard>, SetupError> {
        let Self { url, plan, name, address, version, history, payload_check } = self;
        let postgres = Postgres::at(&url)?;
        let cluster = postgres.prepare(&plan)?;
        let node = Arc::new(Node::new(cluster.lease_ms, COMMIT_WORKERS, READERS, Box::new(boot_ns)));
        // The first random name also shows that the operating system has random bytes.
        random::<8>()?;
        let entry = NodeEntry { incarnation: String::new(), name, address, version };
        let random_name = || random::<8>().map(|bytes| hex(&bytes)).unwrap_or_default();
        let threads = Threads::start(&Arc::new(postgres), &node, entry, random_name);
        let process = Arc::new(Process { node, cluster, _threads: threads.map_err(SetupError::Start)? });
        let shards =
            (0..process.cluster.shards).filter_map(|number| ShardId::new(number, process.cluster.shards));
        let open = |shard| OpenShard {
            shard,
            process: Arc::clone(&process),
            history,
            payload_check,
            acquired_page: None,
            rollup_batches: None,
        };
        Ok(shards.map(open).collect())
    }
}

/// The parts that the stores of this process share. Its threads end with the last store.
#[derive(Debug)]
struct Process {
    node: Arc<Node>,
    cluster: Cluster,
    _threads: Threads,
}

/// A shard whose store can be opened.
#[derive(Debug)]
pub struct OpenShard {
    shard: ShardId,
    process: Arc<Process>,
    history: HistoryLimits,
    payload_check: PayloadCheck,
    acquired_page: Option<usize>,
    rollup_batches: Option<u64>,
}

impl OpenShard {
    /// Sets how many entries a page of the first answer to a new owner has. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_acquired_page(mut self, entries: usize) -> Self {
        self.acquired_page = Some(entries);
        self
    }

    /// Sets after how many batches they are rolled up. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_rollup_batches(mut self, batches: u64) -> Self {
        self.rollup_batches = Some(batches);
        self
    }
}

impl OpenStore for OpenShard {
    type Store = PostgresStore;
    type Error = Infallible;

    fn open(self, wake: Wake) -> Result<OpenedStore<PostgresStore>, Infallible> {
        let Self { shard, process, history, payload_check, acquired_page, rollup_batches } = self;
        let Process { node, cluster, .. } = &*process;
        let completions = node.register(shard.number(), wake);
        let of_clock = Arc::clone(node);
        let wall = WallClock::new(move || {
            let clock = of_clock.clock();
            clock.span(of_clock.now_ns())
        });
        let store = PostgresStore::new(shard, Arc::clone(node), completions);
        let store = store.with_history(history).with_payload_check(payload_check);
        let store = acquired_page.into_iter().fold(store, PostgresStore::with_acquired_page);
        let store = rollup_batches.into_iter().fold(store, PostgresStore::with_rollup_batches);
        Ok(OpenedStore {
            store: store.kept_alive_by(Arc::clone(&process)),
            last_wall: cluster.last_wall,
            identity: cluster.identity.clone(),
            durability: Durability::Fsync,
            recovery: None,
            directory: None,
            shared: Some(SharedData { secret: cluster.secret, wall }),
        })
    }
}

/// Reads the boot-time clock (ns). Without a boot-time clock the monotonic clock serves. It may stand still while the machine sleeps, and
/// another process may then take the shards unnoticed until the next heartbeat.
fn boot_ns() -> u64 {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(target_os = "linux")]
    let time = clock_gettime(ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
