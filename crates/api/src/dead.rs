//! Tasks that were given up: what a redrive asks, and what it hears.

use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::json::{self, Members, Shape};
use crate::value;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// Tasks that one call names, or redrives if it names none.
pub const REDRIVE_MAX: usize = 1_000;

pub(crate) const SHAPE: Shape = Shape {
    known: &["key", "id", "keys", "ids"],
    later: &["tag", "reason"],
    elsewhere: &[("queue", "it stands in the path: POST /v1/queues/{q}/dead/redrive")],
};

/// The body of `POST /v1/queues/{q}/dead/redrive`: `{"key": "order:1"}` or `{"id": 7}` for one, `{"keys": [...]}` or `{"ids": [...]}` for up
/// to 1,000, and an empty one for all, up to 1,000 a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RedriveBody {
    /// All dead tasks of the queue, those first that are forgotten first.
    #[default]
    All,
    /// The dead task that this key leads to.
    Key(String),
    /// The dead task with this id.
    Id(u64),
    /// The dead tasks that these keys lead to.
    Keys(Vec<String>),
    /// The dead tasks with these ids.
    Ids(Vec<u64>),
}

impl RedriveBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; more than one of the members; a list that is empty or too long.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &SHAPE)?;
        let mut names = members.names();
        let Some(name) = names.next() else { return Ok(Self::All) };
        if let Some(second) = names.next() {
            let what = format!("`{name}` and `{second}` both say which tasks are meant");
            return Err(BadRequest::member(second, what, "keep one of them"));
        }
        let raw = members.get(name).expect("the name was found among the members");
        let list = || {
            let rows = value::array(name, raw, "write a list")?;
            match rows.len() {
                1..=REDRIVE_MAX => Ok(rows.into_iter().enumerate()),
                count => Err(BadRequest::member(
                    name,
                    format!("names {count} tasks, not from 1 to {REDRIVE_MAX}"),
                    "send more than 1000 in several calls, or no member at all for every dead task",
                )),
            }
        };
        Ok(match name {
            "key" => Self::Key(value::text(name, raw, "order:1")?),
            "id" => Self::Id(value::integer(name, raw, 1..=INTEGER_MAX)?),
            "keys" => {
                let key = |(index, raw)| value::text(&format!("keys[{index}]"), raw, "order:1");
                Self::Keys(list()?.map(key).collect::<Result<_, _>>()?)
            }
            _ => {
                let id = |(index, raw)| value::integer(&format!("ids[{index}]"), raw, 1..=INTEGER_MAX);
                Self::Ids(list()?.map(id).collect::<Result<_, _>>()?)
            }
        })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl Serialize for RedriveBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::All => {}
            Self::Key(key) => map.serialize_entry("key", key)?,
            Self::Id(id) => map.serialize_entry("id", id)?,
            Self::Keys(keys) => map.serialize_entry("keys", keys)?,
            Self::Ids(ids) => map.serialize_entry("ids", ids)?,
        }
        map.end()
    }
}

/// What became of one task that was to be redriven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedriveOutcome {
    /// It is ready again.
    Redriven,
    /// It is not dead, or not there.
    NotFound,
    /// A live task has its key.
    Live,
    /// The queue has as many live tasks as its settings allow.
    BacklogFull,
}

/// The answer to a redrive of several: `{"matched": 3, "redriven": 2, "results": ["redriven", "live", "redriven"], "more": false}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedriveAnswer {
    /// How many tasks were meant, as far as they were looked at.
    pub matched: usize,
    /// How many of them are ready again.
    pub redriven: usize,
    /// One for each task that the request named, in its order, or that was found.
    pub results: Vec<RedriveOutcome>,
    /// Whether there are more dead tasks that this call did not look at.
    pub more: bool,
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
