//! [`Template`]: a text with places for the values of a task.

use std::fmt;

use tickwheel_queue::Leased;

use crate::message::Message;
use crate::text::rfc3339;

/// A text with places for the values of a task: `/hooks/{queue}?k={key}`.
///
/// | place | value |
/// |---|---|
/// | `{queue}`, `{key}`, `{id}`, `{group}` | of the task |
/// | `{attempt}` | the number of the attempt, from 1 |
/// | `{due_at}` | when the task was due, in RFC 3339 |
/// | `{tag.N}` | the tag number N of the task, from 0 |
///
/// A brace that is meant itself is written `{{`; a `}` outside of a place is itself.
///
/// ```
/// use tickwheel_push::Template;
/// let template = Template::parse("due.{queue}")?;
/// assert_eq!(template.to_string(), "due.{queue}");
/// assert!(Template::parse("due.{quue}").is_err());
/// # Ok::<(), tickwheel_push::TemplateError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    Value(Value),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Value {
    Queue,
    Key,
    Id,
    Attempt,
    DueAt,
    Group,
    Tag(usize),
}

/// Why a text is no template.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TemplateError {
    /// A place has a name that no value has.
    #[error(
        "`{{{0}}}` is no value of a task; there are {{queue}} {{key}} {{id}} {{attempt}} {{due_at}} {{group}} and {{tag.0}}; write `{{{{` for a brace"
    )]
    Unknown(String),
    /// A place has no end.
    #[error("`{{` has no `}}` behind it; write `{{{{` for a brace")]
    Open,
}

/// A task lacks a value that its target's template wants.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unfilled {
    /// The task has no group.
    #[error("template: the task has no group")]
    NoGroup,
    /// The task has no tag of this number.
    #[error("template: the task has no tag {0}")]
    NoTag(usize),
    /// The values would make a segment of a path `.` or `..`, which receivers and proxies take out of the path.
    #[error("template: `{0}` would stand in the path, and receivers take `.` and `..` out of a path")]
    Dots(String),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`TemplateError`].
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('{') {
                plain.push('{');
                rest = behind;
                continue;
            }
            let (name, behind) = rest.split_once('}').ok_or(TemplateError::Open)?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Value(value(name).ok_or_else(|| TemplateError::Unknown(name.to_owned()))?));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }

    /// Returns the text without values, piece by piece, so that its letters can be checked.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Value(_) => None,
        })
    }

    /// Fills the template with the values of a task. `encode` appends a value in the form that its place needs.
    ///
    /// # Errors
    /// [`Unfilled`]: the task lacks a value.
    pub fn fill(&self, message: &Message, encode: impl Fn(&mut String, &str)) -> Result<String, Unfilled> {
        let Leased { queue, key, id, due_at, group, body, .. } = &*message.leased;
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Value(Value::Queue) => encode(&mut text, queue.as_str()),
                Piece::Value(Value::Key) => encode(&mut text, key.as_str()),
                Piece::Value(Value::Id) => encode(&mut text, &id.to_string()),
                Piece::Value(Value::Attempt) => encode(&mut text, &message.attempt.to_string()),
                Piece::Value(Value::DueAt) => encode(&mut text, &rfc3339(due_at.as_ms())),
                Piece::Value(Value::Group) => {
                    encode(&mut text, group.as_ref().ok_or(Unfilled::NoGroup)?.as_str());
                }
                Piece::Value(Value::Tag(nth)) => {
                    encode(&mut text, body.tags.get(*nth).ok_or(Unfilled::NoTag(*nth))?.as_str());
                }
            }
        }
        Ok(text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{")),
            Piece::Value(Value::Queue) => f.write_str("{queue}"),
            Piece::Value(Value::Key) => f.write_str("{key}"),
            Piece::Value(Value::Id) => f.write_str("{id}"),
            Piece::Value(Value::Attempt) => f.write_str("{attempt}"),
            Piece::Value(Value::DueAt) => f.write_str("{due_at}"),
            Piece::Value(Value::Group) => f.write_str("{group}"),
            Piece::Value(Value::Tag(nth)) => write!(f, "{{tag.{nth}}}"),
        })
    }
}

fn value(name: &str) -> Option<Value> {
    Some(match name {
        "queue" => Value::Queue,
        "key" => Value::Key,
        "id" => Value::Id,
        "attempt" => Value::Attempt,
        "due_at" => Value::DueAt,
        "group" => Value::Group,
        _ => Value::Tag(name.strip_prefix("tag.")?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;
    use crate::text::percent_encoded;

    #[test]
    fn places_are_filled_and_braces_are_kept() {
        let template = Template::parse("a{{b}/{queue}/{key}?id={id}&n={attempt}").expect("a template");
        let text = template.fill(&message(), percent_encoded).expect("all values are there");
        assert_eq!(text, "a{b}/close/order%3A1%2F%C3%A4?id=1&n=1");
        assert_eq!(template.to_string(), "a{{b}/{queue}/{key}?id={id}&n={attempt}");
        let due = Template::parse("{due_at}")
            .expect("a template")
            .fill(&message(), |text, value| text.push_str(value));
        assert_eq!(due.as_deref(), Ok(rfc3339(message().leased.due_at.as_ms()).as_str()));
    }

    #[test]
    fn a_value_that_the_task_lacks_is_named() {
        let fill = |text: &str| Template::parse(text).expect(text).fill(&message(), percent_encoded);
        assert_eq!(fill("{group}"), Err(Unfilled::NoGroup));
        assert_eq!(fill("{tag.3}"), Err(Unfilled::NoTag(3)));
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{", "a{b", "{{{", "x{queue"] {
            assert_eq!(Template::parse(text), Err(TemplateError::Open), "{text}");
        }
        for name in ["", "Queue", "tag", "tag.", "tag.x", "tag.-1", "payload", " key"] {
            let text = format!("/{{{name}}}");
            assert_eq!(Template::parse(&text), Err(TemplateError::Unknown(name.to_owned())));
        }
    }

    #[test]
    fn every_template_is_read_as_it_is_written() {
        use proptest::prelude::*;
        proptest!(|(text in "[a-c{}.0-2]{0,12}")| {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(Template::parse(&template.to_string()), Ok(template));
            }
        });
    }
}
