//! Dead tasks: the request and the answer of a redrive.

use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::body::{Meaning, Slots, body, role, two_of};
use crate::choice::choice;
use crate::kind::{Kind, choice, count, flag, key, list, number};
use crate::openapi::schema::Rule;
use crate::part::{has, may, unless};

/// Maximum number of tasks that one call names, or redrives if it names none.
pub const REDRIVE_MAX: usize = 1_000;

body! {
    /// The dead tasks to redrive: one of the members, or none for all dead tasks of the queue. A call redrives at most 1,000.
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
    }
    later: &["tag", "reason"];
    elsewhere: &[("queue", "it stands in the path: POST /v1/queues/{q}/dead/redrive")];
    rules: &[Rule::OneOrNone(&["key", "id", "keys", "ids"])];
    first: |slots| one_of_them(two_of::<Self>(slots));
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
/// to 1,000, and an empty body for all, up to 1,000 a call.
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
}

impl Meaning for RedriveBody {
    type Members = RedriveMembers;

    fn of_members(members: RedriveMembers, _: Option<Self>, _: Slots<'_, '_>) -> Result<Self, BadRequest> {
        let RedriveMembers { key, id, keys, ids } = members;
        let one = key.map(Self::Key).or(id.map(Self::Id));
        Ok(one.or(keys.map(Self::Keys)).or(ids.map(Self::Ids)).unwrap_or(Self::All))
    }

    fn to_members(&self) -> RedriveMembers {
        let none = RedriveMembers::default();
        match self.clone() {
            Self::All => none,
            Self::Key(key) => RedriveMembers { key: Some(key), ..none },
            Self::Id(id) => RedriveMembers { id: Some(id), ..none },
            Self::Keys(keys) => RedriveMembers { keys: Some(keys), ..none },
            Self::Ids(ids) => RedriveMembers { ids: Some(ids), ..none },
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

    #[test]
    fn which_tasks_are_meant() {
        for (text, body) in [
            ("", RedriveBody::All),
            ("{}", RedriveBody::All),
            (r#"{"key":"a"}"#, RedriveBody::Key("a".to_owned())),
            (r#"{"id":7}"#, RedriveBody::Id(7)),
            (r#"{"keys":["a","b"]}"#, RedriveBody::Keys(vec!["a".to_owned(), "b".to_owned()])),
            (r#"{"ids":[7]}"#, RedriveBody::Ids(vec![7])),
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
            (r#"{"all":true}"#, "`all`: is not a member of this request"),
        ] {
            assert_eq!(RedriveBody::parse(text.as_bytes()).expect_err(text).to_string(), what);
        }
    }
}
