//! All calls that an engine takes, each with its answer and its error, in one table.

use std::sync::Arc;

use crate::calls::{
    Ack, Acted, ById, ByIdError, ByKey, ByKeyError, Cancel, CancelError, Cancelled, ChangeJob, ChangeQueue,
    DeleteSchedule, Extend, Forecast, ForecastView, Get, GetError, GetQueue, GetSchedule, GetStats, GetWheel,
    ImportOutcome, ImportSchedule, ImportTasks, Imported, JobError, JobValue, Lease, LeasePage, Leased, List,
    ListAllSchedules, ListAllTasks, ListJobs, ListLeases, ListQueues, ListSchedules, ListTargets, Nack,
    NackError, Patch, PatchError, Put, PutError, PutSchedule, QueueError, Redrive, RedriveError,
    ScheduleError, ScheduleView, Stats, Stored, StoredSchedule, TakeRow, TakeRowError, TaskPage, TaskView,
    TokenAnswer, Unavailable, WheelView,
};
use crate::name::QueueName;
use crate::queue_view::{QueuePage, QueueView};
use crate::target::TargetRecord;

/// A kind of command, with the types of its answer and its error.
///
/// ```
/// use tickwheel_engine::{Ack, Answer, Call, Cancel, TokenAnswer};
///
/// let answer = Answer::Ack(Ok(vec![TokenAnswer::Acked]));
/// assert_eq!(Cancel::open(answer.clone()), None);
/// assert_eq!(Ack::open(answer), Some(Ok(vec![TokenAnswer::Acked])));
/// ```
pub trait Call: Sized {
    /// The answer to the command.
    type Answer;
    /// The reasons to refuse the command. One of them is always [`Unavailable`].
    type Error: From<Unavailable>;

    /// Returns the command that makes this call.
    fn command(self) -> Command;

    /// Returns the result in an answer; `None`: the answer belongs to another kind of command.
    fn open(answer: Answer) -> Option<Result<Self::Answer, Self::Error>>;
}

/// Makes from one table: [`Command`], [`Answer`], their functions, and an implementation of [`Call`] for each kind of command.
///
/// The first word of a line says what becomes of the command after the store has failed. A command that `reads` is still answered. A
/// command that `changes` or `counts` is refused. A command that `may_change` is refused unless it only returns a task.
macro_rules! calls {
    ($($(#[$doc:meta])* $kind:ident $name:ident($call:ty) -> $answer:ty, $error:ty;)*) => {
        /// A request of a caller. The answer to each command is the [`Answer`] of the same name.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Command {
            $($(#[$doc])* $name($call),)*
        }

        /// The answer to a [`Command`]. Each variant has the name of its command.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Answer {
            $(
                /// The answer to the command of this name:
                $(#[$doc])*
                $name(Result<$answer, $error>),
            )*
        }

        impl Command {
            /// Returns the answer to this command that says only why the engine is unavailable.
            #[must_use]
            pub fn unavailable(&self, why: Unavailable) -> Answer {
                match self {
                    $(Self::$name(_) => Answer::$name(Err(why.into())),)*
                }
            }

            /// Whether the command is refused once the store has failed.
            #[must_use]
            pub fn needs_store(&self) -> bool {
                match self {
                    $(Self::$name(_) => calls!(@$kind self),)*
                }
            }
        }

        impl Answer {
            /// Returns the answer of the same kind that says only why the engine is unavailable.
            pub(crate) fn unavailable(&self, why: Unavailable) -> Self {
                match self {
                    $(Self::$name(_) => Self::$name(Err(why.into())),)*
                }
            }
        }

        $(
            impl Call for $call {
                type Answer = $answer;
                type Error = $error;

                fn command(self) -> Command {
                    Command::$name(self)
                }

                fn open(answer: Answer) -> Option<Result<$answer, $error>> {
                    if let Answer::$name(result) = answer { Some(result) } else { None }
                }
            }
        )*
    };
    (@changes $command:expr) => { true };
    (@counts $command:expr) => { true };
    (@reads $command:expr) => { false };
    (@may_change $command:expr) => { !matches!($command, Self::ById(ById { act: crate::calls::Act::Get, .. })) };
}

calls! {
    /// Make a task, or replace the live task of a key.
    changes Put(Put) -> Stored, PutError;
    /// Return a task.
    reads Get(Get) -> TaskView, GetError;
    /// Change the due time, the body or the settings of a live task.
    changes Patch(Patch) -> TaskView, PatchError;
    /// End a live or dead task.
    changes Cancel(Cancel) -> Cancelled, CancelError;
    /// Lease ready tasks. An empty answer: no task could be leased.
    changes Lease(Lease) -> Vec<Leased>, Unavailable;
    /// Ack leases: the work of their tasks is done. One answer for each token, in the order of the tokens.
    changes Ack(Ack) -> Vec<TokenAnswer>, Unavailable;
    /// Give leases back without an ack. One answer for each token, in the order of the tokens.
    changes Nack(Nack) -> Vec<TokenAnswer>, NackError;
    /// Make a dead task live again.
    changes Redrive(Redrive) -> TaskView, RedriveError;
    /// Return the task that has an id, or act on that task.
    may_change ById(ById) -> Acted, ByIdError;
    /// Make the live task of a key due now, or take the task from its worker. The answer has the task after the call.
    changes ByKey(ByKey) -> TaskView, ByKeyError;
    /// Extend leases. One answer for each token, in the order of the tokens.
    changes Extend(Extend) -> Vec<TokenAnswer>, Unavailable;
    /// Page through the tasks of a queue.
    reads List(List) -> TaskPage, Unavailable;
    /// Page through the leases that run.
    reads Leases(ListLeases) -> LeasePage, Unavailable;
    /// Count the tasks that fall due in each bucket of time.
    counts Forecast(Forecast) -> ForecastView, Unavailable;
    /// Page through the queues in the order of their names, and count their tasks.
    reads Queues(ListQueues) -> QueuePage, Unavailable;
    /// Return the counts and the settings of one queue.
    reads Queue(GetQueue) -> Box<QueueView>, Unavailable;
    /// Return the targets of all queues that have one, in the order of the names of the queues.
    reads Targets(ListTargets) -> Vec<(QueueName, Arc<TargetRecord>)>, Unavailable;
    /// Change the configuration of a queue, or delete the queue.
    changes ChangeQueue(ChangeQueue) -> (), QueueError;
    /// Configure a schedule, which makes tasks again and again.
    changes PutSchedule(PutSchedule) -> StoredSchedule, ScheduleError;
    /// Delete a schedule. The tasks that it has made stay.
    changes DeleteSchedule(DeleteSchedule) -> (), ScheduleError;
    /// Return a schedule and its progress.
    reads GetSchedule(GetSchedule) -> ScheduleView, ScheduleError;
    /// Page through the schedules of a queue.
    reads Schedules(ListSchedules) -> Vec<ScheduleView>, Unavailable;
    /// Page through the schedules of all queues.
    reads AllSchedules(ListAllSchedules) -> Vec<ScheduleView>, Unavailable;
    /// Begin a job, change the value of a job, or forget a job. The answer is the number of the job.
    changes ChangeJob(ChangeJob) -> u64, JobError;
    /// Read the numbers and values of all jobs that are kept, in the order of the numbers.
    reads Jobs(ListJobs) -> Vec<(u64, JobValue)>, Unavailable;
    /// Return the engine's own figures, and one page of the queues.
    reads Stats(GetStats) -> Box<Stats>, Unavailable;
    /// Return a view of the wheel that holds the scheduled and dead tasks that are whole in memory.
    reads Wheel(GetWheel) -> Box<WheelView>, Unavailable;
    /// Page through the live and dead tasks of all queues.
    reads AllTasks(ListAllTasks) -> TaskPage, Unavailable;
    /// Import tasks from another store.
    changes Import(ImportTasks) -> Imported, Unavailable;
    /// Import a schedule from another store.
    changes ImportSchedule(ImportSchedule) -> ImportOutcome, ScheduleError;
    /// Take a row of the store's inbox: a put or a cancel that a transaction of a user has committed.
    changes TakeRow(TakeRow) -> (), TakeRowError;
}
