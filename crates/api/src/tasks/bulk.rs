//! Calls that change many tasks at once: cancel, move, purge, redrive.

use crate::declare::{
    Form, Mapped, RawMembers, Rule, Source, ValueCodec, body, count, duration, flag, has, may, members_of,
    object, or, schema, two_of, unless, value,
};
use crate::tasks::filter::{TaskFilter, filter, fits_its_state};
use crate::tasks::task::TaskState;
use crate::text::bad_request::BadRequest;
use crate::text::duration;
use crate::values::due::{at, at_ms};
use serde::ser::Serializer;
use serde_json::Value as Json;
use serde_json::value::RawValue;

/// Maximum number of tasks that a call changes while its caller waits. If there are more, or if finding them takes long, a job does the work.
pub const BULK_MAX: usize = 10_000;

const IN_FILTER: &str = "it stands in `filter`";
const ALL_TASKS: &str = "a purge takes all tasks; POST /v1/queues/{q}/cancel takes a filter";

body! {
    /// The tasks that a bulk cancel ends.
    ///
    /// The body of `POST /v1/queues/{q}/cancel`: `{"filter": {"tag": "vip", "due_to": "2030-01-01T00:00:00Z"}, "dry_run": true}`.
    #[derive(Default)]
    pub struct BulkCancelBody: request "BulkCancel" {
        /// The tasks to cancel. `{}` stands for every task that is not dead; the member is required.
        filter: TaskFilter = has(filter().checked(fits_its_state));
        /// Whether to count the tasks and change nothing.
        dry_run: bool = or(false, flag());
        /// Whether leased tasks are taken from their workers, too.
        revoke: bool = or(false, flag());
    }
    elsewhere: &[
        ("state", IN_FILTER),
        ("tag", IN_FILTER),
        ("due_from", IN_FILTER),
        ("due_to", IN_FILTER),
        ("group", IN_FILTER),
        ("key_contains", IN_FILTER),
        ("key", "it stands in `filter`; one task is cancelled with DELETE /v1/queues/{q}/tasks/{key}, too"),
    ];
}

/// The new due time of the tasks of a bulk move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo {
    /// All tasks get one instant: this many milliseconds after the server received the call (`delay`).
    After(u64),
    /// All tasks get this instant, in milliseconds since 1970 (`at` or `at_ms`). An instant in the past makes them due now.
    At(i64),
    /// Each task moves from its own due time by this many milliseconds: later, or earlier if the number is negative (`by`). No task becomes due before now.
    By(i64),
}

body! {
    /// The tasks that a bulk move changes, and their new due time: one of `delay`, `at`, `at_ms` and `by`.
    ///
    /// The body of `POST /v1/queues/{q}/move`: `{"filter": {"tag": "vip"}, "by": "1h", "dry_run": true}`.
    pub struct BulkMoveBody: request "BulkMove" {
        /// The tasks to move. `{}` stands for every task that is not dead; the member is required. Dead tasks do not move.
        filter: TaskFilter = has(filter().checked(can_move).described(|| schema::of("MoveFilter")));
        /// The new due time.
        to: MoveTo = has(members_of());
        /// Whether to count the tasks and change nothing.
        dry_run: bool = or(false, flag());
        /// Whether leased tasks are taken from their workers, too.
        revoke: bool = or(false, flag());
    }
    elsewhere: &[
        ("state", IN_FILTER),
        ("tag", IN_FILTER),
        ("due_from", IN_FILTER),
        ("due_to", IN_FILTER),
        ("group", IN_FILTER),
        ("key_contains", IN_FILTER),
        ("level", "write the delay itself as `delay`"),
        ("due_at", "write `at` or `at_ms`; `due_at` is the name in answers"),
        ("key", "it stands in `filter`; one task is moved with PATCH /v1/queues/{q}/tasks/{key}, too"),
    ];
    rules: &[Rule::One(&["delay", "at", "at_ms", "by"])];
}

fn can_move(path: &str, filter: &TaskFilter) -> Result<(), BadRequest> {
    let hint = "redrive dead tasks first: POST /v1/queues/{q}/dead/redrive";
    let (member, what) = match (filter.state, filter.of_dead()) {
        (Some(TaskState::Dead), _) => ("state", "`dead` tasks have no due time to move"),
        (_, Some(member)) => (member, "is known of dead tasks only, which have no due time to move"),
        (_, None) => return Ok(()),
    };
    Err(BadRequest::member(format!("{path}.{member}"), what, hint))
}

body! {
    /// The new due time of the tasks: one of the members.
    #[derive(Default)]
    pub(crate) struct MoveMembers: group {
        /// All tasks become due this long after the server received the request.
        delay: Option<u64> = may(duration());
        /// All tasks become due at this instant, in RFC 3339. An instant in the past makes them due now.
        at: Option<i64> = may(at());
        /// All tasks become due at this instant, in milliseconds since 1970.
        at_ms: Option<i64> = may(at_ms());
        /// Each task becomes due this much later than before, or earlier: `1h`, `-1h`. A task that would be due before now is due now.
        by: Option<i64> = may(SignedDuration);
    }
    first: |raw| one_place(two_of::<Self>(raw));
}

fn one_place(named: Option<(&str, &str)>) -> Result<(), BadRequest> {
    let Some((first, second)) = named else { return Ok(()) };
    let what = format!("`{first}` and `{second}` both say where the tasks are moved to");
    Err(BadRequest::member(second, what, "keep one of them"))
}

impl Mapped for MoveTo {
    type Members = MoveMembers;

    fn from_members(
        members: MoveMembers,
        _: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let MoveMembers { delay, at, at_ms, by } = members;
        let to = delay.map(Self::After).or(at.or(at_ms).map(Self::At)).or(by.map(Self::By));
        let hint = "name one of `delay`, `at` and `at_ms`, one instant for all, or `by`, which moves each from its own time";
        to.ok_or_else(|| BadRequest::body("says no time", hint))
    }

    fn to_members(&self) -> MoveMembers {
        let none = MoveMembers::default();
        match *self {
            Self::After(ms) => MoveMembers { delay: Some(ms), ..none },
            Self::At(ms) => MoveMembers { at_ms: Some(ms), ..none },
            Self::By(ms) => MoveMembers { by: Some(ms), ..none },
        }
    }
}

/// A duration that may be negative but not zero.
struct SignedDuration;

impl ValueCodec for SignedDuration {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        let text = value::text(path, raw, "1h")?;
        match duration::parse_signed(&text) {
            Ok(0) => {
                let hint = "write how much later, such as `1h`, or how much earlier, such as `-1h`";
                Err(BadRequest::member(path, "moves nothing", hint))
            }
            Ok(ms) => Ok(ms),
            Err(error) => Err(error.of_member(path)),
        }
    }

    fn write<S: Serializer>(&self, ms: &i64, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration::format_signed(*ms))
    }

    fn schema(&self) -> Json {
        schema::signed_duration()
    }

    fn example(&self) -> String {
        "\"1h\"".to_owned()
    }
}

body! {
    /// The options of a purge, which removes all tasks of a queue.
    ///
    /// The body of `POST /v1/queues/{q}/purge`: `{"dry_run": true}`. An empty body purges.
    #[derive(Copy, Default)]
    pub struct PurgeBody: request "Purge" {
        /// Whether to count the tasks and change nothing.
        dry_run: bool = or(false, flag());
        /// Whether leased tasks are taken from their workers, too.
        revoke: bool = or(false, flag());
    }
    elsewhere: &[("filter", ALL_TASKS), ("state", ALL_TASKS), ("tag", ALL_TASKS)];
}

body! {
    /// The result of a bulk cancel.
    ///
    /// An example: `{"matched": 3, "cancelled": 3}`. A dry run cancels no task.
    #[derive(Copy)]
    pub struct BulkCancelAnswer: answer "BulkCancelled" {
        /// Number of tasks that the filter found.
        matched: u64 = has(count());
        /// Number of tasks that were cancelled.
        cancelled: u64 = has(count());
        /// Number of tasks that were not cancelled, by reason.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
    }
}

body! {
    /// The result of a bulk move.
    ///
    /// An example: `{"matched": 3, "moved": 3}`. A dry run moves no task.
    #[derive(Copy)]
    pub struct BulkMoveAnswer: answer "BulkMoved" {
        /// Number of tasks that the filter found.
        matched: u64 = has(count());
        /// Number of tasks that were moved.
        moved: u64 = has(count());
        /// Number of tasks that were not moved, by reason.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
    }
}

body! {
    /// The result of a purge.
    ///
    /// An example: `{"matched": 3, "purged": 3}`. A dry run removes no task.
    #[derive(Copy)]
    pub struct PurgeAnswer: answer "Purged" {
        /// Number of tasks in the queue, live and dead.
        matched: u64 = has(count());
        /// Number of tasks that were removed.
        purged: u64 = has(count());
        /// Number of tasks that were not removed, by reason.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
    }
}

body! {
    /// The result of a redrive by filter.
    ///
    /// An example: `{"matched": 3, "redriven": 3}`. A dry run redrives no task.
    #[derive(Copy)]
    pub struct BulkRedriveAnswer: answer "BulkRedriven" {
        /// Number of dead tasks that the filter found.
        matched: u64 = has(count());
        /// Number of tasks that are ready again.
        redriven: u64 = has(count());
        /// Number of tasks that stay dead, by reason.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
    }
}

body! {
    /// Number of tasks that were found but not changed, by reason. A reason without tasks is left out.
    #[derive(Copy, Default)]
    pub struct SkippedBody: answer "Skipped" {
        /// Tasks that a worker has, while the request has no `revoke`.
        leased: u64 = unless(0, count());
        /// Tasks that were changed or ended after they were found.
        changed: u64 = unless(0, count());
        /// Tasks with a timeline, which can only be replaced as a whole.
        timeline: u64 = unless(0, count());
        /// Tasks that would expire before the new due time.
        expires_first: u64 = unless(0, count());
        /// Tasks whose new due time is later than the server or the token allows.
        too_far: u64 = unless(0, count());
        /// Dead tasks whose keys live tasks have.
        live: u64 = unless(0, count());
        /// Dead tasks that stay dead because the queue is being drained.
        draining: u64 = unless(0, count());
        /// Dead tasks that stay dead because the queue has as many live tasks as its settings allow.
        backlog_full: u64 = unless(0, count());
    }
}

impl SkippedBody {
    /// Whether nothing was skipped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The reasons that have tasks, with their names on the wire and their counts.
    #[must_use]
    pub fn reasons(&self) -> Vec<(&'static str, u64)> {
        let Self { leased, changed, timeline, expires_first, too_far, live, draining, backlog_full } = *self;
        let all = [
            ("leased", leased),
            ("changed", changed),
            ("timeline", timeline),
            ("expires_first", expires_first),
            ("too_far", too_far),
            ("live", live),
            ("draining", draining),
            ("backlog_full", backlog_full),
        ];
        all.into_iter().filter(|(_, tasks)| *tasks > 0).collect()
    }

    /// Adds the counts of another part of the same call or job.
    pub fn add(&mut self, other: Self) {
        let Self { leased, changed, timeline, expires_first, too_far, live, draining, backlog_full } = other;
        self.leased += leased;
        self.changed += changed;
        self.timeline += timeline;
        self.expires_first += expires_first;
        self.too_far += too_far;
        self.live += live;
        self.draining += draining;
        self.backlog_full += backlog_full;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_and_written() {
        for (text, to) in [
            (r#"{"filter":{},"delay":"30m"}"#, MoveTo::After(1_800_000)),
            (r#"{"filter":{},"at":"1970-01-01T00:00:05Z"}"#, MoveTo::At(5_000)),
            (r#"{"filter":{},"at_ms":7}"#, MoveTo::At(7)),
            (r#"{"filter":{},"by":"1h30m"}"#, MoveTo::By(5_400_000)),
            (r#"{"filter":{},"by":"-1.5s"}"#, MoveTo::By(-1_500)),
        ] {
            let body = BulkMoveBody::parse(text.as_bytes()).expect(text);
            assert_eq!((body.to, body.dry_run, body.revoke), (to, false, false), "{text}");
            assert_eq!(BulkMoveBody::parse(&body.to_json()), Ok(body));
        }
        for (text, what) in [
            (r#"{"by":"1h"}"#, "`filter`: is missing"),
            (r#"{"filter":{}}"#, "the body: says no time"),
            (r#"{"filter":{},"by":"1h","delay":"1h"}"#, "`delay`: `by` and `delay` both say where"),
            (r#"{"filter":{},"by":"0s"}"#, "`by`: moves nothing"),
            (r#"{"filter":{},"by":"-"}"#, "`by`: is empty"),
            (r#"{"filter":{},"by":"--1h"}"#, "`by`: `-1h` is negative"),
            (r#"{"filter":{},"by":3600}"#, "`by`: expected a string"),
            (r#"{"filter":{},"delay":"-1h"}"#, "`delay`: `-1h` is negative"),
            (r#"{"filter":{},"level":3}"#, "`level`: is not a member of this request"),
            (r#"{"filter":{"state":"dead"},"by":"1h"}"#, "`filter.state`: `dead` tasks have no due time"),
        ] {
            let refused = BulkMoveBody::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(refused.starts_with(what), "{refused} instead of {what}");
        }
    }

    #[test]
    fn purges_are_read_and_written() {
        assert_eq!(PurgeBody::parse(b""), Ok(PurgeBody::default()));
        let body = PurgeBody::parse(br#"{"dry_run":true,"revoke":true}"#).expect("a body");
        assert_eq!((body.dry_run, body.revoke), (true, true));
        assert_eq!(PurgeBody::parse(&body.to_json()), Ok(body));
        let refused = PurgeBody::parse(br#"{"filter":{"tag":"vip"}}"#).expect_err("a filter");
        assert!(refused.hint.contains("/cancel takes a filter"), "{refused} {}", refused.hint);
    }

    #[test]
    fn what_was_skipped_is_shown_by_reason() {
        let answer = BulkMoveAnswer { matched: 3, moved: 3, skipped: SkippedBody::default() };
        assert_eq!(serde_json::to_string(&answer).expect("JSON"), r#"{"matched":3,"moved":3}"#);
        let mut skipped = SkippedBody { leased: 1, ..SkippedBody::default() };
        skipped.add(SkippedBody { leased: 1, too_far: 2, ..SkippedBody::default() });
        let text = serde_json::to_string(&PurgeAnswer { matched: 9, purged: 5, skipped }).expect("JSON");
        assert_eq!(text, r#"{"matched":9,"purged":5,"skipped":{"leased":2,"too_far":2}}"#);
        assert_eq!(skipped.reasons(), [("leased", 2), ("too_far", 2)]);
    }

    #[test]
    fn bodies_are_read_and_written() {
        let text = r#"{"filter":{"state":"ready","due_from":"2017-10-02T11:26:33Z","due_to":1506943593001,"tag":"vip"},"dry_run":true}"#;
        let body = BulkCancelBody::parse(text.as_bytes()).expect("a body");
        assert_eq!(body.filter.due_from_ms, Some(1_506_943_593_000));
        assert_eq!(
            (body.filter.due_to_ms, body.dry_run, body.revoke),
            (Some(1_506_943_593_001), true, false)
        );
        assert_eq!(BulkCancelBody::parse(&body.to_json()), Ok(body));
        assert_eq!(BulkCancelBody::parse(br#"{"filter":{}}"#), Ok(BulkCancelBody::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            ("", "`filter`: is missing"),
            (r#"{"tag":"vip"}"#, "`tag`: is not a member of this request"),
            (r#"{"filter":7}"#, "`filter`: expected an object, got the number 7"),
            (r#"{"filter":{"state":"odd"}}"#, "`filter.state`: `odd` is not known"),
            (r#"{"filter":{"tag":""}}"#, "`filter.tag`: `` is no tag"),
            (r#"{"filter":{"due_from":"soon"}}"#, "`filter.due_from`: `soon` is not an RFC 3339 time"),
            (
                r#"{"filter":{"due_from":9,"due_to":8}}"#,
                "`filter.due_to`: 1970-01-01T00:00:00.008Z is before `due_from`, 1970-01-01T00:00:00.009Z",
            ),
            (r#"{"filter":{},"dry_run":1}"#, "`dry_run`: expected true or false, got the number 1"),
        ] {
            let refused = BulkCancelBody::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(refused.starts_with(what), "{refused} instead of {what}");
        }
    }
}
