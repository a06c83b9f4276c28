//! [`RedisPlan`]: the key that gets the messages, and their form.

use std::time::Duration;

use ::redis::{Cmd, cmd};
pub use tickwheel_api::ListEnd;

use crate::broker::{Address, AddressError, Alphabet, Content, ContentError, ContentForm};
use crate::message::Message;
use crate::outcome::Outcome;

/// The largest number of arguments of `XADD` beside those for headers.
const SPARE_ARGUMENTS: usize = 12;
/// Room for the arguments of `XADD` beside key, headers and body (bytes). A command with longer ones grows.
const SPARE_BYTES: usize = 128;
/// Redis takes each byte in a key. Control characters and very long keys are mistakes.
const KEY: Alphabet = Alphabet {
    noun: "key",
    allows: |c| !c.is_control(),
    words: "characters that are no control characters",
    bytes_max: 1_024,
};
/// A target wants at most this many replicas.
const WAIT_MAX: u32 = 16;
/// The fields of an entry that no header may have as its name.
const FIELDS: [&str; 2] = ["id", "payload"];

/// The settings of a target in Redis.
#[derive(Clone, Debug)]
pub struct RedisPlan {
    key: Address,
    place: Place,
    content: Content,
    pub(super) wait: u32,
    pub(super) timeout: Duration,
}

#[derive(Copy, Clone, Debug)]
enum Place {
    Stream { maxlen: Option<u64> },
    List { end: ListEnd },
}

/// The structure that gets the messages. A key is a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Structure {
    /// A stream: each message is an entry with the fields `id` and `payload`, and a field for each header.
    Stream {
        /// The key.
        key: String,
        /// The number of entries to which the stream is cut, roughly (`MAXLEN ~`). Redis then drops the oldest entries, also if no consumer has
        /// read them. `None`: the stream grows.
        maxlen: Option<u64>,
    },
    /// A list: each message is an element without headers.
    List {
        /// The key.
        key: String,
        /// The end of the list.
        end: ListEnd,
    },
}

/// Why a target in Redis cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RedisPlanError {
    /// The key is wrong.
    #[error(transparent)]
    Key(#[from] AddressError),
    /// A header is wrong.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A header has the name of a field that Tickwheel sets.
    #[error("`{0}` is a field that Tickwheel sets")]
    Field(String),
    /// A list has no headers.
    #[error("an element of a list has no headers; use a stream")]
    ListHeaders,
    /// The length of the stream is 0.
    #[error("`maxlen` is 1 or more")]
    Maxlen,
    /// The number of replicas is too large.
    #[error("`wait` is 0 to {WAIT_MAX} replicas, and not {0}")]
    Wait(u32),
}

impl RedisPlan {
    /// Returns the settings of a target. `form`: by default the payload for a stream, and the envelope for a list. `wait`: the number of
    /// replicas that must have a message before it counts as delivered. `timeout`: the time in which the server must answer.
    ///
    /// # Errors
    /// [`RedisPlanError`].
    pub fn new(
        structure: Structure,
        form: Option<ContentForm>,
        headers: &[(String, String)],
        wait: u32,
        timeout: Duration,
    ) -> Result<Self, RedisPlanError> {
        let (key, place, own_form) = match structure {
            Structure::Stream { key, maxlen } => (key, Place::Stream { maxlen }, ContentForm::Payload),
            Structure::List { key, end } => (key, Place::List { end }, ContentForm::Envelope),
        };
        match place {
            Place::Stream { maxlen: Some(0) } => return Err(RedisPlanError::Maxlen),
            Place::List { .. } if !headers.is_empty() => return Err(RedisPlanError::ListHeaders),
            Place::Stream { .. } | Place::List { .. } => {}
        }
        if let Some((name, _)) = headers.iter().find(|(name, _)| FIELDS.contains(&name.as_str())) {
            return Err(RedisPlanError::Field(name.clone()));
        }
        if wait > WAIT_MAX {
            return Err(RedisPlanError::Wait(wait));
        }
        let content = Content::new(form.unwrap_or(own_form), headers)?;
        Ok(Self { key: Address::parse(&key, KEY)?, place, content, wait, timeout })
    }

    /// Returns the command that adds a message.
    pub(super) fn command(&self, message: &Message) -> Result<Cmd, Outcome> {
        let key = self.key.of(message)?;
        let (body, content_type) = self.content.body(message);
        let maxlen = match self.place {
            Place::Stream { maxlen } => maxlen,
            Place::List { end } => {
                let mut command = cmd(match end {
                    ListEnd::Left => "LPUSH",
                    ListEnd::Right => "RPUSH",
                });
                command.arg(key).arg(body);
                return Ok(command);
            }
        };
        let headers = self.content.headers(message)?;
        let header_bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = header_bytes + key.len() + body.len() + SPARE_BYTES;
        let mut command = Cmd::with_capacity(SPARE_ARGUMENTS + 2 * headers.len(), bytes);
        command.arg("XADD").arg(key);
        if let Some(maxlen) = maxlen {
            command.arg("MAXLEN").arg("~").arg(maxlen);
        }
        command.arg("*").arg("id").arg(message.id());
        // The field `id` has it already.
        for (name, value) in headers.into_iter().filter(|(name, _)| name != "tickwheel-id") {
            command.arg(name).arg(value);
        }
        command.arg("content-type").arg(content_type).arg("payload").arg(body);
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(maxlen: Option<u64>, headers: &[(&str, &str)], wait: u32) -> Result<RedisPlan, RedisPlanError> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let structure = Structure::Stream { key: "due".to_owned(), maxlen };
        RedisPlan::new(structure, None, &headers, wait, Duration::from_secs(10))
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        assert!(stream(Some(1), &[("shop", "eu")], 16).is_ok());
        assert_eq!(stream(Some(0), &[], 0).err(), Some(RedisPlanError::Maxlen));
        assert_eq!(stream(None, &[], 17).err(), Some(RedisPlanError::Wait(17)));
        for name in FIELDS {
            assert_eq!(stream(None, &[(name, "x")], 0).err(), Some(RedisPlanError::Field(name.to_owned())));
        }
        let list = |key: &str, headers: &[(String, String)]| {
            let structure = Structure::List { key: key.to_owned(), end: ListEnd::Right };
            RedisPlan::new(structure, None, headers, 0, Duration::from_secs(10)).err()
        };
        assert_eq!(list("due:{queue}", &[]), None);
        assert_eq!(list("due", &[("a".to_owned(), "b".to_owned())]), Some(RedisPlanError::ListHeaders));
        assert!(matches!(list("", &[]), Some(RedisPlanError::Key(_))));
        assert!(matches!(list("a\nb", &[]), Some(RedisPlanError::Key(_))));
    }
}
