//! The names that users give: queues, keys, groups, tags and schedules. A name is checked once, when it is made, and is cheap to clone.

use core::borrow::Borrow;
use core::fmt;
use std::sync::Arc;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $check:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("The longest ", $what, " (bytes).")]
            pub const BYTES_MAX: usize = $max;

            /// Checks the text, and makes a name with a copy of the text.
            ///
            /// # Errors
            /// [`NameError`] if the text is empty, too long, or has a character that is not allowed.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check_length($what, text, Self::BYTES_MAX)?;
                $check($what, text)?;
                Ok(Self(text.into()))
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// The name of a queue: 1 to 200 bytes of `A-Z a-z 0-9 - + / ; . $ _ ( )`, not starting with `-`.
    ///
    /// The alphabet is the one of the tube names of beanstalkd. The part before the first `/` is the namespace.
    ///
    /// ```
    /// use tickwheel_engine::QueueName;
    /// assert_eq!(QueueName::new("shop/close").unwrap().as_str(), "shop/close");
    /// assert!(QueueName::new("no spaces").unwrap_err().to_string().contains("byte 2"));
    /// ```
    QueueName, "queue name", 200, check_alphabet;
    /// The user's name for a task: 1 to 256 bytes of UTF-8 without control characters, unique among the live tasks of its queue.
    Key, "key", 256, check_text;
    /// A group of tasks in a queue: 1 to 256 bytes of UTF-8 without control characters. The settings of the queue can limit how many tasks
    /// of one group workers have at a time.
    Group, "group", 256, check_text;
    /// A word by which tasks can be found: 1 to 128 bytes of UTF-8 without control characters.
    Tag, "tag", 128, check_text;
    /// The user's name for a schedule: 1 to 200 bytes of UTF-8 without control characters, unique in its queue. A schedule name is shorter
    /// than a key, because the key of each task of the schedule is this name with an instant behind it.
    ScheduleName, "schedule name", 200, check_text;
}

/// Why a text cannot be a name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("the {what} is empty; it takes 1 to {max} bytes")]
    Empty {
        /// "queue name", "key", "group", "tag" or "schedule name".
        what: &'static str,
        /// The longest name that is allowed (bytes).
        max: usize,
    },
    /// The text has too many bytes.
    #[error("the {what} has {bytes} bytes; it takes 1 to {max}")]
    TooLong {
        /// "queue name", "key", "group", "tag" or "schedule name".
        what: &'static str,
        /// The length of the text (bytes).
        bytes: usize,
        /// The longest name that is allowed (bytes).
        max: usize,
    },
    /// The text has a character that is not allowed.
    #[error("the {what} has {found:?} at byte {at}; it takes {alphabet}")]
    BadCharacter {
        /// "queue name", "key", "group", "tag" or "schedule name".
        what: &'static str,
        /// The first character that is not allowed.
        found: char,
        /// The offset of that character (bytes), from 0.
        at: usize,
        /// The characters that are allowed, in words.
        alphabet: &'static str,
    },
}

impl Key {
    /// Returns the key of a task that was put without a key: the id of the task in decimal.
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self(id.to_string().into())
    }
}

impl ScheduleName {
    /// Returns the first name in the order of names: one space, because control characters are not allowed.
    pub(crate) fn first() -> Self {
        Self(" ".into())
    }
}

fn check_length(what: &'static str, text: &str, max: usize) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty { what, max }),
        bytes if bytes > max => Err(NameError::TooLong { what, bytes, max }),
        _ => Ok(()),
    }
}

/// Checks that the text has only characters of the tube names of beanstalkd, and does not start with `-`.
fn check_alphabet(what: &'static str, text: &str) -> Result<(), NameError> {
    let allowed =
        |at: usize, c: char| c.is_ascii_alphanumeric() || "+/;.$_()".contains(c) || c == '-' && at > 0;
    let alphabet = "A-Z a-z 0-9 and - + / ; . $ _ ( ), and does not start with -";
    check_characters(what, text, alphabet, allowed)
}

/// Checks that the text has no control characters.
fn check_text(what: &'static str, text: &str) -> Result<(), NameError> {
    check_characters(what, text, "any UTF-8 without control characters", |_, c| !c.is_control())
}

fn check_characters(
    what: &'static str,
    text: &str,
    alphabet: &'static str,
    allowed: impl Fn(usize, char) -> bool,
) -> Result<(), NameError> {
    match text.char_indices().find(|&(at, c)| !allowed(at, c)) {
        None => Ok(()),
        Some((at, found)) => Err(NameError::BadCharacter { what, found, at, alphabet }),
    }
}

/// Borrows the text, so that a map of queues can be searched by the beginning of a name. Names have the same order as their texts.
impl Borrow<str> for QueueName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_take_the_tube_alphabet_and_nothing_else() {
        for good in ["a", "close", "shop/close", "A+b/c;d.e$f_g(h)-9", &"q".repeat(200)] {
            assert_eq!(QueueName::new(good).expect(good).as_str(), good);
        }
        for bad in ["", "-a", "a b", "a\n", "ü", "a%2F", &"q".repeat(201)] {
            assert!(QueueName::new(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn keys_take_any_text_without_control_characters() {
        for good in ["order:1", "Ü/%?#", " ", &"k".repeat(256)] {
            assert_eq!(Key::new(good).expect(good).as_str(), good);
        }
        for bad in ["", "a\0", "\n", "\u{85}", &"k".repeat(257)] {
            assert!(Key::new(bad).is_err(), "{bad:?} was taken");
            assert!(Group::new(bad).is_err(), "{bad:?} was taken");
            assert!(Tag::new(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(Group::new("user 7").expect("text").as_str(), "user 7");
        assert_eq!(Tag::new(&"t".repeat(128)).expect("text").as_str().len(), 128);
        let long = Tag::new(&"t".repeat(129)).expect_err("too long");
        assert_eq!(long.to_string(), "the tag has 129 bytes; it takes 1 to 128");
    }
}
