//! Data that a client may read: statistics and jobs.

use tickwheel_api::beanstalk::Reply;
use tickwheel_queue::TaskView;

/// The data for a client.
pub(super) enum ReplyBody {
    Text(Vec<u8>),
    Job(Box<TaskView>),
    /// No data; the answer says why.
    Refused(Reply<'static>),
}

impl ReplyBody {
    pub(super) fn reply(&self) -> Reply<'_> {
        match self {
            Self::Text(text) => Reply::Ok(text),
            Self::Job(task) => Reply::Found { id: task.id, body: task.body.payload_at(task.step).0 },
            Self::Refused(reply) => *reply,
        }
    }
}

impl From<Result<Vec<u8>, Reply<'static>>> for ReplyBody {
    fn from(text: Result<Vec<u8>, Reply<'static>>) -> Self {
        text.map_or_else(Self::Refused, Self::Text)
    }
}

impl From<Result<TaskView, Reply<'static>>> for ReplyBody {
    fn from(task: Result<TaskView, Reply<'static>>) -> Self {
        task.map_or_else(Self::Refused, |task| Self::Job(Box::new(task)))
    }
}
