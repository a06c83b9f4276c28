//! Data that a client may read: statistics and jobs.

use tickwheel_api::beanstalk::Reply;
use tickwheel_queue::TaskView;

/// The data for a client.
pub(super) enum Shown {
    Text(Vec<u8>),
    Job(Box<TaskView>),
    /// No data; the answer says why.
    Not(Reply<'static>),
}

impl Shown {
    pub(super) fn reply(&self) -> Reply<'_> {
        match self {
            Self::Text(text) => Reply::Ok(text),
            Self::Job(task) => Reply::Found { id: task.id, body: task.body.payload_at(task.step).0 },
            Self::Not(reply) => *reply,
        }
    }
}

impl From<Result<Vec<u8>, Reply<'static>>> for Shown {
    fn from(text: Result<Vec<u8>, Reply<'static>>) -> Self {
        text.map_or_else(Self::Not, Self::Text)
    }
}

impl From<Result<TaskView, Reply<'static>>> for Shown {
    fn from(task: Result<TaskView, Reply<'static>>) -> Self {
        task.map_or_else(Self::Not, |task| Self::Job(Box::new(task)))
    }
}
