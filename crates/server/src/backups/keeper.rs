//! [`Backups`]: starts backups, follows them, and knows how the last ones went.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{BackupBody, BackupPhase, BackupState, Problem};
use tickwheel_queue::backup::{BackupPhase as Phase, BackupWatch, system_now};
use tickwheel_queue::{BackupError, BackupReport, Queue, Timestamp};
use tokio::sync::watch;

use super::figures::BackupFigures;
use super::name::name_of;
use super::place::{BackupDir, with_report};
use super::schedule;
use crate::events;
use crate::problem::Refusal;
use crate::stopping::Stopping;

/// Backups that failed or were stopped, and can still be looked at.
const OVER_MAX: usize = 20;
/// The thread that waits for a backup and sees to what comes after it.
const KEEPER_THREAD: &str = "tickwheel-backups";

/// Why a server makes no backups.
pub(crate) const NO_DIR: &str = "the server was started without a place for backups";
/// The same of one that has nothing to copy.
pub(crate) const IN_MEMORY: &str = "the tasks of this server are kept in memory, so there is nothing to copy";

/// Starts backups, one at a time, and knows how they go. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Backups(Arc<Inner>);

struct Inner {
    queue: Queue,
    stopping: Stopping,
    /// Where they go, or why nowhere.
    place: Result<BackupDir, &'static str>,
    /// How many whole ones stay; `None`: all.
    keep: Option<usize>,
    state: Mutex<State>,
    /// Whether one is under way, for those that wait for its end.
    running: watch::Sender<bool>,
}

struct State {
    under_way: Option<UnderWay>,
    /// Those that failed or were stopped, the oldest first.
    over: VecDeque<BackupBody>,
    /// The highest number that was given.
    last_id: u64,
    figures: BackupFigures,
}

struct UnderWay {
    id: u64,
    begun_at: Timestamp,
    watch: BackupWatch,
}

/// What became of a wish for a backup.
#[derive(Debug)]
pub(super) enum Begun {
    /// It is under way.
    Now(BackupBody),
    /// Another one is, with this number.
    UnderWay(u64),
}

impl Backups {
    pub(crate) fn new(
        queue: Queue,
        stopping: Stopping,
        place: Result<BackupDir, &'static str>,
        keep: Option<usize>,
    ) -> Self {
        let last = place.as_ref().ok().and_then(BackupDir::newest);
        let last_id = place.as_ref().ok().and_then(|place| place.ids().last().copied()).unwrap_or_default();
        let figures = BackupFigures::of_earlier(last.as_ref());
        let state = Mutex::new(State { under_way: None, over: VecDeque::new(), last_id, figures });
        Self(Arc::new(Inner { queue, stopping, place, keep, state, running: watch::Sender::new(false) }))
    }

    fn place(&self) -> Result<&BackupDir, Refusal> {
        self.0.place.as_ref().map_err(|why| Problem::no_backup_dir(why).into())
    }

    /// Begins one, unless one is under way. Looks at the directory: call it where that is allowed.
    ///
    /// # Errors
    /// There is no place for it, the server stops, or the system gives no thread.
    pub(super) fn begin(&self) -> Result<Begun, Refusal> {
        let place = self.place()?;
        if self.0.stopping.is_given() {
            return Err(Problem::stopping().into());
        }
        let taken = place.ids().last().copied().unwrap_or_default();
        let (body, watch) = {
            let mut state = self.state();
            if let Some(under_way) = &state.under_way {
                return Ok(Begun::UnderWay(under_way.id));
            }
            let begun_at = system_now();
            // By the clock, but never a number that was given before: the clock may have been set back.
            let id = begun_at.as_tick().max(state.last_id.max(taken) + 1);
            state.last_id = id;
            let watch = BackupWatch::new();
            let under_way = UnderWay { id, begun_at, watch: watch.clone() };
            let body = shown(&under_way);
            state.under_way = Some(under_way);
            (body, watch)
        };
        let id = body.id;
        self.0.running.send_replace(true);
        let backups = self.clone();
        let work = move || {
            // Also if it panics, the next one can begin.
            let end = End(&backups, id);
            let made = backups.make(id, &watch);
            end.with(made);
        };
        tracing::info!(event = events::BACKUP_BEGUN, id, name = body.name, "a backup is begun");
        if let Err(error) = std::thread::Builder::new().name(KEEPER_THREAD.to_owned()).spawn(work) {
            self.over(id, Err(BackupError::Thread(error)));
            return Err(Problem::internal("the system gives no thread for a backup").into());
        }
        Ok(Begun::Now(body))
    }

    /// Begins one because it is due. What becomes of it stands in the log.
    pub(super) fn begin_by_schedule(&self) {
        match self.begin() {
            Ok(Begun::Now(_)) => {}
            Ok(Begun::UnderWay(id)) => {
                self.state().figures.leave_out();
                tracing::warn!(
                    event = events::BACKUP_LEFT_OUT,
                    under_way = id,
                    "a backup was due and is left out, for another is under way"
                );
            }
            Err(refusal) => {
                let problem = Problem::from(refusal);
                tracing::error!(event = events::BACKUP_FAILED, %problem, "a backup was due and cannot be begun");
            }
        }
    }

    fn make(&self, id: u64, watch: &BackupWatch) -> Result<BackupReport, BackupError> {
        let Ok(place) = &self.0.place else { return Err(BackupError::InMemory) };
        place.clear();
        let report = self.0.queue.backup_gently(place.target(id), watch)?;
        if let Some(keep) = self.0.keep {
            place.keep(keep);
        }
        Ok(report)
    }

    /// It is over, and told of.
    fn over(&self, id: u64, made: Result<BackupReport, BackupError>) {
        let mut state = self.state();
        let Some(under_way) = state.under_way.take_if(|under_way| under_way.id == id) else { return };
        let ended_at_ms = Some(system_now().as_ms());
        let body = BackupBody { ended_at_ms, phase: None, ..shown(&under_way) };
        let body = match made {
            Ok(report) => with_report(BackupBody { state: BackupState::Done, ..body }, &report),
            Err(BackupError::Stopped) => BackupBody { state: BackupState::Stopped, ..body },
            // The queue closes because the server stops.
            Err(BackupError::Unavailable(_)) if self.0.stopping.is_given() => {
                BackupBody { state: BackupState::Stopped, ..body }
            }
            Err(error) => BackupBody { state: BackupState::Failed, error: Some(error.to_string()), ..body },
        };
        state.figures.add(&body);
        let BackupBody { name, bytes, files, tasks, error, .. } = &body;
        let took_ms = ms_of(&body);
        match body.state {
            BackupState::Done => tracing::info!(
                event = events::BACKUP_WHOLE,
                id,
                name,
                bytes,
                files,
                tasks,
                took_ms,
                "a backup is whole"
            ),
            BackupState::Failed => {
                tracing::error!(event = events::BACKUP_FAILED, id, name, error, took_ms, "a backup failed")
            }
            BackupState::Running | BackupState::Stopped => {
                tracing::warn!(event = events::BACKUP_STOPPED, id, name, took_ms, "a backup was stopped");
            }
        }
        if body.state != BackupState::Done {
            state.over.push_back(body);
            while state.over.len() > OVER_MAX {
                state.over.pop_front();
            }
        }
        drop(state);
        self.0.running.send_replace(false);
    }

    /// All that are known, the newest first.
    ///
    /// # Errors
    /// There is no place for them.
    pub(super) fn all(&self) -> Result<Vec<BackupBody>, Refusal> {
        let place = self.place()?;
        let mut all: Vec<BackupBody> = {
            let state = self.state();
            state.under_way.iter().map(shown).chain(state.over.iter().cloned()).collect()
        };
        let known: Vec<u64> = all.iter().map(|backup| backup.id).collect();
        all.extend(place.ids().into_iter().filter(|id| !known.contains(id)).filter_map(|id| place.find(id)));
        all.sort_unstable_by_key(|backup| std::cmp::Reverse(backup.id));
        Ok(all)
    }

    /// The one with this number.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn find(&self, id: Option<u64>) -> Result<Option<BackupBody>, Refusal> {
        let place = self.place()?;
        let Some(id) = id else { return Ok(None) };
        let known = {
            let state = self.state();
            let under_way = state.under_way.iter().filter(|under_way| under_way.id == id).map(shown);
            under_way.chain(state.over.iter().filter(|body| body.id == id).cloned()).next()
        };
        Ok(known.or_else(|| place.find(id)))
    }

    /// Tells the one with this number to stop. Whether it is under way.
    pub(super) fn stop(&self, id: u64) -> bool {
        let state = self.state();
        let under_way = state.under_way.as_ref().filter(|under_way| under_way.id == id);
        under_way.inspect(|under_way| under_way.watch.stop()).is_some()
    }

    /// Tells the one under way to stop, if there is one, whichever it is.
    pub(crate) fn stop_all(&self) {
        if let Some(under_way) = &self.state().under_way {
            under_way.watch.stop();
        }
    }

    /// Returns once none is under way.
    pub(crate) async fn ended(&self) {
        let mut running = self.0.running.subscribe();
        // The sender is our own.
        let _never = running.wait_for(|running| !running).await.is_err();
    }

    /// Begins one each time that it is due.
    pub(crate) async fn keep_up(&self, every: Duration) {
        schedule::keep_up(self, every).await;
    }

    /// When the newest whole one was begun.
    pub(super) fn newest_begun(&self) -> Option<Timestamp> {
        let newest = self.0.place.as_ref().ok()?.newest()?;
        Timestamp::from_ms(newest.begun_at_ms)
    }

    pub(crate) fn figures(&self) -> BackupFigures {
        self.state().figures
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the backup under way to stop when it is dropped.
pub(crate) struct StopBackups(pub(crate) Backups);

impl Drop for StopBackups {
    fn drop(&mut self) {
        self.0.stop_all();
    }
}

/// Ends a backup whatever becomes of its thread.
struct End<'a>(&'a Backups, u64);

impl End<'_> {
    fn with(self, made: Result<BackupReport, BackupError>) {
        self.0.over(self.1, made);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Nothing happens if it is over.
        let panicked = std::io::Error::other("it panicked");
        self.0.over(self.1, Err(BackupError::Thread(panicked)));
    }
}

/// How one goes that is under way.
fn shown(under_way: &UnderWay) -> BackupBody {
    let progress = under_way.watch.progress();
    let (phase, bytes_done) = match progress.phase {
        Phase::Copying => (BackupPhase::Copying, progress.copied),
        Phase::Checking => (BackupPhase::Checking, progress.checked),
    };
    BackupBody {
        id: under_way.id,
        name: name_of(under_way.id),
        state: BackupState::Running,
        phase: Some(phase),
        begun_at_ms: under_way.begun_at.as_ms(),
        as_of_ms: progress.as_of.map(Timestamp::as_ms),
        ended_at_ms: None,
        files: progress.files,
        bytes: progress.bytes,
        bytes_done,
        tasks: None,
        dead: None,
        error: None,
    }
}

/// How long one took that is over, ms.
fn ms_of(body: &BackupBody) -> u64 {
    body.ended_at_ms.map_or(0, |ended| u64::try_from(ended - body.begun_at_ms).unwrap_or_default())
}
