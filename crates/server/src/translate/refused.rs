//! Translates refusals of the queue into problems.

use tickwheel_api::{BadRequest, CancelOutcome, Problem, ProblemKind};
use tickwheel_queue as queue;
use tickwheel_queue::{Key, QueueName, Seq};

use crate::access::refusal::Refusal;
use crate::events;

pub(crate) fn name_refused(error: &queue::NameError) -> Problem {
    let hint = match error {
        queue::NameError::Empty { .. } => "put a name between the slashes",
        queue::NameError::TooLong { .. } => "shorten it, or keep the long name in the payload",
        _ => {
            "leave that character out; percent-encoding gets a character through a URL, not through this rule"
        }
    };
    Problem::bad_name(error.to_string(), hint)
}

/// `key`: `None` for a key that the server makes. No refusal is about such a key.
pub(crate) fn put_refused(
    error: &queue::PutError,
    queue: &QueueName,
    key: Option<&Key>,
    version: Option<Seq>,
) -> Problem {
    let (queue, key) = (queue.as_str(), key.map_or("", Key::as_str));
    match error {
        queue::PutError::Live { version, .. } => Problem::live(queue, key, version.0),
        queue::PutError::NotFound => Problem::not_found(queue, key),
        queue::PutError::Done => Problem::done(queue, key),
        queue::PutError::Leased => Problem::leased(queue, key),
        queue::PutError::VersionMismatch { current } => version_mismatch(version, *current),
        queue::PutError::TooFar { limit_ms } => Problem::too_far(*limit_ms),
        queue::PutError::ExpiresFirst { expire_at, due_at } => {
            Problem::expires_first(expire_at.as_ms(), due_at.as_ms())
        }
        queue::PutError::Draining => Problem::draining(queue),
        queue::PutError::WouldAdd => Problem::token_full(),
        queue::PutError::BacklogFull { limit } => Problem::backlog_full(queue, *limit),
        queue::PutError::NotRising { index } => not_rising(*index),
        queue::PutError::Unavailable(why) => unavailable(why),
    }
}

pub(crate) fn get_refused(error: &queue::GetError, queue: &QueueName, key: &Key) -> Problem {
    match error {
        queue::GetError::NotFound => Problem::not_found(queue.as_str(), key.as_str()),
        queue::GetError::Done => Problem::done(queue.as_str(), key.as_str()),
        queue::GetError::Unavailable(why) => unavailable(why),
    }
}

pub(crate) fn patch_refused(
    error: &queue::PatchError,
    queue: &QueueName,
    key: &Key,
    version: Option<Seq>,
) -> Problem {
    let (queue, key) = (queue.as_str(), key.as_str());
    match error {
        queue::PatchError::NotFound => Problem::not_found(queue, key),
        queue::PatchError::Done => Problem::done(queue, key),
        queue::PatchError::Leased => Problem::leased(queue, key),
        queue::PatchError::VersionMismatch { current } => version_mismatch(version, *current),
        queue::PatchError::TooFar { limit_ms } => Problem::too_far(*limit_ms),
        queue::PatchError::ExpiresFirst { expire_at, due_at } => {
            Problem::expires_first(expire_at.as_ms(), due_at.as_ms())
        }
        queue::PatchError::Dead => Problem::dead(queue, key),
        queue::PatchError::Timeline => Problem::timeline(queue, key),
        queue::PatchError::NotRising { index } => not_rising(*index),
        queue::PatchError::Unavailable(why) => unavailable(why),
    }
}

/// Instants of a timeline that do not rise. The parser refuses them first.
fn not_rising(index: usize) -> Problem {
    let (path, what) = (format!("timeline[{index}]"), "is not after the instant before it");
    Problem::bad_request(&BadRequest::member(
        path,
        what,
        "write the instants in the order of time, each once",
    ))
}

pub(crate) fn by_key_refused(
    error: &queue::ByKeyError,
    queue: &QueueName,
    key: &Key,
    version: Option<Seq>,
) -> Problem {
    let (queue, key) = (queue.as_str(), key.as_str());
    match error {
        queue::ByKeyError::NotFound => Problem::not_found(queue, key),
        queue::ByKeyError::Done => Problem::done(queue, key),
        queue::ByKeyError::Dead => Problem::dead(queue, key),
        queue::ByKeyError::Leased => Problem::leased(queue, key),
        queue::ByKeyError::NotLeased => Problem::not_leased(queue, key),
        queue::ByKeyError::VersionMismatch { current } => version_mismatch(version, Some(*current)),
        queue::ByKeyError::Unavailable(why) => unavailable(why),
    }
}

pub(crate) fn cancel_refused(
    error: &queue::CancelError,
    queue: &QueueName,
    key: &Key,
    version: Option<Seq>,
) -> Problem {
    match cancel_refusal(error, version) {
        Ok(outcome) => Problem::cancel(outcome, queue.as_str(), key.as_str()),
        Err(problem) => *problem,
    }
}

/// The definite outcome in a refusal, or the problem that there is none.
pub(super) fn cancel_refusal(
    error: &queue::CancelError,
    version: Option<Seq>,
) -> Result<CancelOutcome, Box<Problem>> {
    match error {
        queue::CancelError::NotFound => Ok(CancelOutcome::NotFound),
        queue::CancelError::Done => Ok(CancelOutcome::Done),
        queue::CancelError::Leased => Ok(CancelOutcome::Leased),
        queue::CancelError::VersionMismatch { current } => Err(version_mismatch(version, *current).into()),
        queue::CancelError::Unavailable(why) => Err(unavailable(why).into()),
    }
}

pub(crate) fn redrive_refused(error: &queue::RedriveError, queue: &QueueName, id: u64) -> Problem {
    match error {
        queue::RedriveError::NotFound => Problem::not_dead(queue.as_str(), &format!("the id {id}")),
        queue::RedriveError::Live { version, .. } => Problem::key_is_live(queue.as_str(), version.0),
        queue::RedriveError::Draining => Problem::draining(queue.as_str()),
        queue::RedriveError::BacklogFull { limit } => Problem::backlog_full(queue.as_str(), *limit),
        queue::RedriveError::Unavailable(why) => unavailable(why),
    }
}

pub(crate) fn nack_refused(error: &queue::NackError) -> Problem {
    match error {
        queue::NackError::TooFar { limit_ms } => Problem::too_far(*limit_ms),
        queue::NackError::Unavailable(why) => unavailable(why),
    }
}

pub(crate) fn advance_refused(error: &queue::AdvanceError) -> Problem {
    match error {
        queue::AdvanceError::NotVirtual => Problem::no_virtual_clock(),
        queue::AdvanceError::Busy => Problem::busy(error.to_string(), 1),
        queue::AdvanceError::Unavailable(why) => unavailable(why),
        other => Problem::bad_request(&BadRequest::member("by", other.to_string(), "advance by less")),
    }
}

impl From<queue::Unavailable> for Refusal {
    fn from(why: queue::Unavailable) -> Self {
        unavailable(&why).into()
    }
}

pub(crate) fn unavailable(why: &queue::Unavailable) -> Problem {
    match why {
        queue::Unavailable::Closed => Problem::stopping(),
        queue::Unavailable::Unowned | queue::Unavailable::Late { .. } => {
            Problem::new(ProblemKind::Starting, why.to_string()).with_hint("try again").with_retry_after_s(1)
        }
        queue::Unavailable::ReadOnly { why } => Problem::read_only(why),
        queue::Unavailable::Indeterminate { why } => Problem::indeterminate(why),
        queue::Unavailable::Full { needed, room } => Problem::storage_full(*needed, *room),
        queue::Unavailable::NoDescriptors => Problem::no_descriptors(),
    }
}

fn version_mismatch(wanted: Option<Seq>, current: Option<Seq>) -> Problem {
    Problem::version_mismatch(wanted.map_or(0, |wanted| wanted.0), current.map(|current| current.0))
}

/// An answer of the queue that this file does not know. It is a mistake of the program, because both crates come from
/// one workspace.
pub(crate) fn unknown(error: &dyn std::error::Error) -> Problem {
    tracing::error!(event = events::CALL_FAILED, %error, "an answer of the queue has no translation");
    Problem::internal(error.to_string())
}
