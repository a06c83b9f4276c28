//! Targets as the API shows them.

use std::time::Duration;

use tickwheel_api::{
    AttemptBody, AttemptOutcome, ConnectionRow, ConnectionState, PushCounts, TargetBody, TargetKind,
    TargetRow, TargetState, TargetTestBody, TargetView,
};
use tickwheel_push::broker::LinkState;
use tickwheel_push::{AttemptRecord, Figures, Pause, Report};
use tickwheel_queue::{QueueName, TargetRecord};
use tokio::time::Instant;

use super::facts::HandState;
use super::made;
use super::stored::{Stored, kind_of};

/// A target and its state. `now_ms`: the time (ms since 1970).
pub(super) fn view(
    queue: &QueueName,
    stored: Stored,
    version: u64,
    running: Option<&tickwheel_push::TargetView>,
    now_ms: i64,
) -> TargetView {
    let shown = State::of(running, Some(&stored), now_ms);
    let State { state, since_ms, next_try_ms, reason, in_flight, attempts } = shown;
    let queue = queue.as_str().to_owned();
    TargetView {
        queue,
        target: stored.target,
        version,
        state,
        since_ms,
        next_try_ms,
        reason,
        in_flight,
        attempts,
    }
}

/// A target in a list. `stored`: what `record` says, unless it cannot be read. `now_ms`: the time (ms since 1970).
pub(super) fn row(
    queue: &QueueName,
    record: &TargetRecord,
    stored: Option<&Stored>,
    running: Option<&tickwheel_push::TargetView>,
    now_ms: i64,
) -> TargetRow {
    let target = stored.map(|stored| &stored.target);
    let shown = State::of(running, stored, now_ms);
    let State { state, since_ms, next_try_ms, reason, in_flight, attempts } = shown;
    // Each list shows a kind. So a target whose kind cannot be read is shown as the most common one.
    let kind = target.map(|target| target.kind).or_else(|| kind_of(record)).unwrap_or(TargetKind::Webhook);
    let (queue, to) = (queue.as_str().to_owned(), target.map_or_else(String::new, place));
    TargetRow { queue, kind, to, state, since_ms, next_try_ms, reason, in_flight, attempts }
}

/// A named connection. `now_ms`: the time (ms since 1970).
pub(super) fn connection(name: &str, kind: TargetKind, state: &LinkState, now_ms: i64) -> ConnectionRow {
    let (state, since_ms, reason) = match state {
        LinkState::Unused => (ConnectionState::Unused, None, None),
        LinkState::Up(age) => (ConnectionState::Up, Some(before(now_ms, *age)), None),
        LinkState::Down(age, reason) => {
            (ConnectionState::Down, Some(before(now_ms, *age)), Some(reason.to_string()))
        }
    };
    ConnectionRow { name: name.to_owned(), kind, state, since_ms, reason }
}

/// The instant that was this long ago (ms since 1970).
fn before(now_ms: i64, age: Duration) -> i64 {
    now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// The instant `at`, which is to come (ms since 1970).
fn after(now_ms: i64, at: Instant) -> i64 {
    let left = at.saturating_duration_since(Instant::now());
    now_ms.saturating_add(i64::try_from(left.as_millis()).unwrap_or(i64::MAX))
}

/// The members about the state of a target.
struct State {
    state: TargetState,
    since_ms: Option<i64>,
    next_try_ms: Option<i64>,
    reason: Option<String>,
    in_flight: u64,
    attempts: PushCounts,
}

impl State {
    /// `running` is `None` if the target is stored, and its runner has not begun yet: the state is then what `stored` says.
    fn of(running: Option<&tickwheel_push::TargetView>, stored: Option<&Stored>, now_ms: i64) -> Self {
        let pause = if running.is_none() { stored.and_then(made::pause) } else { None };
        let (stored_state, why) = match pause {
            None => (TargetState::Closed, None),
            Some(Pause::Paused) => (TargetState::Paused, None),
            Some(Pause::Disabled(reason)) => (TargetState::Disabled, Some(reason.to_string())),
        };
        Self {
            state: running.map_or(stored_state, |running| running.state),
            since_ms: running.map(|running| before(now_ms, running.since.elapsed())),
            next_try_ms: running.and_then(|running| running.next_try).map(|at| after(now_ms, at)),
            reason: running.and_then(|running| running.reason.as_deref()).map(str::to_owned).or(why),
            in_flight: running.map_or(0, |running| running.in_flight as u64),
            attempts: running.map(|running| counts(&running.figures)).unwrap_or_default(),
        }
    }
}

/// The place of a target in one line. The query of a URL may have a secret, so it is left out.
fn place(target: &TargetBody) -> String {
    let place = target.place().unwrap_or_default();
    if target.kind == TargetKind::Webhook {
        return place.split(['?', '#']).next().unwrap_or_default().to_owned();
    }
    format!("{}: {place}", target.connection.as_deref().unwrap_or_default())
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

/// The state of a task in hand. `now_ms`: the time (ms since 1970).
pub(super) fn hand_state(state: tickwheel_push::HandState, now_ms: i64) -> HandState {
    match state {
        tickwheel_push::HandState::New => HandState::New,
        tickwheel_push::HandState::Sending { since, until } => {
            let since_ms = before(now_ms, since.elapsed());
            let timeout_ms = until.saturating_duration_since(since).as_millis();
            let timeout_ms = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
            HandState::Sending { since_ms, until_ms: since_ms.saturating_add(timeout_ms) }
        }
        tickwheel_push::HandState::Failed { next } => HandState::Failed { next_ms: after(now_ms, next) },
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
    use super::super::stored::StoredPause;
    use super::*;

    #[test]
    fn each_outcome_has_a_word_of_the_api() {
        for name in tickwheel_push::Outcome::NAMES {
            assert_eq!(outcome(name).name(), name);
        }
    }

    #[test]
    fn no_query_is_shown_in_a_list() {
        let text = br#"{"kind":"webhook","url":"https://a.example/hooks/{queue}?token=secret"}"#;
        assert_eq!(place(&TargetBody::parse(text).expect("a target")), "https://a.example/hooks/{queue}");
    }

    /// The story: in the first moment of a server, a target that an answer had disabled was shown as one that works.
    #[test]
    fn a_target_whose_runner_has_not_begun_is_shown_as_it_is_stored() {
        let record = br#"{"target":{"kind":"webhook","url":"https://a.example/"}}"#;
        let stored = |pause| {
            let record = TargetRecord { value: record.to_vec().into(), retry: None };
            Stored { pause, ..Stored::read(&record).expect("a target") }
        };
        let shown = |pause| {
            let State { state, reason, .. } = State::of(None, Some(&stored(pause)), 0);
            (state, reason)
        };
        assert_eq!(shown(None), (TargetState::Closed, None));
        assert_eq!(shown(Some(StoredPause::Paused)), (TargetState::Paused, None));
        let disabled = shown(Some(StoredPause::Disabled("http 410".to_owned())));
        assert_eq!(disabled, (TargetState::Disabled, Some("http 410".to_owned())));
    }
}
