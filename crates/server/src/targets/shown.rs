//! Targets as the API shows them.

use std::time::Duration;

use tickwheel_api::{
    AttemptBody, AttemptOutcome, ConnectionRow, ConnectionState, PushCounts, TargetBody, TargetKind,
    TargetRow, TargetState, TargetTestBody, TargetView,
};
use tickwheel_push::broker::LinkState;
use tickwheel_push::{AttemptRecord, Figures, Report};
use tickwheel_queue::QueueName;

use super::stored::Stored;
use crate::translate::twin::Twin;

/// A target and its state.
pub(super) fn view(
    queue: &QueueName,
    stored: Stored,
    version: u64,
    running: Option<&tickwheel_push::TargetView>,
) -> TargetView {
    let (state, reason, in_flight, attempts) = state(running);
    TargetView {
        queue: queue.as_str().to_owned(),
        target: stored.target,
        version,
        state,
        reason,
        in_flight,
        attempts,
    }
}

/// A target in a list.
pub(super) fn row(
    queue: &QueueName,
    target: Option<&TargetBody>,
    running: Option<&tickwheel_push::TargetView>,
) -> TargetRow {
    let (state, reason, in_flight, attempts) = state(running);
    let kind = target.map_or(TargetKind::Webhook, |target| target.kind);
    let to = target.map_or_else(String::new, place);
    TargetRow { queue: queue.as_str().to_owned(), kind, to, state, reason, in_flight, attempts }
}

/// A named connection. `now_ms`: the time (ms since 1970).
pub(super) fn connection(name: &str, kind: TargetKind, state: &LinkState, now_ms: i64) -> ConnectionRow {
    let since = |age: &Duration| now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let (state, since_ms, reason) = match state {
        LinkState::Unused => (ConnectionState::Unused, None, None),
        LinkState::Up(age) => (ConnectionState::Up, Some(since(age)), None),
        LinkState::Down(age, reason) => (ConnectionState::Down, Some(since(age)), Some(reason.to_string())),
    };
    ConnectionRow { name: name.to_owned(), kind, state, since_ms, reason }
}

fn state(running: Option<&tickwheel_push::TargetView>) -> (TargetState, Option<String>, u64, PushCounts) {
    let Some(running) = running else {
        // Between the store and the start of the runner.
        return (TargetState::Closed, None, 0, PushCounts::default());
    };
    let reason = running.reason.as_deref().map(str::to_owned);
    (running.state.twin(), reason, running.in_flight as u64, counts(&running.figures))
}

/// The place of a target in one line. The query of a URL may have a secret, so it is left out.
fn place(target: &TargetBody) -> String {
    let name = match target.kind {
        TargetKind::Webhook => {
            let url = target.url.as_deref().unwrap_or_default();
            return url.split(['?', '#']).next().unwrap_or_default().to_owned();
        }
        TargetKind::Kafka => &target.topic,
        TargetKind::Amqp => &target.exchange,
        TargetKind::Nats => &target.subject,
        TargetKind::Redis if target.list.is_some() => &target.list,
        TargetKind::Redis => &target.stream,
        TargetKind::Beanstalk => &target.tube,
    };
    let connection = target.connection.as_deref().unwrap_or_default();
    format!("{connection}: {}", name.as_deref().unwrap_or_default())
}

fn counts(figures: &Figures) -> PushCounts {
    let mut counts = PushCounts::default();
    for (name, count) in figures.outcomes() {
        match outcome(name) {
            AttemptOutcome::Acked => counts.acked = count,
            AttemptOutcome::Failed => counts.failed = count,
            AttemptOutcome::Dead => counts.dead = count,
            AttemptOutcome::GivenBack => counts.given_back = count,
            AttemptOutcome::Blocked => counts.blocked = count,
        }
    }
    counts
}

/// The outcome with this word.
fn outcome(name: &str) -> AttemptOutcome {
    let found = AttemptOutcome::ALL.into_iter().find(|outcome| outcome.name() == name);
    found.expect("the API has a word for each outcome")
}

/// An attempt of the past.
pub(super) fn attempt(record: &AttemptRecord) -> AttemptBody {
    AttemptBody {
        key: record.key.as_str().to_owned(),
        id: record.id,
        attempt: record.attempt,
        at_ms: record.at.as_ms(),
        took_ms: record.took_ms,
        outcome: outcome(record.outcome),
        status: record.status,
        reason: record.reason.as_deref().map(str::to_owned),
        answer: answer(&record.answer),
    }
}

/// The result of a test message.
pub(super) fn test(report: &Report, took_ms: u64) -> TargetTestBody {
    TargetTestBody {
        outcome: outcome(report.outcome.name()),
        took_ms,
        status: report.status,
        reason: report.outcome.reason().map(|reason| reason.to_string()),
        answer: answer(&report.answer),
    }
}

/// The text of an answer's first bytes. Bytes that are no text are shown as `\u{fffd}`.
fn answer(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_word_of_the_api() {
        for name in tickwheel_push::Outcome::NAMES {
            assert_eq!(outcome(name).name(), name);
        }
        for state in tickwheel_push::TargetState::ALL {
            assert_eq!(state.twin().name(), state.name());
        }
    }

    #[test]
    fn no_query_is_shown_in_a_list() {
        let text = br#"{"kind":"webhook","url":"https://a.example/hooks/{queue}?token=secret"}"#;
        assert_eq!(place(&TargetBody::parse(text).expect("a target")), "https://a.example/hooks/{queue}");
    }
}
