//! Dead tasks: the request and the answer of a redrive.

use crate::declare::{
    Mapped, RawMembers, Rule, ValueCodec, body, choice, count, flag, has, key, list, may, number, role,
    schema, two_of, unless,
};
use crate::tasks::filter::{TaskFilter, filter, has_no_state};
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;

/// Maximum number of tasks that one call names, or redrives if it names none.
pub const REDRIVE_MAX: usize = 1_000;

body! {
    /// The dead tasks to redrive: one of `key`, `id`, `keys`, `ids` and `filter`, or none for all dead tasks of the queue. A call without `filter` redrives at most 1,000.
    #[derive(Default)]
    pub(crate) struct RedriveMembers: members "Redrive" {
        /// The key of the dead task.
        key: Option<String> = may(key("order:1"));
        /// The id of the dead task.
        id: Option<u64> = may(number(1, INTEGER_MAX));
        /// The keys of several dead tasks.
        keys: Option<Vec<String>> = may(list(key("order:1"), "write a list").of(1, REDRIVE_MAX).checked(are_few));
        /// The ids of several dead tasks.
        ids: Option<Vec<u64>> = may(list(number(1, INTEGER_MAX), "write a list").of(1, REDRIVE_MAX).checked(are_few));
        /// The dead tasks that this filter finds, however many they are. If there are many, a job redrives them.
        filter: Option<TaskFilter> = may(filter().checked(has_no_state).described(|| schema::of("DeadFilter")));
        /// Whether to count the tasks of `filter` and change nothing.
        dry_run: bool = unless(false, flag());
    }
    elsewhere: &[
        ("tag", IN_FILTER),
        ("group", IN_FILTER),
        ("key_contains", IN_FILTER),
        ("due_from", IN_FILTER),
        ("due_to", IN_FILTER),
        ("reason", IN_FILTER),
        ("failure", IN_FILTER),
        ("group_id", IN_FILTER),
        ("queue", "it stands in the path: POST /v1/queues/{q}/dead/redrive"),
    ];
    rules: &[Rule::OneOrNone(&["key", "id", "keys", "ids", "filter"]), Rule::With("dry_run", "filter")];
    first: |raw: RawMembers<'_, '_>| one_of_them(two_of::<Self>(&raw[..DRY_RUN]));
    check: |body: &Self, raw| is_of_filter(body, raw);
}

const IN_FILTER: &str = "it stands in `filter`";
/// The index of `dry_run`. The members before it say which tasks are meant.
const DRY_RUN: usize = 5;

/// Refuses `dry_run` without `filter`: the other members name tasks that the caller knows.
fn is_of_filter(body: &RedriveMembers, raw: RawMembers<'_, '_>) -> Result<(), BadRequest> {
    if body.filter.is_some() || raw[DRY_RUN].is_none() {
        return Ok(());
    }
    let hint = "add `filter`, which may be `{}` for every dead task, or leave it out";
    Err(BadRequest::member("dry_run", "is for a redrive by filter", hint))
}

fn one_of_them(named: Option<(&str, &str)>) -> Result<(), BadRequest> {
    let Some((first, second)) = named else { return Ok(()) };
    let what = format!("`{first}` and `{second}` both say which tasks are meant");
    Err(BadRequest::member(second, what, "keep one of them"))
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn are_few<T>(path: &str, tasks: &Vec<T>) -> Result<(), BadRequest> {
    if (1..=REDRIVE_MAX).contains(&tasks.len()) {
        return Ok(());
    }
    let what = format!("names {} tasks, not from 1 to {REDRIVE_MAX}", tasks.len());
    let hint = "send more than 1000 in several calls, or no member at all for every dead task";
    Err(BadRequest::member(path, what, hint))
}

/// The body of `POST /v1/queues/{q}/dead/redrive`: `{"key": "order:1"}` or `{"id": 7}` for one task, `{"keys": [...]}` or `{"ids": [...]}` for up
/// to 1,000, `{"filter": {...}}` for all that a filter finds, and an empty body for all, up to 1,000 a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RedriveBody {
    /// All dead tasks of the queue, in the order in which the queue would remove them.
    #[default]
    All,
    /// The key of the dead task.
    Key(String),
    /// The id of the dead task.
    Id(u64),
    /// The dead tasks with these keys.
    Keys(Vec<String>),
    /// The dead tasks with these ids.
    Ids(Vec<u64>),
    /// The dead tasks that a filter finds. Its state is not looked at.
    Filter {
        /// The filter.
        filter: TaskFilter,
        /// Whether to count the tasks and change nothing.
        dry_run: bool,
    },
}

impl Mapped for RedriveBody {
    type Members = RedriveMembers;

    fn from_members(
        members: RedriveMembers,
        _: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let RedriveMembers { key, id, keys, ids, filter, dry_run } = members;
        let one = key.map(Self::Key).or(id.map(Self::Id));
        let many = filter.map(|filter| Self::Filter { filter, dry_run });
        Ok(one.or(keys.map(Self::Keys)).or(ids.map(Self::Ids)).or(many).unwrap_or(Self::All))
    }

    fn to_members(&self) -> RedriveMembers {
        let none = RedriveMembers::default();
        match self.clone() {
            Self::All => none,
            Self::Key(key) => RedriveMembers { key: Some(key), ..none },
            Self::Id(id) => RedriveMembers { id: Some(id), ..none },
            Self::Keys(keys) => RedriveMembers { keys: Some(keys), ..none },
            Self::Ids(ids) => RedriveMembers { ids: Some(ids), ..none },
            Self::Filter { filter, dry_run } => {
                RedriveMembers { filter: Some(TaskFilter { state: None, ..filter }), dry_run, ..none }
            }
        }
    }
}

role!(functions request RedriveBody);

choice! {
    /// The outcome of the redrive for one task.
    pub enum RedriveOutcome {
        /// The task is ready again.
        Redriven = "redriven",
        /// There is no such dead task.
        NotFound = "not_found",
        /// A live task has the same key.
        Live = "live",
        /// The queue is being drained.
        Draining = "draining",
        /// The queue has as many live tasks as its settings allow.
        BacklogFull = "backlog_full",
    }
}

body! {
    /// The result of a redrive of several tasks.
    ///
    /// An example: `{"matched": 3, "redriven": 2, "results": ["redriven", "live", "redriven"], "more": false}`.
    pub struct RedriveAnswer: answer "Redriven" {
        /// Number of dead tasks that the call tried to redrive.
        matched: usize = has(count());
        /// Number of tasks that are ready again.
        redriven: usize = has(count());
        /// The outcome for each task, in the order of the request.
        results: Vec<RedriveOutcome> = has(list(choice(), ""));
        /// Whether the queue has dead tasks that this call did not try to redrive.
        more: bool = has(flag());
        /// Number of dead tasks that a call without a body left out, because a later task took their keys.
        ///
        /// Such a task is redriven by its id, once no live task has the key. Each call counts these tasks again.
        keyless: usize = unless(0, count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::task::DeathReason;

    #[test]
    fn which_tasks_are_meant() {
        for (text, body) in [
            ("", RedriveBody::All),
            ("{}", RedriveBody::All),
            (r#"{"key":"a"}"#, RedriveBody::Key("a".to_owned())),
            (r#"{"id":7}"#, RedriveBody::Id(7)),
            (r#"{"keys":["a","b"]}"#, RedriveBody::Keys(vec!["a".to_owned(), "b".to_owned()])),
            (r#"{"ids":[7]}"#, RedriveBody::Ids(vec![7])),
            (r#"{"filter":{}}"#, RedriveBody::Filter { filter: TaskFilter::default(), dry_run: false }),
            (
                r#"{"filter":{"failure":"timed\nout","reason":"expired"},"dry_run":true}"#,
                RedriveBody::Filter {
                    filter: TaskFilter {
                        failure: Some("timed\nout".to_owned()),
                        reason: Some(DeathReason::Expired),
                        ..TaskFilter::default()
                    },
                    dry_run: true,
                },
            ),
        ] {
            let read = RedriveBody::parse(text.as_bytes()).expect(text);
            assert_eq!(read, body);
            assert_eq!(RedriveBody::parse(&read.to_json()), Ok(body));
        }
        for (text, what) in [
            (r#"{"key":"a","id":7}"#, "`id`: `key` and `id` both say which tasks are meant"),
            (r#"{"ids":[]}"#, "`ids`: names 0 tasks, not from 1 to 1000"),
            (r#"{"ids":[1,0]}"#, "`ids[1]`: 0 is not from 1 to 9007199254740992"),
            (r#"{"keys":"a"}"#, "`keys`: expected an array, got a string"),
            (r#"{"id":7,"filter":{}}"#, "`filter`: `id` and `filter` both say which tasks are meant"),
            (
                r#"{"filter":{"state":"dead"}}"#,
                "`filter.state`: is not for a redrive, which takes dead tasks only",
            ),
            (r#"{"filter":{"reason":"tired"}}"#, "`filter.reason`: `tired` is not known"),
            (r#"{"filter":{"failure":""}}"#, "`filter.failure`: has 0 bytes, not from 1 to 1024"),
            (r#"{"filter":{"group_id":"7"}}"#, "`filter.group_id`: `7` is not the id of a group"),
            (r#"{"dry_run":true}"#, "`dry_run`: is for a redrive by filter"),
            (r#"{"ids":[7],"dry_run":false}"#, "`dry_run`: is for a redrive by filter"),
            (r#"{"reason":"expired"}"#, "`reason`: is not a member of this request"),
            (r#"{"all":true}"#, "`all`: is not a member of this request"),
        ] {
            assert_eq!(RedriveBody::parse(text.as_bytes()).expect_err(text).to_string(), what);
        }
    }
}
