//! [`Backups`]: starts backups, follows them, and knows the results of the last ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{BackupBody, BackupState, BackupsBody, Problem};
use tickwheel_queue::backup::{BackupWatch, system_now};
use tickwheel_queue::{BackupError, BackupReport, Queue, Timestamp};
use tokio::sync::watch;

use super::backup_dir::BackupDir;
use super::figures::BackupFigures;
use super::name::name_of;
use super::no_backups::NoBackups;
use super::whole::Found;
use super::{log_lines, schedule};
use crate::access::refusal::Refusal;
use crate::base::stopping::Stopping;
use crate::translate::backup as body;

/// The number of failed or stopped backups that are remembered.
const OVER_MAX: usize = 20;
/// The number of backups in the directory, the newest ones, that one answer shows.
const SHOWN_MAX: usize = 100;
/// The name of the thread that waits for a backup and handles its end.
const KEEPER_THREAD: &str = "tickwheel-backups";

/// Starts backups, one at a time, and knows their progress. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Backups(Arc<Inner>);

struct Inner {
    queue: Queue,
    stopping: Stopping,
    /// The directory of the backups, or why there is none.
    backup_dir: Result<BackupDir, NoBackups>,
    /// The number of whole backups to keep; `None`: all.
    keep: Option<usize>,
    state: Mutex<State>,
    /// Whether a backup is running, for tasks that wait for its end. It changes only while `state` is locked.
    running: watch::Sender<bool>,
}

struct State {
    under_way: Option<UnderWay>,
    /// Failed and stopped backups, the oldest first.
    over: VecDeque<BackupBody>,
    /// The highest number ever given.
    last_id: u64,
    /// The time of the last failed attempt; `None` after a later success.
    failed_at: Option<Timestamp>,
    figures: BackupFigures,
}

struct UnderWay {
    id: u64,
    begun_at: Timestamp,
    watch: BackupWatch,
}

/// The result of a request for a backup.
#[derive(Debug)]
pub(crate) enum Begun {
    /// The backup is running.
    Now(BackupBody),
    /// Another backup is running, with this number.
    UnderWay(u64),
}

impl Backups {
    /// Reads the directory: call it on a thread that may block.
    pub(crate) fn new(
        queue: Queue,
        stopping: Stopping,
        backup_dir: Result<BackupDir, NoBackups>,
        keep: Option<usize>,
    ) -> Self {
        let newest = backup_dir.as_ref().ok().and_then(BackupDir::newest).map(shown_found);
        let last_id = backup_dir
            .as_ref()
            .ok()
            .and_then(|backup_dir| backup_dir.ids().last().copied())
            .unwrap_or_default();
        let figures = BackupFigures::of_earlier(newest.as_ref());
        let state = State { under_way: None, over: VecDeque::new(), last_id, failed_at: None, figures };
        let state = Mutex::new(state);
        Self(Arc::new(Inner { queue, stopping, backup_dir, keep, state, running: watch::Sender::new(false) }))
    }

    fn backup_dir(&self) -> Result<&BackupDir, Refusal> {
        self.0.backup_dir.as_ref().map_err(|why| why.problem().into())
    }

    /// Begins a backup, unless one is running. Reads the directory: call it on a thread that may block.
    ///
    /// # Errors
    /// There is no directory for backups, the server stops, or the system gives no thread.
    pub(crate) fn begin(&self) -> Result<Begun, Refusal> {
        let backup_dir = self.backup_dir()?;
        if self.0.stopping.is_given() {
            return Err(Problem::stopping().into());
        }
        let taken = backup_dir.ids().last().copied().unwrap_or_default();
        let (shown, watch) = match self.take_turn(taken) {
            Ok(taken) => taken,
            Err(under_way) => return Ok(Begun::UnderWay(under_way)),
        };
        let id = shown.id;
        let backups = self.clone();
        let work = move || {
            // A panic ends the backup too, so that the next one can begin.
            let end = End(&backups, id);
            let made = backups.make(id, &watch);
            end.with(made);
        };
        log_lines::begun(id, &shown.name);
        if let Err(error) = std::thread::Builder::new().name(KEEPER_THREAD.to_owned()).spawn(work) {
            self.over(id, Err(BackupError::Thread(error)));
            return Err(Problem::internal("the system gives no thread for a backup").into());
        }
        Ok(Begun::Now(shown))
    }

    /// Registers a new running backup, with a number above `taken`; `Err`: the number of another backup, which is
    /// running.
    fn take_turn(&self, taken: u64) -> Result<(BackupBody, BackupWatch), u64> {
        let mut state = self.state();
        if let Some(under_way) = &state.under_way {
            return Err(under_way.id);
        }
        let begun_at = system_now();
        // The number follows the clock, but no number is given twice, although the clock may have been set back.
        let id = begun_at.as_tick().max(state.last_id.max(taken) + 1);
        state.last_id = id;
        let watch = BackupWatch::new();
        let under_way = UnderWay { id, begun_at, watch: watch.clone() };
        let shown = shown(&under_way);
        state.under_way = Some(under_way);
        self.0.running.send_replace(true);
        Ok((shown, watch))
    }

    /// Begins a backup because it is due. The log tells the result.
    pub(super) fn begin_by_schedule(&self) {
        match self.begin() {
            Ok(Begun::Now(_)) => {}
            Ok(Begun::UnderWay(id)) => {
                self.state().figures.leave_out();
                log_lines::left_out(id);
            }
            Err(refusal) => {
                self.state().failed_at = Some(system_now());
                log_lines::not_begun(&Problem::from(refusal));
            }
        }
    }

    fn make(&self, id: u64, watch: &BackupWatch) -> Result<BackupReport, BackupError> {
        let Ok(backup_dir) = &self.0.backup_dir else { return Err(BackupError::InMemory) };
        backup_dir.clear()?;
        let report = self.0.queue.backup_gently(backup_dir.target(id), watch)?;
        if let Some(keep) = self.0.keep {
            backup_dir.keep(keep);
        }
        Ok(report)
    }

    /// Notes the end of a backup and writes it to the log.
    fn over(&self, id: u64, made: Result<BackupReport, BackupError>) {
        let body = {
            let mut state = self.state();
            let Some(under_way) = state.under_way.take_if(|under_way| under_way.id == id) else { return };
            let ended_at = system_now();
            let body = body::over(shown(&under_way), ended_at, made, self.0.stopping.is_given());
            state.note(&body, ended_at);
            self.0.running.send_replace(false);
            body
        };
        log_lines::over(&body);
    }

    /// All known backups, the newest first. Of those in the directory only the newest are read.
    ///
    /// # Errors
    /// There is no directory for backups.
    pub(crate) fn all(&self) -> Result<BackupsBody, Refusal> {
        let backup_dir = self.backup_dir()?;
        let mut backups: Vec<BackupBody> = {
            let state = self.state();
            state.under_way.iter().map(shown).chain(state.over.iter().cloned()).collect()
        };
        let mut ids = backup_dir.ids();
        ids.retain(|id| backups.iter().all(|backup| backup.id != *id));
        let newest = ids.split_off(ids.len().saturating_sub(SHOWN_MAX));
        backups.extend(newest.into_iter().filter_map(|id| backup_dir.find(id)).map(shown_found));
        backups.sort_unstable_by_key(|backup| std::cmp::Reverse(backup.id));
        let older = Some(ids.len() as u64).filter(|count| *count > 0);
        Ok(BackupsBody { backups, older })
    }

    /// The backup with this number.
    ///
    /// # Errors
    /// There is no directory for backups.
    pub(crate) fn find(&self, id: Option<u64>) -> Result<Option<BackupBody>, Refusal> {
        let backup_dir = self.backup_dir()?;
        let Some(id) = id else { return Ok(None) };
        let known = {
            let state = self.state();
            let under_way = state.under_way.iter().filter(|under_way| under_way.id == id).map(shown);
            under_way.chain(state.over.iter().filter(|body| body.id == id).cloned()).next()
        };
        Ok(known.or_else(|| backup_dir.find(id).map(shown_found)))
    }

    /// Tells the backup with this number to stop. Returns whether it is running.
    pub(crate) fn stop(&self, id: u64) -> bool {
        let state = self.state();
        let under_way = state.under_way.as_ref().filter(|under_way| under_way.id == id);
        under_way.inspect(|under_way| under_way.watch.stop()).is_some()
    }

    /// Tells the running backup to stop, if there is one.
    pub(crate) fn stop_all(&self) {
        if let Some(under_way) = &self.state().under_way {
            under_way.watch.stop();
        }
    }

    /// Waits until no backup is running.
    pub(crate) async fn ended(&self) {
        let mut running = self.0.running.subscribe();
        // An error is impossible, because `self` holds the sender.
        let _never = running.wait_for(|running| !running).await.is_err();
    }

    /// Begins a backup each time one is due.
    pub(crate) async fn keep_up(self, every: Duration) {
        schedule::keep_up(&self, every).await;
    }

    /// When the newest whole backup of this data directory began.
    pub(super) fn newest_begun(&self) -> Option<Timestamp> {
        self.0.backup_dir.as_ref().ok()?.newest()?.manifest.ok()?.begun_at()
    }

    /// The time of the last failed attempt; `None` if an attempt succeeded after it.
    pub(super) fn failed_at(&self) -> Option<Timestamp> {
        self.state().failed_at
    }

    /// The results of the backups; `None`: there is no directory for them.
    pub(crate) fn figures(&self) -> Option<BackupFigures> {
        self.0.backup_dir.as_ref().ok().map(|_| self.state().figures)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the running backup to stop when it is dropped.
pub(crate) struct StopBackups(pub(crate) Backups);

impl Drop for StopBackups {
    fn drop(&mut self) {
        self.0.stop_all();
    }
}

/// Ends a backup even if its thread panics.
struct End<'a>(&'a Backups, u64);

impl End<'_> {
    fn with(self, made: Result<BackupReport, BackupError>) {
        self.0.over(self.1, made);
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Nothing happens if the backup has already ended.
        self.0.over(self.1, Err(BackupError::Panicked));
    }
}

impl State {
    /// Remembers a backup that has ended.
    fn note(&mut self, body: &BackupBody, ended_at: Timestamp) {
        self.figures.add(body);
        match body.state {
            BackupState::Done => self.failed_at = None,
            BackupState::Failed => self.failed_at = Some(ended_at),
            BackupState::Running | BackupState::Stopped => {}
        }
        if body.state != BackupState::Done {
            self.over.push_back(body.clone());
            while self.over.len() > OVER_MAX {
                self.over.pop_front();
            }
        }
    }
}

/// The state of the running backup.
fn shown(under_way: &UnderWay) -> BackupBody {
    let UnderWay { id, begun_at, watch } = under_way;
    body::running(*id, name_of(*id), *begun_at, watch.progress())
}

fn shown_found(found: Found) -> BackupBody {
    body::found(found.id, name_of(found.id), found.manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A queue in `dir` and the keeper of its backups, of which one is kept.
    fn keeper(dir: &Path) -> (Queue, Backups, impl Sized) {
        let data = dir.join("data");
        let queue = Queue::options().virtual_clock().open(&data).expect("it opens");
        let backup_dir = BackupDir::open(&dir.join("backups"), &data).expect("free").of(&data);
        for id in [1, 2] {
            queue.backup_gently(backup_dir.target(id), &BackupWatch::new()).expect("copied");
        }
        let (stop, stopping) = crate::base::stopping::signal();
        (queue.clone(), Backups::new(queue, stopping, Ok(backup_dir), Some(1)), stop)
    }

    #[test]
    fn the_oldest_backup_is_removed_only_when_a_newer_one_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let (queue, backups, _stop) = keeper(dir.path());
        let backup_dir = backups.backup_dir().expect("there is one");
        let watch = BackupWatch::new();
        watch.stop();
        assert!(matches!(backups.make(3, &watch), Err(BackupError::Stopped)));
        assert_eq!(backup_dir.ids(), [1, 2], "there is no newer one yet");
        backups.make(4, &BackupWatch::new()).expect("copied");
        assert_eq!(backup_dir.ids(), [4]);
        queue.close();
        backups.make(5, &BackupWatch::new()).expect_err("the queue is closed");
        assert_eq!(backup_dir.ids(), [4]);
    }

    /// A bug that was found: a stop closed the queue during a backup. That backup had begun just when the one before
    /// it ended.
    #[test]
    fn a_stop_waits_for_a_backup_that_begins_as_another_ends() {
        let dir = tempfile::tempdir().expect("a directory");
        let (_queue, backups, _stop) = keeper(dir.path());
        let (mut shown, _) = backups.take_turn(0).expect("none is under way");
        for round in 0..1_000 {
            let next = std::thread::scope(|scope| {
                scope.spawn(|| backups.over(shown.id, Err(BackupError::Stopped)));
                loop {
                    if let Ok((next, _)) = backups.take_turn(0) {
                        break next;
                    }
                }
            });
            assert!(*backups.0.running.borrow(), "round {round}: nobody waits for the one under way");
            shown = next;
        }
        backups.over(shown.id, Err(BackupError::Stopped));
        assert!(!*backups.0.running.borrow());
    }

    #[test]
    fn a_failure_is_known_until_one_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let (_queue, backups, _stop) = keeper(dir.path());
        let over = |made| {
            let (shown, _) = backups.take_turn(0).expect("none is under way");
            backups.over(shown.id, made);
            backups.failed_at().is_some()
        };
        assert!(over(Err(BackupError::Panicked)));
        assert!(over(Err(BackupError::Stopped)), "a stop changes nothing");
        assert!(!over(Ok(BackupReport::default())));
    }

    /// A bug that was found: the clock was once ten years ahead. From then on each start made a backup, and all were
    /// shown with that year.
    #[test]
    fn after_the_clock_was_set_back_a_backup_has_its_true_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let (queue, _, _stop) = keeper(dir.path());
        let data = dir.path().join("data");
        // The backup of the year 2036.
        let ahead = 2_083_000_000_000;
        let before = system_now();
        let reopen = || {
            let backup_dir = BackupDir::open(&dir.path().join("backups"), &data).expect("free").of(&data);
            Backups::new(queue.clone(), crate::base::stopping::signal().1, Ok(backup_dir), None)
        };
        let backup_dir = BackupDir::open(&dir.path().join("backups"), &data).expect("free").of(&data);
        queue.backup_gently(backup_dir.target(ahead), &BackupWatch::new()).expect("copied");
        drop(backup_dir);
        let backups = reopen();
        let (shown, _) = backups.take_turn(ahead).expect("none is under way");
        assert_eq!(shown.id, ahead + 1, "numbers rise");
        backups.make(shown.id, &BackupWatch::new()).expect("copied");
        backups.over(shown.id, Err(BackupError::Stopped));
        drop(backups);
        let backups = reopen();
        let newest = backups.newest_begun().expect("there is one");
        assert!(before <= newest && newest <= system_now(), "{newest:?} is of the number");
        let found = backups.find(Some(ahead + 1)).ok().flatten().expect("it is there");
        assert_eq!(found.begun_at_ms, newest.as_ms());
        let figures = backups.figures().expect("there is a place");
        assert!(figures.last_success_ms >= newest.as_ms(), "{figures:?}");
    }
}
