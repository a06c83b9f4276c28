//! The server: binds, accepts, stops.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tickwheel_api::Problem;
use tickwheel_queue::{Options, Queue};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::access::guard::Guard;
use crate::access::host::Hosts;
use crate::base::stopping::{self, Stop, Stopping};
use crate::config::{BackupPlan, Beanstalk, Config, Store};
use crate::doors::beanstalk::{Desk, DeskOptions, Listener};
use crate::doors::http::front::Front;
use crate::doors::http::routes::routes;
use crate::doors::http::wire::{self, Timeouts};
use crate::events;
use crate::listen::addresses::Addresses;
use crate::listen::places::{Permit, Places};
use crate::listen::socket::{Bound, Came, ListenAt, Opened};
use crate::listen::standing::Standing;
use crate::listen::tls::{Begun, Tls};
use crate::service::app::App;
use crate::service::backups::{BackupDir, Backups, IN_MEMORY, NO_DIR, StopBackups};
use crate::service::drain::Drain;
use crate::service::lifecycle;
use crate::start_error::StartError;
use crate::telemetry::notices::{self, Notices};

/// Limits of time on a connection, real time on a virtual clock too.
const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(5),
    idle: Duration::from_secs(60),
    write: Duration::from_secs(30),
    linger: Duration::from_secs(2),
};
/// Open files that are not connections being served: the store's, the runtime's, the standard streams, refusals.
const FILES_RESERVED: u64 = 96;
/// Connections beyond the limit that are told so; more are closed without a word, so that a flood costs nothing.
const REFUSALS_MAX: usize = 32;
/// After a failed accept. It fails when the system is out of something, and trying again at once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
    door: Opened,
    local_addr: ListenAt,
    queue: Queue,
    front: Arc<Front>,
    guard: Arc<Guard>,
    tls: Option<Tls>,
    stop: Stop,
    stopping: Stopping,
    places: Places,
    addresses: Addresses,
    stop_grace: Duration,
    beanstalk: Option<(Listener, Arc<Desk>)>,
    draining: Drain,
    notices: Notices,
    backups: Backups,
    backup_every: Option<Duration>,
    _stop_backups: StopBackups,
}

impl Server {
    /// Takes the port, opens the store, and listens.
    ///
    /// Connections are refused until the store has recovered, which takes time in proportion to the live tasks.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left open then.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let listen = config.listen.clone();
        config.check()?;
        let tls = config.tls.map(Tls::open).transpose()?;
        let client_ca = config.beanstalk.as_ref().and_then(|door| door.client_ca.as_ref());
        let beanstalk_tls = match (&tls, client_ca) {
            (Some(tls), Some(client_ca)) => Some(tls.for_clients_of(client_ca)?),
            _ => None,
        };
        let refused = |source| StartError::Listen { listen: listen.clone(), source };
        let place = config.token_file.clone().unwrap_or_default();
        let guard = Guard::open(config.tokens, config.token_file);
        let guard = Arc::new(guard.map_err(|source| StartError::Tokens { place, source })?);
        // Bound but not yet listening: a port that is taken is found before a long recovery, and nobody gets in during it.
        let bound = Bound::take(&listen).await.map_err(refused)?;
        let door = match &config.beanstalk {
            Some(door) => {
                Some((Bound::take(&door.listen).await.map_err(|source| no_door(door, source))?, door))
            }
            None => None,
        };
        let directory = match &config.store {
            // As it is found from anywhere: the log is read elsewhere.
            Store::Dir(directory) => {
                Some(std::path::absolute(directory).unwrap_or_else(|_| directory.clone()))
            }
            Store::Memory => None,
        };
        let backup_dir = open_backups(config.backups.as_ref(), directory.as_deref()).await?;
        let notices = Notices::new();
        let options =
            notices.of(Queue::options().ack_level(config.ack_level).slow_commit(config.slow_commit));
        if let Some(directory) = &directory {
            lifecycle::say_opening(directory);
        }
        let queue = open(config.store, config.virtual_clock, options).await?;
        let listening = bound.open().and_then(|door| Ok((door.place()?, door)));
        let (local_addr, door_of_http) = match listening {
            Ok(listening) => listening,
            Err(source) => {
                // The start has failed already; a store that does not close well recovers at the next.
                close(queue).await;
                return Err(refused(source));
            }
        };
        lifecycle::say_started(&queue, directory.as_deref()).await;
        let data = directory.clone().unwrap_or_default();
        let folders =
            directory.iter().map(PathBuf::as_path).chain(backup_dir.as_ref().ok().map(BackupDir::path));
        for warning in folders.filter_map(tickwheel_queue::warning_of_others) {
            tracing::warn!(event = events::DOUBTFUL, "{warning}");
        }
        let (stop, stopping) = stopping::signal();
        let app =
            App::new(queue.clone(), stopping.clone(), config.levels, config.spans.clone(), &config.limits);
        let plan = config.backups.as_ref();
        let keep = plan.and_then(|plan| plan.keep).map(usize::from);
        let backup_every = plan.and_then(|plan| plan.every).filter(|_| backup_dir.is_ok());
        let backups = keep_backups(queue.clone(), stopping.clone(), backup_dir, keep, data).await;
        let app = Arc::new(App { lax_json: config.lax_json, backups: backups.clone(), ..app });
        let (refusals, requests) = (Arc::clone(&app.refusals), Arc::clone(&app.requests));
        let draining = app.draining.clone();
        if let Err(problem) = app.jobs.resume().await {
            tracing::warn!(event = events::JOBS_STAND_STILL, %problem, "failed to resume jobs from before the restart; they continue after the next start");
        }
        let front = Arc::new(Front::new(
            routes(Arc::clone(&app)),
            Hosts::of(&local_addr, tls.is_some(), &config.allow_hosts),
            Arc::clone(&guard),
            refusals,
            requests,
            config.spans,
            config.access_log,
        ));
        let kept = config.limits.connections_kept;
        let places = Places::new(connections_allowed(config.connections_max, kept), kept);
        let addresses = Addresses::new(config.connections_per_address_max);
        let beanstalk = match door {
            Some((bound, door)) => {
                let options = DeskOptions {
                    job_bytes_max: door.job_bytes_max,
                    namespace: door.namespace.clone(),
                    watched_bytes_max: config.limits.watched_bytes,
                };
                let desk = Desk::new(&app, options);
                match bound.open() {
                    Ok(opened) => {
                        let listener =
                            Listener::new(opened, beanstalk_tls, places.clone(), addresses.clone());
                        Some((listener, Arc::new(desk)))
                    }
                    Err(source) => {
                        close(queue).await;
                        return Err(no_door(door, source));
                    }
                }
            }
            None => None,
        };
        Ok(Self {
            door: door_of_http,
            local_addr,
            queue,
            front,
            guard,
            tls,
            stop,
            stopping,
            places,
            addresses,
            stop_grace: config.stop_grace,
            beanstalk,
            draining,
            notices,
            _stop_backups: StopBackups(backups.clone()),
            backups,
            backup_every,
        })
    }

    /// Where it listens, with the port that the system chose.
    #[must_use]
    pub fn local_addr(&self) -> &ListenAt {
        &self.local_addr
    }

    /// Where clients find it: `http://127.0.0.1:8463`, the same with `https`, or `unix:/run/tickwheel.sock`.
    #[must_use]
    pub fn url(&self) -> String {
        if let ListenAt::Unix(_) = self.local_addr {
            return self.local_addr.to_string();
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.local_addr)
    }

    /// Where clients of beanstalkd find it, with the port that the system chose, if there is a door for them.
    #[must_use]
    pub fn beanstalk(&self) -> Option<ListenAt> {
        self.beanstalk.as_ref().and_then(|(listener, _)| listener.place().ok())
    }

    /// What tells it to take no new tasks.
    #[must_use]
    pub fn drain(&self) -> Drain {
        self.draining.clone()
    }

    /// The queue that it serves, for a program that runs both.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Serves until `shutdown` completes, then stops gracefully.
    ///
    /// Stopping, in this order: no new connections; waits of workers end with an empty answer; calls under way are answered,
    /// for as long as [`Config::stop_grace`]; leases are written down, so that workers may finish across a restart; the store
    /// is closed, unless its disk keeps it waiting for as long again: then a thread is left behind that goes on to wait. Dropping the
    /// future waits for no call, but closes the queue where it is dropped, however long its disk takes.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let beanstalk = self.beanstalk().map(tracing::field::display);
        tracing::info!(event = events::LISTENING, listen = self.url(), beanstalk, "listening");
        let (mut connections, mut turned_away) = (JoinSet::new(), JoinSet::new());
        let mut shutdown = pin!(shutdown);
        let mut doors = JoinSet::new();
        if let Some((listener, desk)) = self.beanstalk.take() {
            doors.spawn(listener.run(desk, self.stop_grace));
        }
        let (guard, tls) = (Arc::clone(&self.guard), self.tls.clone());
        let mut tokens = pin!(guard.keep_up());
        let mut certificates = pin!(async {
            match &tls {
                Some(tls) => tls.keep_up().await,
                None => std::future::pending().await,
            }
        });
        let (backups, every) = (self.backups.clone(), self.backup_every);
        let mut schedule = pin!(async {
            match every {
                Some(every) => backups.keep_up(every).await,
                None => std::future::pending().await,
            }
        });
        let notices = std::mem::replace(&mut self.notices, Notices::new());
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = &mut schedule => {}
                () = &mut tokens => {}
                () = &mut certificates => {}
                () = notices.write() => {}
                accepted = self.door.accept() => match accepted {
                    Ok(came) => self.take(&mut connections, &mut turned_away, came),
                    Err(error) => {
                        tracing::warn!(event = events::ACCEPT_FAILED, %error, "accept failed");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                // Ended connections leave the set, so that their number is that of the open ones.
                Some(_) = connections.join_next() => {}
                Some(_) = turned_away.join_next() => {}
            }
        }
        drop(self.door);
        self.stop.give();
        let stop = lifecycle::Stop::begin(connections.len());
        self.backups.stop_all();
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(self.stop_grace, drained).await.is_err() {
            let cut_off = connections.len();
            tracing::warn!(
                event = events::STOP_CUT_OFF,
                connections = cut_off,
                "calls under way were cut off"
            );
            connections.shutdown().await;
        }
        // It bounds itself by the same grace; what its clients hold goes back before the queue is closed.
        while doors.join_next().await.is_some() {}
        // It ends after the piece that it is at; where the disk takes none any more, its part is removed at the next start.
        if timeout(self.stop_grace, self.backups.ended()).await.is_err() {
            tracing::warn!(
                event = events::BACKUP_NOT_ENDED,
                waited_ms = notices::ms(self.stop_grace),
                "stopped without waiting any longer for a backup to end"
            );
        }
        // A disk that takes no more may keep it from writing the leases down, for ever.
        let closed = timeout(self.stop_grace, close(self.queue)).await.is_ok();
        notices.write_rest();
        stop.end(closed);
    }

    /// Serves a connection, or refuses it if there are too many.
    fn take(&self, connections: &mut JoinSet<()>, turned_away: &mut JoinSet<()>, came: Came) {
        let from = match &came {
            Came::Tcp(_, from) => Some(from.ip()),
            Came::Unix(_) => None,
        };
        let standing = match Standing::find(&self.places, &self.addresses, from) {
            Ok(standing) => Arc::new(standing),
            Err(refusal) => return self.turn_away(turned_away, came, *refusal),
        };
        let id = standing.id();
        let (tls, front, stopping) = (self.tls.clone(), Arc::clone(&self.front), self.stopping.clone());
        let task = connections.spawn(async move {
            match came {
                Came::Tcp(socket, _) => serve(tls, socket, front, stopping, standing).await,
                Came::Unix(socket) => wire::serve(socket, front, TIMEOUTS, stopping, standing).await,
            }
        });
        Permit::closes(&self.places, id, task);
    }

    /// Says why, to as many at once as that is done for.
    fn turn_away(&self, turned_away: &mut JoinSet<()>, came: Came, problem: Problem) {
        // One address that comes again and again fills no log.
        tracing::debug!(why = %problem, "too many connections");
        self.front.refused(&problem);
        if turned_away.len() >= REFUSALS_MAX {
            return;
        }
        match came {
            // Over TLS a refusal would cost a handshake.
            Came::Tcp(socket, _) if self.tls.is_none() => {
                turned_away.spawn(wire::refuse(socket, problem, TIMEOUTS));
            }
            Came::Tcp(..) => {}
            Came::Unix(socket) => {
                turned_away.spawn(wire::refuse(socket, problem, TIMEOUTS));
            }
        }
    }
}

/// Serves a connection to its end.
async fn serve(
    tls: Option<Tls>,
    socket: TcpStream,
    front: Arc<Front>,
    stopping: Stopping,
    standing: Arc<Standing>,
) {
    let Some(tls) = tls else { return wire::serve(socket, front, TIMEOUTS, stopping, standing).await };
    let begun = tokio::select! {
        begun = tls.begin(socket) => begun,
        () = stopping.wait() => return,
    };
    match begun {
        Begun::Encrypted(socket) => wire::serve(socket, front, TIMEOUTS, stopping, standing).await,
        Begun::Plain(socket) => {
            let problem = Problem::needs_tls();
            front.refused(&problem);
            wire::refuse(socket, problem, TIMEOUTS).await;
        }
        Begun::Failed(error) => tracing::debug!(%error, "no handshake"),
    }
}

fn no_door(door: &Beanstalk, source: io::Error) -> StartError {
    StartError::ListenBeanstalk { listen: door.listen.clone(), source }
}

/// Takes the directory of backups where blocking is allowed; `Ok(Err)` says why there is none.
async fn open_backups(
    plan: Option<&BackupPlan>,
    data: Option<&Path>,
) -> Result<Result<BackupDir, &'static str>, StartError> {
    let Some(data) = data.map(Path::to_owned) else { return Ok(Err(IN_MEMORY)) };
    let Some(place) = plan.map(|plan| plan.directory.clone()) else { return Ok(Err(NO_DIR)) };
    let opening = tokio::task::spawn_blocking(move || {
        BackupDir::open(&place, &data).map_err(|source| StartError::Backups { place, source })
    });
    match opening.await {
        Ok(opened) => opened.map(Ok),
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Looks at the backups of before, where blocking is allowed. The data directory is there by now.
async fn keep_backups(
    queue: Queue,
    stopping: Stopping,
    place: Result<BackupDir, &'static str>,
    keep: Option<usize>,
    data: PathBuf,
) -> Backups {
    let looking = move || Backups::new(queue, stopping, place.map(|place| place.of(&data)), keep);
    match tokio::task::spawn_blocking(looking).await {
        Ok(backups) => backups,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Opens the queue where blocking is allowed: recovery reads files.
async fn open(store: Store, virtual_clock: bool, options: Options) -> Result<Queue, StartError> {
    let opening = tokio::task::spawn_blocking(move || {
        let options = if virtual_clock { options.virtual_clock() } else { options };
        match store {
            Store::Dir(dir) => options.open(&dir).map_err(|source| StartError::Open { place: dir, source }),
            Store::Memory => {
                options.open_memory().map_err(|source| StartError::Open { place: "memory".into(), source })
            }
        }
    });
    match opening.await {
        Ok(opened) => opened,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// Closes the queue where blocking is allowed.
async fn close(queue: Queue) {
    if let Err(panicked) = tokio::task::spawn_blocking(move || queue.close()).await {
        std::panic::resume_unwind(panicked.into_panic());
    }
}

/// As many connections as are wanted and as the limit of open files allows, at least one.
fn connections_allowed(wanted: usize, kept: usize) -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let allowed = usize::try_from(files.saturating_sub(FILES_RESERVED.saturating_add(kept as u64)))
        .unwrap_or(usize::MAX);
    if allowed < wanted {
        tracing::warn!(
            event = events::DOUBTFUL,
            wanted,
            allowed,
            "fewer connections than configured: the limit of open files is low"
        );
    }
    wanted.min(allowed).max(1)
}
