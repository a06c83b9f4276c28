//! All calls that an engine takes, each with its answer and its error, in one table.

use crate::calls::{
    Ack, Acted, ById, ByIdError, ByKey, ByKeyError, Cancel, CancelError, Cancelled, ChangeQueue,
    DeleteSchedule, Extend, Forecast, ForecastView, Get, GetError, GetQueue, GetSchedule, GetStats, GetWheel,
    ImportOutcome, ImportSchedule, ImportTasks, Imported, Lease, LeasePage, Leased, List, ListAllSchedules,
    ListAllTasks, ListJobs, ListLeases, ListQueues, ListSchedules, Nack, NackError, Patch, PatchError, Put,
    PutError, PutSchedule, QueueError, Redrive, RedriveError, ScheduleError, ScheduleView, Stats, Stored,
    StoredSchedule, TaskPage, TaskView, TokenAnswer, Unavailable,
};
use crate::job::{ChangeJob, JobError, JobValue};
use crate::queue_view::{QueuePage, QueueView};
use crate::wheel::WheelView;

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
    /// Why there is no answer. Each error can say that the engine is unavailable.
    type Error: From<Unavailable>;

    /// The command.
    fn command(self) -> Command;

    /// The result in an answer; `None`: the answer is to another kind of command.
    fn open(answer: Answer) -> Option<Result<Self::Answer, Self::Error>>;
}

/// Makes from one table: [`Command`], [`Answer`], the answer when the engine is unavailable, and a [`Call`] for each kind.
///
/// The first word of a line decides about a command after the store has failed. A command that `reads` is answered. One that `changes` or
/// `counts` is refused, because both need the store. With `may_change` it depends on the command.
macro_rules! calls {
    ($($(#[$doc:meta])* $kind:ident $name:ident($call:ty) -> $answer:ty, $error:ty;)*) => {
        /// A request of a caller. The answer to each command is the [`Answer`] of the same name.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Command {
            $($(#[$doc])* $name($call),)*
        }

        /// The answer to a [`Command`], by the command's name.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum Answer {
            $(
                /// The answer to the command of this name:
                $(#[$doc])*
                $name(Result<$answer, $error>),
            )*
        }

        impl Command {
            /// The answer that says only why the engine is unavailable.
            #[must_use]
            pub fn unavailable(&self, why: Unavailable) -> Answer {
                match self {
                    $(Self::$name(_) => Answer::$name(Err(why.into())),)*
                }
            }

            /// Whether the command is refused once the store has failed.
            pub(crate) fn needs_store(&self) -> bool {
                match self {
                    $(Self::$name(_) => calls!(@$kind self),)*
                }
            }
        }

        impl Answer {
            /// The answer of the same kind that says only why the engine is unavailable.
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
    /// Schedule a task.
    changes Put(Put) -> Stored, PutError;
    /// Look at a task.
    reads Get(Get) -> TaskView, GetError;
    /// Reschedule a task or change its body.
    changes Patch(Patch) -> TaskView, PatchError;
    /// End a task that no worker has finished.
    changes Cancel(Cancel) -> Cancelled, CancelError;
    /// Take ready tasks to work on. An empty answer: no task was ready.
    changes Lease(Lease) -> Vec<Leased>, Unavailable;
    /// End these leases: their work is done. One answer for each token, in the order of the tokens.
    changes Ack(Ack) -> Vec<TokenAnswer>, Unavailable;
    /// Give these leases back. One answer for each token, in the order of the tokens.
    changes Nack(Nack) -> Vec<TokenAnswer>, NackError;
    /// Give a dead task another life.
    changes Redrive(Redrive) -> TaskView, RedriveError;
    /// Look at a task, or act on it. The id names the task.
    may_change ById(ById) -> Acted, ByIdError;
    /// Act on a live task. The key names the task, and the answer has the task as it is now.
    changes ByKey(ByKey) -> TaskView, ByKeyError;
    /// Keep these leases for longer. One answer for each token, in the order of the tokens.
    changes Extend(Extend) -> Vec<TokenAnswer>, Unavailable;
    /// Page through the tasks of a queue.
    reads List(List) -> TaskPage, Unavailable;
    /// Page through the leases that run.
    reads Leases(ListLeases) -> LeasePage, Unavailable;
    /// Count the tasks that fall due in each bucket of time.
    counts Forecast(Forecast) -> ForecastView, Unavailable;
    /// Page through the queues in the order of their names, and count their tasks.
    reads Queues(ListQueues) -> QueuePage, Unavailable;
    /// Look at one queue.
    reads Queue(GetQueue) -> Box<QueueView>, Unavailable;
    /// Configure how a queue hands its tasks out.
    changes ChangeQueue(ChangeQueue) -> (), QueueError;
    /// Configure a schedule: tasks that are made again and again.
    changes PutSchedule(PutSchedule) -> StoredSchedule, ScheduleError;
    /// End a schedule.
    changes DeleteSchedule(DeleteSchedule) -> (), ScheduleError;
    /// Look at a schedule.
    reads GetSchedule(GetSchedule) -> ScheduleView, ScheduleError;
    /// Page through the schedules of a queue.
    reads Schedules(ListSchedules) -> Vec<ScheduleView>, Unavailable;
    /// Page through the schedules of all queues.
    reads AllSchedules(ListAllSchedules) -> Vec<ScheduleView>, Unavailable;
    /// Begin a job, or change the value that is kept of one. The answer is the number of the job.
    changes ChangeJob(ChangeJob) -> u64, JobError;
    /// Read all jobs that are kept: numbers and values, in the order of the numbers.
    reads Jobs(ListJobs) -> Vec<(u64, JobValue)>, Unavailable;
    /// The engine's own figures, and a page of queues beside them.
    reads Stats(GetStats) -> Box<Stats>, Unavailable;
    /// Look at the wheel.
    reads Wheel(GetWheel) -> Box<WheelView>, Unavailable;
    /// Page through the tasks of all queues.
    reads AllTasks(ListAllTasks) -> TaskPage, Unavailable;
    /// Bring tasks from another store.
    changes Import(ImportTasks) -> Imported, Unavailable;
    /// Bring a schedule from another store.
    changes ImportSchedule(ImportSchedule) -> ImportOutcome, ScheduleError;
}
