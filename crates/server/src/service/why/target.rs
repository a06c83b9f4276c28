//! The sentences about the target of a queue, for the answer to "why has this not run yet".

use tickwheel_api::{AttemptBody, AttemptOutcome, TargetState, time};
use tickwheel_queue::{TaskView, Timestamp};

use super::words::{argument, at, length, quoted};
use crate::targets::TargetFacts;

/// The name of a target for people, its kind and its place: "`webhook https://shop.example/hooks`".
pub(super) fn name(target: &TargetFacts) -> String {
    quoted(format!("{} {}", target.row.kind.name(), target.row.to).trim_end())
}

/// The last attempt to send this task, and not an earlier one of the same key.
pub(super) fn last_attempt<'t>(task: &TaskView, target: &'t TargetFacts) -> Option<&'t AttemptBody> {
    target.last_attempt.as_ref().filter(|last| last.id == task.id)
}

/// Whether nothing is sent before an operator does something.
pub(super) fn waits_for_operator(target: &TargetFacts) -> bool {
    matches!(target.row.state, TargetState::Disabled | TargetState::Paused)
}

/// When an attempt ended (ms since 1970).
pub(super) fn ended_ms(attempt: &AttemptBody) -> i64 {
    attempt.at_ms.saturating_add(i64::try_from(attempt.took_ms).unwrap_or(i64::MAX))
}

/// Whether an attempt ended without a confirmation.
pub(super) fn has_failed(attempt: &AttemptBody) -> bool {
    attempt.outcome != AttemptOutcome::Acked
}

/// An attempt that has not counted: the target failed, or it was a try of a task that the server had in hand.
pub(super) fn uncounted(attempt: &AttemptBody, target: &TargetFacts) -> String {
    let when = time::format(ended_ms(attempt));
    let why = because(attempt.reason.as_deref(), Some(target));
    let of_target = match attempt.outcome {
        AttemptOutcome::Blocked => " It does not count, because it is the operator who blocks the address.",
        AttemptOutcome::GivenBack => " It does not count, because it is the target that failed.",
        _ => "",
    };
    format!("The last attempt to send the task failed at {when}{why}.{of_target}")
}

/// The end of a clause about a failure. The reason is not written again if it stands in the sentence about the target.
pub(super) fn because(reason: Option<&str>, target: Option<&TargetFacts>) -> String {
    let is_told = reason.is_some() && target.is_some_and(|target| target.row.reason.as_deref() == reason);
    match reason {
        Some(_) if is_told => " for that reason".to_owned(),
        Some(reason) => format!(": {}", quoted(reason)),
        None => String::new(),
    }
}

/// The state of a target, for a task that waits for it. `is_held_up`: the queue itself lets nothing through now.
pub(super) fn state(now: Timestamp, target: &TargetFacts, is_held_up: bool) -> String {
    let row = &target.row;
    let subject = format!("The target of its queue, {},", name(target));
    let since = row.since_ms.map(time::format).unwrap_or_default();
    let reason = row.reason.as_deref().map(quoted);
    let last_failure =
        reason.as_ref().map(|reason| format!(" Its last failure: {reason}.")).unwrap_or_default();
    let resume = format!("`tickwheel target resume {}`", argument(&row.queue));
    match row.state {
        TargetState::Closed if !target.is_started => format!(
            "{subject} is not started yet, because the server has not read its targets. If that lasts, its log says why (`targets_not_read`)."
        ),
        TargetState::Closed => format!("{subject} {}{last_failure}", closed(target, is_held_up)),
        TargetState::Open => {
            let until = row.next_try_ms.and_then(Timestamp::from_ms);
            if let Some(until) = until.filter(|_| target.is_silence_asked) {
                let left = length(until.ms_since(now));
                return format!(
                    "{subject} is `open` since {since}, because it asked for silence until {} (`Retry-After`).{last_failure} Nothing is \
                     sent until then, in {left}, and {resume} makes the server try at once.",
                    at(until)
                );
            }
            let reason = reason.unwrap_or_else(|| "it does not say why".to_owned());
            let until = until.map_or_else(
                || "a moment".to_owned(),
                |until| format!("the next try at {}, in {}", at(until), length(until.ms_since(now))),
            );
            format!(
                "{subject} is `open` since {since}, because it failed: {reason}. Nothing is sent until {until}, and {resume} makes the \
                 server try at once."
            )
        }
        TargetState::HalfOpen => format!(
            "{subject} is `half_open` since {since}: it has failed, and the server sends one message at a time to see whether it works \
             again.{last_failure}"
        ),
        TargetState::Paused => format!(
            "{subject} is `paused`, at least since {since}: an operator paused it. Nothing is sent until {resume}.{last_failure}"
        ),
        TargetState::Disabled => {
            let reason = reason.unwrap_or_else(|| "it is not known why".to_owned());
            let queue = argument(&row.queue);
            if !target.is_readable {
                return format!(
                    "{subject} is `disabled`: {reason}. Nothing is sent until `tickwheel target set {queue}` sets it anew, and \
                     `tickwheel target delete {queue}` leaves the tasks to workers."
                );
            }
            let remedy = if target.is_usable {
                format!("Nothing is sent until {resume}.")
            } else {
                format!(
                    "The server cannot send to it: start it with what it lacks, or set the target anew with all its options (`tickwheel \
                     target set {}`).",
                    queue
                )
            };
            format!("{subject} is `disabled`, at least since {since}: {reason}. {remedy}")
        }
    }
}

/// Where the next attempt of a task goes that waits after a failure.
pub(super) fn next_attempt(task: &TaskView, target: &TargetFacts) -> String {
    let queue = argument(&target.row.queue);
    let key = task.key.as_str();
    let run = if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte)) {
        format!("`tickwheel run {queue} {key}`")
    } else {
        format!("`tickwheel run {queue}` with its key")
    };
    format!("It goes to the target of its queue, {}; {run} sends it now.", name(target))
}

/// A target that takes messages: what the task waits for behind it.
fn closed(target: &TargetFacts, is_held_up: bool) -> String {
    let TargetFacts { limit, concurrency, .. } = target;
    let in_flight = target.row.in_flight;
    if is_held_up {
        return "takes messages.".to_owned();
    }
    if in_flight < *limit {
        return format!(
            "takes messages, and the task is sent in its turn: {in_flight} of {limit} messages are under way."
        );
    }
    if limit < concurrency {
        return format!(
            "has {in_flight} of {limit} messages under way: it has failed lately, so the server begins slowly, up to {concurrency} \
             (`concurrency`)."
        );
    }
    format!("has {in_flight} of {limit} messages under way (`concurrency`), and the task waits for its turn.")
}

/// A task that is done, if the target has confirmed its key; `None`: it was another's work. The key alone is known of a done task.
pub(super) fn confirmed(target: &TargetFacts) -> Option<String> {
    let last = target.last_attempt.as_ref().filter(|last| !has_failed(last))?;
    let when = time::format(ended_ms(last));
    Some(format!(
        "The task is done. The target of its queue, {}, confirmed a task with this key at {when}.",
        name(target)
    ))
}
