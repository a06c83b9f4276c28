//! The server: binds, accepts, stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tickwheel_postgres::{ClusterClock, Plan as DataPlan, PostgresOptions};
use tickwheel_push::webhook::Connections;
use tickwheel_queue::{Options, Queue};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::authorizer::Authorizer;
use crate::base::descriptors::Descriptors;
use crate::base::stopping::{self, Stop, Stopping};
use crate::config::{BackupPlan, Config, PostgresPlan, Store};
use crate::doors::plan::Plan;
use crate::doors::plans::plans;
use crate::events;
use crate::listen::addresses::Addresses;
use crate::listen::listener::{Listener, Shared};
use crate::listen::permits::Permits;
use crate::listen::socket::{Bound, ListenAt};
use crate::listen::tls::Tls;
use crate::service::admission::Admission;
use crate::service::app::App;
use crate::service::background::Background;
use crate::service::backups::{BackupDir, Backups, NoBackups, StopBackups};
use crate::service::drain::Drain;
use crate::service::jobs::keeper::Jobs;
use crate::service::lifecycle;
use crate::service::observed::Observed;
use crate::service::supervisor::{Running, Supervisor};
use crate::start_error::StartError;
use crate::targets::{Outside, Targets};
use crate::telemetry::notices::{self, Notices};
use crate::telemetry::serving;

/// A server that has its port and its tasks, and waits to be [`run`](Server::run).
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tickwheel_server::{Config, Server, Store};
///
/// let server = Server::bind(Config::new(Store::Dir("tickwheel-data".into()))).await?;
/// println!("listening {}", server.url());
/// server.run(async { drop(tokio::signal::ctrl_c().await) }).await;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    doors: Vec<OpenDoor>,
    app: Arc<App>,
    queue: Queue,
    jobs: Jobs,
    targets: Targets,
    tls: Option<Tls>,
    stop: Stop,
    connections: Arc<AtomicUsize>,
    stop_grace: Duration,
    notices: Notices,
    backup_every: Option<Duration>,
    _stop_backups: StopBackups,
}

/// A door whose listener is open.
struct OpenDoor {
    name: &'static str,
    at: ListenAt,
    listener: Listener,
}

/// A door whose socket is bound, and that accepts no connection yet.
struct BoundDoor {
    plan: Box<dyn Plan>,
    tls: Option<Tls>,
    bound: Bound,
}

impl BoundDoor {
    /// Binds the socket of a door; `None`: the door stays closed.
    async fn take(plan: Box<dyn Plan>, tls: Option<&Tls>) -> Result<Option<Self>, StartError> {
        let tls = plan.tls(tls)?;
        let Some(listen) = plan.listen() else { return Ok(None) };
        match Bound::take(listen).await {
            Ok(bound) => Ok(Some(Self { plan, tls, bound })),
            Err(source) => Err(plan.refused(source)),
        }
    }

    /// Opens the door. Its clients wait until the server runs.
    fn open(self, app: &Arc<App>, shared: &Shared) -> Result<OpenDoor, StartError> {
        let Self { plan, tls, bound } = self;
        let opened = bound.open().and_then(|socket| Ok((socket.place()?, socket)));
        let (at, socket) = opened.map_err(|source| plan.refused(source))?;
        let door = plan.open(Arc::clone(app), &at);
        let name = door.name();
        Ok(OpenDoor { name, at, listener: Listener::new(socket, tls, door, shared.clone()) })
    }
}

impl Server {
    /// Binds the port, opens the store, and listens.
    ///
    /// Connections are refused until the recovery of the store is done, which takes time in proportion to the live
    /// tasks.
    ///
    /// # Errors
    /// [`StartError`]. In this case nothing is left open.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let plans = plans(&config);
        Self::with_doors(config, plans).await
    }

    /// Like [`bind`](Self::bind), with these doors.
    pub(crate) async fn with_doors(config: Config, plans: Vec<Box<dyn Plan>>) -> Result<Self, StartError> {
        config.check()?;
        let tls = config.tls.clone().map(Tls::open).transpose()?;
        if let Some(directory) = &config.console_dir {
            let place = directory.join("index.html");
            std::fs::read(&place).map_err(|source| StartError::ConsoleDir { place, source })?;
        }
        let outside = Outside::open(&config.push)?;
        let token_file = config.token_file.clone().unwrap_or_default();
        let authorizer = Authorizer::open(config.tokens.clone(), config.token_file.clone())
            .map_err(|source| StartError::Tokens { place: token_file, source })?;
        let figures = plans.iter().filter_map(|plan| plan.figures()).collect();
        // The sockets are bound now and listen later. So a port that is in use is found before a long recovery, and no
        // client connects during it.
        let mut bound = Vec::new();
        for plan in plans {
            bound.extend(BoundDoor::take(plan, tls.as_ref()).await?);
        }
        let directory = match &config.store {
            // The path is absolute, because readers of the log do not know the working directory.
            Store::Dir(directory) => {
                Some(std::path::absolute(directory).unwrap_or_else(|_| directory.clone()))
            }
            Store::Memory | Store::Postgres(_) => None,
        };
        let no_files = match config.store {
            Store::Memory => NoBackups::InMemory,
            Store::Postgres(_) => NoBackups::InDatabase,
            Store::Dir(_) => NoBackups::NoDirectory,
        };
        let backup_dir = open_backups(config.backups.as_ref(), directory.as_deref(), no_files).await?;
        let notices = Notices::new();
        let options =
            notices.of(Queue::options().ack_level(config.ack_level).slow_commit(config.slow_commit));
        let options = config.clock_max_ahead.into_iter().fold(options, Options::clock_max_ahead);
        let options = match (config.virtual_clock, config.virtual_clock_at) {
            (false, _) => options,
            (true, None) => options.virtual_clock(),
            (true, Some(start)) => options.virtual_clock_at(start),
        };
        let options = match &config.store {
            // The data set in the database has its number of shards.
            Store::Postgres(_) => options,
            Store::Dir(_) | Store::Memory => config.shards.into_iter().fold(options, Options::shards),
        };
        if let Some(directory) = &directory {
            lifecycle::say_opening(directory);
        }
        let clock = if config.virtual_clock { ClusterClock::Virtual } else { ClusterClock::Real };
        let place = Place {
            shards: config.shards,
            clock,
            address: config.listen.to_string(),
            lax_json: config.lax_json,
        };
        let queue = open(config.store, options, place).await?;
        lifecycle::say_started(&queue, directory.as_deref()).await;
        let data = directory.clone().unwrap_or_default();
        let folders =
            directory.iter().map(PathBuf::as_path).chain(backup_dir.as_ref().ok().map(BackupDir::path));
        for warning in folders.filter_map(tickwheel_queue::warning_of_others) {
            tracing::warn!(event = events::DOUBTFUL, "{warning}");
        }
        let (stop, stopping) = stopping::signal();
        let plan = config.backups.as_ref();
        let keep = plan.and_then(|plan| plan.keep).map(usize::from);
        let backup_every = plan.and_then(|plan| plan.every).filter(|_| backup_dir.is_ok());
        let backups = keep_backups(queue.clone(), stopping.clone(), backup_dir, keep, data).await;
        let kept = config.limits.connections_kept;
        // Only the shards of a directory have files.
        let shards = directory.as_ref().map_or(0, |_| usize::try_from(queue.shards()).unwrap_or(usize::MAX));
        let descriptors = Descriptors::of_process(config.connections_max, kept, shards);
        let outside = outside.within(Connections::new(descriptors.webhooks));
        let admission = Admission::new(authorizer, config.levels, config.lax_json, &config.limits);
        let observed = Observed::new(figures, config.spans, config.console);
        let supervisor = Supervisor::new(stopping.clone());
        let jobs = Jobs::new(queue.clone(), stopping.clone(), supervisor.clone(), &config.limits);
        let targets = Targets::new(&queue, outside);
        let (of_jobs, of_targets) = (jobs.clone(), targets.clone());
        let background = Background::new(of_jobs, backups, of_targets, supervisor, stopping.clone());
        let app = Arc::new(App::new(queue.clone(), admission, observed, background));
        // Jobs go on before a door opens. If they cannot be read yet, the background tries again.
        let _later = jobs.look().await;
        let connections = Arc::default();
        let shared = Shared {
            permits: Permits::new(descriptors.clients, kept),
            addresses: Addresses::new(config.connections_per_address_max),
            stopping,
            open: Arc::clone(&connections),
        };
        let opened: Result<Vec<_>, _> = bound.into_iter().map(|door| door.open(&app, &shared)).collect();
        let doors = match opened {
            Ok(doors) => doors,
            Err(error) => {
                // The start has failed already. If the store does not close well, it recovers at the next start.
                close(queue).await;
                return Err(error);
            }
        };
        Ok(Self {
            doors,
            tls,
            stop,
            connections,
            stop_grace: config.stop_grace,
            notices,
            _stop_backups: StopBackups(app.background.backups().clone()),
            backup_every,
            app,
            queue,
            jobs,
            targets,
        })
    }

    /// The address of the door with this name, with the port that the system chose: `http`, or `beanstalk` for
    /// clients of beanstalkd. `None`: the door is closed.
    #[must_use]
    pub fn door(&self, name: &str) -> Option<&ListenAt> {
        self.doors.iter().find(|door| door.name == name).map(|door| &door.at)
    }

    /// The address of the HTTP door, with the port that the system chose.
    #[must_use]
    pub fn local_addr(&self) -> &ListenAt {
        &self.doors[0].at
    }

    /// The URL for clients: `http://127.0.0.1:8463`, `https://127.0.0.1:8463` or `unix:/run/tickwheel.sock`.
    #[must_use]
    pub fn url(&self) -> String {
        match self.local_addr() {
            at @ ListenAt::Unix(_) => at.to_string(),
            at @ ListenAt::Tcp(_) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                format!("{scheme}://{at}")
            }
        }
    }

    /// The switch that makes the server take no new tasks.
    #[must_use]
    pub fn drain(&self) -> Drain {
        self.app.admission.drain().clone()
    }

    /// The queue that this server serves, for a program that uses both.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Serves until `shutdown` completes, then stops gracefully.
    ///
    /// A stop has these steps. The server accepts no new connections. Waits of workers end with an empty answer. Calls
    /// under way are answered, for at most [`Config::stop_grace`]. Leases are stored, so that workers may finish after
    /// a restart. The store is closed. If its disk takes longer than the same time, a thread is left behind that waits
    /// for it. Dropping the future does not wait: connections are cut off, and the queue is closed a moment later, on
    /// a thread of the runtime.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        // The targets begin in the background, so that the doors do not wait for them: a target that does harm can be paused after each start.
        let (background, url) = (self.background(), self.url());
        let Self {
            doors, app, queue, targets, stop, connections, stop_grace, notices, _stop_backups, ..
        } = self;
        let mut open = JoinSet::new();
        for (place, OpenDoor { name, at, listener }) in doors.into_iter().enumerate() {
            let listen = if place == 0 { url.clone() } else { at.to_string() };
            tracing::info!(event = events::LISTENING, door = name, listen, "listening");
            let supervisor = app.background.supervisor().clone();
            open.spawn(async move { supervisor.door(name, listener.run(stop_grace)).await });
        }
        shutdown.await;
        let count = connections.load(Ordering::Relaxed);
        stop.give();
        let stopped = lifecycle::Stop::begin(count);
        app.background.backups().stop_all();
        let targets = tokio::spawn(async move { targets.stop(stop_grace).await });
        // Each listener ends within the grace. Tasks that its clients hold are given back before the queue closes.
        while open.join_next().await.is_some() {}
        // Each target ends within the grace, too. A target that still waits for the end of the one before it is left alone: its queue
        // closes.
        let _ = timeout(stop_grace, targets).await;
        // The backup ends after its current piece. If the disk takes no more, the unfinished part is removed at the
        // next start.
        if timeout(stop_grace, app.background.backups().ended()).await.is_err() {
            tracing::warn!(
                event = events::BACKUP_NOT_ENDED,
                waited_ms = notices::ms(stop_grace),
                "stopped without waiting any longer for a backup to end"
            );
        }
        drop(background);
        // A disk that takes no more could delay the storing of the leases for ever.
        let closed = timeout(stop_grace, close(queue)).await.is_ok();
        notices.write_rest();
        stopped.end(closed);
    }

    /// Starts the background tasks. They end when the result is dropped.
    fn background(&self) -> JoinSet<()> {
        let (app, mut tasks) = (&self.app, JoinSet::new());
        let background = &app.background;
        let supervisor = background.supervisor();
        keep(&mut tasks, supervisor, "notices", self.notices.clone(), Notices::write);
        keep(&mut tasks, supervisor, "shards", self.queue.clone(), serving::watch);
        keep(&mut tasks, supervisor, "jobs", self.jobs.clone(), Jobs::keep_up);
        keep(&mut tasks, supervisor, "targets", self.targets.clone(), Targets::keep_up);
        keep(&mut tasks, supervisor, "tokens", Arc::clone(app.admission.authorizer()), Authorizer::keep_up);
        if let Some(tls) = self.tls.clone() {
            keep(&mut tasks, supervisor, "certificates", tls, Tls::keep_up);
        }
        if let Some(every) = self.backup_every {
            keep(&mut tasks, supervisor, "backups", background.backups().clone(), move |backups| {
                backups.keep_up(every)
            });
        }
        tasks
    }
}

/// Starts a background task that works with a clone of `of` each time it begins.
fn keep<T: Clone + Send + Sync + 'static, F: Future<Output = ()> + Send + 'static>(
    tasks: &mut JoinSet<()>,
    supervisor: &Supervisor,
    name: &'static str,
    of: T,
    run: impl Fn(T) -> F + Send + Sync + 'static,
) {
    let supervisor = supervisor.clone();
    let task: Running = Box::pin(async move { supervisor.keep(name, || run(of.clone())).await });
    tasks.spawn(task);
}

/// Does the work on a thread that may block, and passes its panic on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
}

/// Opens the directory of backups on a thread that may block; `Ok(Err)` says why there is no such directory.
async fn open_backups(
    plan: Option<&BackupPlan>,
    data: Option<&Path>,
    no_files: NoBackups,
) -> Result<Result<BackupDir, NoBackups>, StartError> {
    let Some(data) = data.map(Path::to_owned) else { return Ok(Err(no_files)) };
    let Some(place) = plan.map(|plan| plan.directory.clone()) else { return Ok(Err(NoBackups::NoDirectory)) };
    blocking(move || match BackupDir::open(&place, &data) {
        Ok(opened) => Ok(Ok(opened)),
        Err(source) => Err(StartError::Backups { place, source }),
    })
    .await
}

/// Reads the existing backups on a thread that may block. The data directory exists by now.
async fn keep_backups(
    queue: Queue,
    stopping: Stopping,
    place: Result<BackupDir, NoBackups>,
    keep: Option<usize>,
    data: PathBuf,
) -> Backups {
    blocking(move || Backups::new(queue, stopping, place.map(|place| place.of(&data)), keep)).await
}

/// The properties of a data set in a database, if the database has none yet, and the address that others are told.
struct Place {
    shards: Option<u32>,
    clock: ClusterClock,
    address: String,
    /// Whether JSON that some readers cannot read is taken.
    lax_json: bool,
}

/// Checks the payload of a row of the inbox as a request is checked.
fn row_payload(content_type: &str, payload: &[u8]) -> Result<(), String> {
    tickwheel_api::check_payload(content_type, payload).map_err(|refusal| refusal.to_string())
}

/// Opens the queue on a thread that may block, because recovery reads files or a database.
async fn open(store: Store, options: Options, place: Place) -> Result<Queue, StartError> {
    blocking(move || match store {
        Store::Dir(place) => options.open(&place).map_err(|source| StartError::Open { place, source }),
        Store::Memory => {
            options.open_memory().map_err(|source| StartError::Open { place: "memory".into(), source })
        }
        Store::Postgres(PostgresPlan { url, node, migrate }) => {
            let Place { shards, clock, address, lax_json } = place;
            let usual = PostgresOptions::new(url);
            let plan = DataPlan { shards, clock, migrates: migrate, ..usual.plan };
            let payload_check = if lax_json { usual.payload_check } else { row_payload };
            let shards = PostgresOptions { plan, name: node, address, payload_check, ..usual }.connect()?;
            options
                .open_shards(shards)
                .map_err(|source| StartError::Open { place: "the database".into(), source })
        }
    })
    .await
}

/// Closes the queue on a thread that may block.
async fn close(queue: Queue) {
    blocking(move || queue.close()).await;
}
