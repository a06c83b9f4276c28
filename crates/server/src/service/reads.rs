//! The verbs of a caller that read from several queues or from the whole server, and the work on many tasks.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::{DeadGroupsBody, ExportHeader, ExportQuery, ImportQuery, Problem, TaskFilter};
use tickwheel_queue::{
    CommitSeconds, Forecast, ForecastView, Get, GetError, Health, InUse, LeasePage, List, ListAllSchedules,
    ListLeases, ListQueues, Pending, QueueName, Schedule, ScheduleError, ScheduleName, ScheduleRecord,
    ScheduleView, ShardId, TaskPage, TaskView, Timestamp, Token, Unavailable,
};
use tokio::time::timeout;

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::aside;
use crate::service::caller::Caller;
use crate::service::jobs::bulk::{Bulk, Done};
use crate::service::jobs::keeper::Jobs;
use crate::service::jobs::work::Work;
use crate::service::known_queues::KnownQueues;
use crate::service::search::dead_group::groups;
use crate::service::search::expected::{Expected, expected};
use crate::service::search::lookup;
use crate::service::search::newest_dead::newest;
use crate::targets::Targets;
use crate::telemetry::metrics::shard_pages::{ShardPages, ShardTotals};
use crate::transfer::{Exporter, Importer};

/// The longest wait for a list of groups that another caller asked for.
const GROUPS_WAIT_MAX: Duration = Duration::from_secs(5);

/// The queue and the name of a schedule.
pub(crate) type ScheduleId = (QueueName, ScheduleName);

/// Reads of the clock and of the state of the server, without the name of a queue or a task: each caller may do them.
impl Caller {
    pub(crate) fn now(&self) -> Timestamp {
        self.app.queue.now()
    }

    /// The instant at which a task falls due whose delay begins now; `None`: no task can be due then.
    pub(crate) fn due_after(&self, ms: u64) -> Option<Timestamp> {
        self.app.queue.due_after(ms)
    }

    pub(crate) fn health(&self) -> Health {
        self.app.queue.health()
    }

    pub(crate) fn health_of_shards(&self) -> Vec<(ShardId, Health)> {
        self.app.queue.health_of_shards()
    }

    pub(crate) fn commit_seconds(&self) -> CommitSeconds {
        self.app.queue.commit_seconds()
    }

    /// The schedule as the store would have it if it was put now. Nothing is stored.
    ///
    /// # Errors
    /// The schedule has no instants, or does not fit.
    pub(crate) fn as_if_put(&self, schedule: Arc<Schedule>) -> Result<ScheduleRecord, ScheduleError> {
        self.app.queue.as_if_put(schedule)
    }
}

impl Caller {
    /// Whether the caller has this right in the queue; without a queue, whether it has it anywhere.
    fn may_in(&self, right: Right, queue: Option<&QueueName>) -> Result<(), Refusal> {
        match queue {
            Some(queue) => self.may(right, queue),
            None if self.grant().allows(right) => Ok(()),
            None => Err(Problem::forbidden(right.name()).into()),
        }
    }

    /// Whether the caller may read in all queues.
    fn may_read_all(&self) -> Result<(), Refusal> {
        self.may_in(Right::Read, None)?;
        if self.grant().is_unscoped() { Ok(()) } else { Err(Problem::forbidden_to_scoped().into()) }
    }

    /// The jobs, for a caller with this right. Their queues may be outside of its scope.
    ///
    /// # Errors
    /// 403 without the right.
    pub(crate) fn jobs(&self, right: Right) -> Result<&Jobs, Refusal> {
        self.may_in(right, None)?;
        Ok(self.app.background.jobs())
    }

    /// The targets, for a caller with this right in the queue; without a queue, in any.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may).
    pub(crate) fn targets(&self, right: Right, queue: Option<&QueueName>) -> Result<&Targets, Refusal> {
        self.may_in(right, queue)?;
        Ok(self.app.background.targets())
    }

    /// The queues of a list that the caller's scope covers.
    ///
    /// # Errors
    /// 403 without the right to read.
    pub(crate) fn queues(&self, list: ListQueues) -> Result<KnownQueues<'_>, Refusal> {
        self.may_in(Right::Read, None)?;
        Ok(KnownQueues::new(&self.app.queue, self.grant(), list))
    }

    /// The figures of all shards. `totals` are those of the scrape before.
    ///
    /// # Errors
    /// 403 without the right to read in all queues.
    pub(crate) fn shard_pages<'a>(&'a self, totals: &'a mut ShardTotals) -> Result<ShardPages<'a>, Refusal> {
        self.may_read_all()?;
        Ok(ShardPages::new(&self.app.queue, totals))
    }

    /// A page of leases. Leases in queues outside of the caller's scope are left out.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may); 503 if the queue cannot be read.
    pub(crate) async fn leases(&self, list: ListLeases) -> Result<LeasePage, Refusal> {
        self.may_in(Right::Read, list.queue.as_ref())?;
        let mut page = self.app.queue.leases(list).await?;
        page.leases.retain(|lease| self.covers(&lease.queue));
        Ok(page)
    }

    /// A page of the schedules of all queues, and the place of the next page. Schedules outside of the caller's scope
    /// are left out.
    ///
    /// # Errors
    /// 403 without the right to read; 503 if the queue cannot be read.
    pub(crate) async fn all_schedules(
        &self,
        list: ListAllSchedules,
    ) -> Result<(Vec<ScheduleView>, Option<ScheduleId>), Refusal> {
        self.may_in(Right::Read, None)?;
        let max = list.max;
        let mut page = self.app.queue.all_schedules(list).await?;
        let last = page.last().filter(|_| page.len() == max);
        let next = last.map(|last| (last.queue.clone(), last.name.clone()));
        page.retain(|one| self.covers(&one.queue));
        Ok((page, next))
    }

    /// Counts the tasks that fall due, and the instants of schedules if `schedules` is set. It runs to its end, even
    /// if its caller has left.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may), 403 for all queues without the right to all, 429 while another forecast is
    /// made, 503 if the queue cannot be read.
    pub(crate) async fn forecast(
        &self,
        forecast: Forecast,
        schedules: bool,
    ) -> Result<(ForecastView, Option<Expected>), Refusal> {
        match &forecast.queue {
            Some(queue) => self.may(Right::Read, queue)?,
            None => self.may_read_all()?,
        }
        // One forecast is made at a time, because it may read much.
        let Ok(permit) = Arc::clone(self.app.admission.forecasts()).try_lock_owned() else {
            return Err(Problem::busy("another forecast is being made", 1).into());
        };
        let app = Arc::clone(&self.app);
        let made = tokio::spawn(async move {
            let _permit = permit;
            let (queue, grid) = (forecast.queue.clone(), forecast.grid.clone());
            let view = app.queue.forecast(forecast).await?;
            let expected = match schedules {
                true => Some(expected(&app.queue, queue.as_ref(), view.from, grid).await?),
                false => None,
            };
            Ok((view, expected))
        });
        made.await.unwrap_or_else(|_| Err(Problem::stopping().into()))
    }

    /// The newest dead tasks of a queue, grouped by their causes of death.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may), 429 while other lists are made, 503 if the queue cannot be read.
    pub(crate) async fn dead_groups(&self, queue: &QueueName) -> Result<DeadGroupsBody, Refusal> {
        self.may(Right::Read, queue)?;
        // One list of groups is made at a time, because each may read many tasks. A caller that would wait long is told so.
        let Ok(_alone) = timeout(GROUPS_WAIT_MAX, self.app.admission.dead_groups().lock()).await else {
            return Err(Problem::busy("other lists of groups are being made", 1).into());
        };
        let newest = newest(&self.app.queue, queue).await?;
        let (looked_at, window) = (newest.corpses.len() as u64, newest.window);
        let groups = aside(move || groups(newest.corpses)).await?;
        Ok(DeadGroupsBody { groups, looked_at, window })
    }

    /// Gets a task for a caller with this right.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may).
    pub(crate) fn get_for(&self, right: Right, get: Get) -> Result<Pending<TaskView, GetError>, Refusal> {
        self.may(right, &get.queue)?;
        Ok(self.app.queue.get(get))
    }

    /// Lists tasks for a caller with this right.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may).
    pub(crate) fn list_for(
        &self,
        right: Right,
        list: List,
    ) -> Result<Pending<TaskPage, Unavailable>, Refusal> {
        self.may(right, &list.queue)?;
        Ok(self.app.queue.list(list))
    }

    /// The task with the key that the filter names; see [`lookup::by_key`].
    ///
    /// # Errors
    /// The errors of [`may`](Self::may); 503 if the queue cannot be read.
    pub(crate) async fn of_filter(
        &self,
        queue: &QueueName,
        filter: &TaskFilter,
    ) -> Result<Option<Option<TaskView>>, Refusal> {
        self.may(Right::Read, queue)?;
        Ok(lookup::by_key(&self.app.queue, queue, filter).await?)
    }

    /// Does the work on many tasks, or begins a job that does it.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may), and those of [`Bulk::run`].
    pub(crate) async fn bulk(&self, right: Right, queue: &QueueName, work: Work) -> Result<Done, Refusal> {
        self.may(right, queue)?;
        let jobs = self.app.background.jobs();
        Bulk::new(queue.clone(), work).run(&self.app.queue, jobs, self.producer()).await
    }

    /// An export of the part of the store that the caller may see.
    ///
    /// # Errors
    /// 403 without the right to read, and those of [`Exporter::new`].
    pub(crate) fn exporter(&self, query: &ExportQuery) -> Result<Exporter, Refusal> {
        self.may_in(Right::Read, None)?;
        Ok(Exporter::within(self.app.queue.clone(), query, self.grant().clone())?)
    }

    /// An import of a file with this header. The caller's right in the queue of each line is checked line by line.
    ///
    /// # Errors
    /// 403 without `admin`, and those of [`Importer::check_clock`].
    pub(crate) fn importer(
        &self,
        query: &ImportQuery,
        header: &ExportHeader,
    ) -> Result<Importer, Box<Problem>> {
        self.may_in(Right::Admin, None)?;
        let queue = &self.app.queue;
        if !query.other_clock {
            Importer::check_clock(queue, header)?;
        }
        let ids_below = header.ids_below;
        let importer =
            Importer::new(queue.clone(), query.existing, query.revoke, ids_below, query.first_line);
        Ok(importer.within(self.grant().shared_scope()))
    }

    /// Keeps an empty queue in existence until the result is dropped.
    ///
    /// # Errors
    /// The errors of [`may`](Self::may).
    pub(crate) fn use_queue(&self, queue: &QueueName) -> Result<InUse, Refusal> {
        self.may(Right::Consume, queue)?;
        Ok(self.app.queue.use_queue(queue))
    }

    /// Gives tasks back that the caller has leased; this counts no attempt. Without the right to lease it does nothing.
    pub(crate) fn give_back(&self, tokens: Vec<Token>) {
        if self.grant().allows(Right::Consume) {
            self.app.queue.give_back(tokens);
        }
    }
}
