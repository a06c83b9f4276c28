//! The words of a line, and the arguments that they give.

use std::num::NonZeroU32;

use super::terms::{JobTerms, Tube, When};
use crate::declare::value::digits;
use crate::text::duration;
use crate::values::limits::KEY_BYTES_MAX;

/// The rest of a line after its verb, beginning with the space.
pub(super) struct Words<'a>(pub(super) &'a [u8]);

/// An argument of a command.
pub(super) trait Argument: Sized {
    /// Reads the argument from the next word; `None`: the word is missing or wrong.
    fn read(words: &mut Words<'_>) -> Option<Self>;
}

impl<'a> Words<'a> {
    /// The next word. With `spaces`, more than one space may stand before it.
    fn word(&mut self, spaces: bool) -> Option<&'a [u8]> {
        if spaces {
            self.skip_spaces();
        }
        let rest = self.0.strip_prefix(b" ")?;
        let ends = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(ends);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Leaves one space before the next word.
    pub(super) fn skip_spaces(&mut self) {
        while self.0.starts_with(b"  ") {
            self.0 = &self.0[1..];
        }
    }

    /// The arguments of `put` behind its key: the terms, and the length of the body (bytes).
    pub(super) fn job(&mut self, key: Option<String>) -> Option<(JobTerms, u32)> {
        let priority = u32::read(self)?;
        let when = match key {
            Some(_) => When::read(self)?,
            None => When::AfterMs(u64::from(u32::read(self)?) * 1_000),
        };
        let (ttr_s, bytes) = (u32::read(self)?.max(1), u32::read(self)?);
        self.0.is_empty().then_some((JobTerms { key, priority, when, ttr_s }, bytes))
    }
}

impl Argument for u64 {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        digits(words.word(true)?)
    }
}

impl Argument for u32 {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        digits(words.word(true)?)
    }
}

impl Argument for NonZeroU32 {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        Self::new(u32::read(words)?)
    }
}

/// A timeout in seconds. Some clients send `-1`, which makes beanstalkd wait without limit.
impl Argument for Option<u32> {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        if words.0.trim_ascii_start() == b"-1" {
            words.0 = b"";
            return Some(None);
        }
        u32::read(words).map(Some)
    }
}

impl Argument for Tube {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        Self::new(words.word(false)?)
    }
}

/// A key.
impl Argument for String {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        let word = words.word(false)?;
        let is_key = word.len() <= KEY_BYTES_MAX && word.iter().all(u8::is_ascii_graphic);
        is_key.then(|| Self::from_utf8(word.to_vec()).expect("it is ASCII"))
    }
}

/// A time: seconds without a unit, a duration with its unit, or `@` and milliseconds since 1970.
impl Argument for When {
    fn read(words: &mut Words<'_>) -> Option<Self> {
        let word = words.word(true)?;
        if let Some(at) = word.strip_prefix(b"@") {
            return digits(at).map(Self::AtMs);
        }
        if word.iter().all(u8::is_ascii_digit) {
            return digits::<u32>(word).map(|seconds| Self::AfterMs(u64::from(seconds) * 1_000));
        }
        duration::parse(str::from_utf8(word).ok()?).ok().map(Self::AfterMs)
    }
}
