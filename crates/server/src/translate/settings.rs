//! Translates the settings of queues between the API and the queue.

use tickwheel_api as api;
use tickwheel_api::Problem;
use tickwheel_queue as queue;
use tickwheel_queue::{QueueName, Timestamp};

use crate::translate;

/// Settings of a request, for the queue.
pub(crate) fn settings(body: api::SettingsBody) -> queue::QueueSettings {
    let api::SettingsBody {
        max_in_flight,
        max_in_flight_per_group,
        rate,
        burst,
        max_backlog,
        default_lease_ms,
        retry,
        history,
    } = body;
    let rate = rate.map(|api::RateBody { tasks, per_ms }| {
        let burst = burst.unwrap_or(tasks);
        queue::Rate { tasks, per_ms, burst }
    });
    let history = history.map(|api::HistoryBody { keep_ms, keys }| queue::Retention { keep_ms, keys });
    let retry = retry.map(translate::retry);
    queue::QueueSettings {
        max_in_flight,
        max_in_flight_per_group,
        rate,
        max_backlog,
        default_lease_ms,
        retry,
        history,
    }
}

pub(crate) fn settings_body(settings: &queue::QueueSettings) -> api::SettingsBody {
    let queue::QueueSettings {
        max_in_flight,
        max_in_flight_per_group,
        rate,
        max_backlog,
        default_lease_ms,
        retry,
        history,
    } = settings.clone();
    let history = history.map(|queue::Retention { keep_ms, keys }| api::HistoryBody { keep_ms, keys });
    api::SettingsBody {
        max_in_flight,
        max_in_flight_per_group,
        rate: rate.map(|queue::Rate { tasks, per_ms, burst: _ }| api::RateBody { tasks, per_ms }),
        burst: rate.map(|rate| rate.burst),
        max_backlog,
        default_lease_ms,
        retry: retry.map(translate::retry_body),
        history,
    }
}

/// A queue as the API shows it.
pub(crate) fn queue_body(view: &queue::QueueView) -> api::QueueBody {
    let until = view.paused_until.filter(|until| *until < Timestamp::MAX);
    api::QueueBody {
        counts: translate::queue_counts(&view.counts),
        exists: view.is_known(),
        paused_until_ms: until.map(Timestamp::as_ms),
        settings: settings_body(&view.settings),
    }
}

/// A change of a queue.
pub(crate) fn change(queue: &QueueName, change: queue::QueueChange) -> queue::ChangeQueue {
    queue::ChangeQueue { queue: queue.clone(), change }
}

pub(crate) fn change_refused(error: &queue::QueueError, queue: &QueueName) -> Problem {
    match error {
        queue::QueueError::Invalid { what } => {
            Problem::bad_request(&api::BadRequest::body(format!("has {what}"), "leave it out for no limit"))
        }
        queue::QueueError::TooMany { limit } => {
            Problem::too_many("queues with settings, a pause, a drain or a target", *limit)
        }
        queue::QueueError::TooManyTargets { limit } => Problem::too_many("queues with a target", *limit),
        queue::QueueError::TargetTooLong { limit } => {
            let what = format!("has a target of more than {limit} bytes");
            Problem::bad_request(&api::BadRequest::body(what, "make the target shorter"))
        }
        queue::QueueError::NotEmpty { live, dead, schedules } => {
            Problem::queue_not_empty(queue.as_str(), *live, *dead, *schedules)
        }
        queue::QueueError::Unavailable(why) => translate::unavailable(why),
    }
}
