//! Kinds of members: a kind reads, writes and describes the values of a member.

use crate::bad_request::{BadRequest, Location, inside, shown};
use crate::body::{Body, Source, Written};
use crate::choice::Choice;
use crate::openapi::schema;
use crate::{INTEGER_MAX, duration, time, value};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::marker::PhantomData;

/// Reads, writes and describes the values of a member.
pub(crate) trait Kind: Sized {
    /// The Rust type of the value.
    type Value;

    /// Reads the value of the member `path`. The limits of the kind are for requests alone.
    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Self::Value, BadRequest>;

    /// Writes a value.
    fn write<S: Serializer>(
        &self,
        value: &Self::Value,
        serializer: S,
        one_line: bool,
    ) -> Result<S::Ok, S::Error>;

    /// Describes the value.
    fn schema(&self) -> Json;

    /// An example in JSON, for the hint if the member is missing.
    fn example(&self) -> String;

    /// Reads the value of the member `path` of a patch. `_before` is the value so far.
    fn over(
        &self,
        path: &str,
        raw: &RawValue,
        _before: Option<Self::Value>,
    ) -> Result<Self::Value, BadRequest> {
        self.read(path, raw, Source::Request)
    }

    /// The value if an answer lacks the member.
    fn absent(&self) -> Option<Self::Value> {
        None
    }

    /// The same kind with another schema.
    fn described(self, schema: fn() -> Json) -> Described<Self> {
        Described { kind: self, schema }
    }

    /// The same kind with another hint for refused values. The hint is made from the refusal and the refused text.
    fn hinted(self, hint: fn(&BadRequest, &str) -> String) -> Hinted<Self> {
        Hinted { kind: self, hint }
    }

    /// The same kind with an additional rule. The rule applies to requests only.
    fn checked<F: Fn(&str, &Self::Value) -> Result<(), BadRequest>>(self, rule: F) -> Checked<Self, F> {
        Checked { kind: self, rule }
    }
}

/// Adapter by which serde writes a value of a kind.
pub(crate) struct WrittenValue<'v, K: Kind> {
    pub(crate) kind: &'v K,
    pub(crate) value: &'v K::Value,
    pub(crate) one_line: bool,
}

impl<K: Kind> Serialize for WrittenValue<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kind.write(self.value, serializer, self.one_line)
    }
}

/// The functions that an adapter of a kind passes on to that kind.
macro_rules! adapted {
    () => {
        type Value = K::Value;

        fn write<S: Serializer>(
            &self,
            value: &K::Value,
            serializer: S,
            one_line: bool,
        ) -> Result<S::Ok, S::Error> {
            self.kind.write(value, serializer, one_line)
        }

        fn example(&self) -> String {
            self.kind.example()
        }
    };
}

/// See [`Kind::described`].
pub(crate) struct Described<K> {
    kind: K,
    schema: fn() -> Json,
}

impl<K: Kind> Kind for Described<K> {
    adapted!();

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<K::Value, BadRequest> {
        self.kind.read(path, raw, source)
    }

    fn schema(&self) -> Json {
        (self.schema)()
    }
}

/// See [`Kind::hinted`].
pub(crate) struct Hinted<K> {
    kind: K,
    hint: fn(&BadRequest, &str) -> String,
}

impl<K: Kind> Kind for Hinted<K> {
    adapted!();

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<K::Value, BadRequest> {
        let hinted = |refused| BadRequest { hint: (self.hint)(&refused, raw.get()), ..refused };
        self.kind.read(path, raw, source).map_err(hinted)
    }

    fn schema(&self) -> Json {
        self.kind.schema()
    }
}

/// See [`Kind::checked`].
pub(crate) struct Checked<K, F> {
    kind: K,
    rule: F,
}

impl<K: Kind, F: Fn(&str, &K::Value) -> Result<(), BadRequest>> Kind for Checked<K, F> {
    adapted!();

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<K::Value, BadRequest> {
        let value = self.kind.read(path, raw, source)?;
        if source == Source::Request {
            (self.rule)(path, &value)?;
        }
        Ok(value)
    }

    fn schema(&self) -> Json {
        self.kind.schema()
    }
}

/// A kind that also accepts `null`, for no value.
pub(crate) fn or_null<K: Kind>(kind: K) -> OrNull<K> {
    OrNull(kind, true)
}

/// See [`or_null`]. The flag says whether the schema shows `null`.
pub(crate) struct OrNull<K>(K, bool);

impl<K> OrNull<K> {
    /// Leaves `null` out of the schema.
    pub(crate) fn quietly(self) -> Self {
        Self(self.0, false)
    }
}

impl<K: Kind> Kind for OrNull<K> {
    type Value = Option<K::Value>;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Option<K::Value>, BadRequest> {
        value::or_null(raw, |raw| self.0.read(path, raw, source))
    }

    fn write<S: Serializer>(
        &self,
        value: &Option<K::Value>,
        serializer: S,
        one_line: bool,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => self.0.write(value, serializer, one_line),
            None => serializer.serialize_none(),
        }
    }

    fn schema(&self) -> Json {
        if self.1 { schema::or_null(self.0.schema()) } else { self.0.schema() }
    }

    fn example(&self) -> String {
        self.0.example()
    }

    fn over(
        &self,
        path: &str,
        raw: &RawValue,
        before: Option<Option<K::Value>>,
    ) -> Result<Option<K::Value>, BadRequest> {
        value::or_null(raw, |raw| self.0.over(path, raw, before.flatten()))
    }

    fn absent(&self) -> Option<Option<K::Value>> {
        Some(None)
    }
}

/// A text. The schema gives its maximum length, which reading does not check. The example is for hints.
pub(crate) fn text(max: usize, example: &'static str) -> Text {
    Text { max, example }
}

/// See [`text`].
pub(crate) struct Text {
    max: usize,
    example: &'static str,
}

impl Kind for Text {
    type Value = String;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<String, BadRequest> {
        value::text(path, raw, self.example)
    }

    fn write<S: Serializer>(&self, value: &String, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value)
    }

    fn schema(&self) -> Json {
        schema::text(self.max)
    }

    fn example(&self) -> String {
        format!("\"{}\"", self.example)
    }
}

/// A text of 1 to `max` bytes without control characters.
pub(crate) fn word(max: usize, example: &'static str) -> Word {
    Word { text: text(max, example), is_checked: true }
}

/// A key or a name in an answer or a batch. Reading does not check it; the server does so elsewhere.
pub(crate) fn key(example: &'static str) -> Word {
    Word { text: text(256, example), is_checked: false }
}

/// See [`word`] and [`key`].
pub(crate) struct Word {
    text: Text,
    is_checked: bool,
}

impl Kind for Word {
    type Value = String;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<String, BadRequest> {
        let (text, max) = (self.text.read(path, raw, source)?, self.text.max);
        let what = match text.chars().find(|c| c.is_control()) {
            _ if !self.is_checked || source == Source::Answer => return Ok(text),
            _ if text.is_empty() => "is empty".to_owned(),
            _ if text.len() > max => format!("has {} bytes", text.len()),
            Some(control) => format!("has the control character `{}`", shown(&control.to_string())),
            None => return Ok(text),
        };
        let hint = format!("write 1 to {max} bytes of UTF-8 without control characters");
        Err(BadRequest::member(path, what, hint))
    }

    fn write<S: Serializer>(&self, value: &String, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value)
    }

    fn schema(&self) -> Json {
        schema::word(self.text.max)
    }

    fn example(&self) -> String {
        self.text.example()
    }
}

/// A whole number.
pub(crate) fn number<T>(min: u64, max: u64) -> Number<T> {
    Number { min, max, value: PhantomData }
}

/// A number of things: 0 to 2^53.
pub(crate) fn count<T>() -> Number<T> {
    number(0, INTEGER_MAX)
}

/// See [`number`].
pub(crate) struct Number<T> {
    min: u64,
    max: u64,
    value: PhantomData<T>,
}

impl<T: TryFrom<u64> + Serialize> Kind for Number<T> {
    type Value = T;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<T, BadRequest> {
        let range = if source == Source::Request { self.min..=self.max } else { 0..=INTEGER_MAX };
        let number = value::integer(path, raw, range)?;
        T::try_from(number).map_err(|_| BadRequest::member(path, "is too large", "write a smaller number"))
    }

    fn write<S: Serializer>(&self, value: &T, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    fn schema(&self) -> Json {
        schema::integer(self.min, self.max)
    }

    fn example(&self) -> String {
        self.min.to_string()
    }
}

/// `true` or `false`.
pub(crate) fn flag() -> Flag {
    Flag
}

/// See [`flag`].
pub(crate) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<bool, BadRequest> {
        value::boolean(path, raw)
    }

    fn write<S: Serializer>(&self, value: &bool, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*value)
    }

    fn schema(&self) -> Json {
        schema::boolean()
    }

    fn example(&self) -> String {
        "true".to_owned()
    }
}

/// A duration, in milliseconds.
pub(crate) fn duration() -> Duration {
    Duration { within: None, example: "30m" }
}

/// See [`duration()`].
pub(crate) struct Duration {
    within: Option<(u64, u64)>,
    example: &'static str,
}

impl Duration {
    /// Limits the duration. The description of the member has to name the limits, because a schema cannot.
    pub(crate) fn within(self, min_ms: u64, max_ms: u64) -> Self {
        Self { within: Some((min_ms, max_ms)), ..self }
    }

    /// Sets another example, for kinds whose limits exclude `30m`.
    pub(crate) fn like(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}

impl Kind for Duration {
    type Value = u64;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<u64, BadRequest> {
        match self.within {
            Some((min_ms, max_ms)) if source == Source::Request => {
                value::duration_ms_within(path, raw, min_ms..=max_ms)
            }
            _ => value::duration_ms(path, raw),
        }
    }

    fn write<S: Serializer>(&self, value: &u64, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration::format(*value))
    }

    fn schema(&self) -> Json {
        schema::duration_like(self.example)
    }

    fn example(&self) -> String {
        format!("\"{}\"", self.example)
    }
}

/// An instant as RFC 3339, in milliseconds since 1970.
pub(crate) fn instant() -> Instant {
    Instant
}

/// See [`instant`].
pub(crate) struct Instant;

impl Kind for Instant {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        value::instant_ms(path, raw)
    }

    fn write<S: Serializer>(&self, value: &i64, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        time::rfc3339::serialize(value, serializer)
    }

    fn schema(&self) -> Json {
        schema::time()
    }

    fn example(&self) -> String {
        "\"2030-01-01T00:00:00Z\"".to_owned()
    }
}

/// A value of a choice, as one of its words.
pub(crate) fn choice<T: Choice>() -> OneOf<T> {
    OneOf(T::WORDS)
}

/// One of these words.
pub(crate) fn one_of<T: Copy + PartialEq>(words: &'static [(&'static str, T)]) -> OneOf<T> {
    OneOf(words)
}

/// See [`choice`] and [`one_of`].
pub(crate) struct OneOf<T: 'static>(&'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Kind for OneOf<T> {
    type Value = T;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<T, BadRequest> {
        value::word(path, raw, self.0)
    }

    fn write<S: Serializer>(&self, value: &T, serializer: S, _: bool) -> Result<S::Ok, S::Error> {
        let word = self.0.iter().find(|(_, one)| one == value).map(|(word, _)| *word);
        serializer.serialize_str(word.ok_or_else(|| S::Error::custom("a value without a word"))?)
    }

    fn schema(&self) -> Json {
        schema::one_of(&self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>())
    }

    fn example(&self) -> String {
        self.0.first().map_or_else(String::new, |(word, _)| format!("\"{word}\""))
    }
}

/// A kind that also accepts `null`, which stands for the default value.
pub(crate) fn null_is<K: Kind>(usual: K::Value, kind: K) -> NullIs<K> {
    NullIs { usual, kind }
}

/// See [`null_is`].
pub(crate) struct NullIs<K: Kind> {
    usual: K::Value,
    kind: K,
}

impl<K: Kind> Kind for NullIs<K>
where
    K::Value: Clone,
{
    adapted!();

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<K::Value, BadRequest> {
        let value = value::or_null(raw, |raw| self.kind.read(path, raw, source))?;
        Ok(value.unwrap_or_else(|| self.usual.clone()))
    }

    fn schema(&self) -> Json {
        schema::or_null(self.kind.schema())
    }
}

/// A value on the heap.
pub(crate) fn boxed<K: Kind>(kind: K) -> Boxed<K> {
    Boxed(kind)
}

/// See [`boxed`].
pub(crate) struct Boxed<K>(K);

impl<K: Kind> Kind for Boxed<K> {
    type Value = Box<K::Value>;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Box<K::Value>, BadRequest> {
        self.0.read(path, raw, source).map(Box::new)
    }

    fn write<S: Serializer>(
        &self,
        value: &Box<K::Value>,
        serializer: S,
        one_line: bool,
    ) -> Result<S::Ok, S::Error> {
        self.0.write(value, serializer, one_line)
    }

    fn schema(&self) -> Json {
        self.0.schema()
    }

    fn example(&self) -> String {
        self.0.example()
    }
}

/// An object.
pub(crate) fn object<B: Body>() -> Object<B> {
    Object(PhantomData)
}

/// See [`object`].
pub(crate) struct Object<B>(PhantomData<B>);

impl<B: Body> Kind for Object<B> {
    type Value = B;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<B, BadRequest> {
        B::of_value(raw, source).map_err(|refused| inside(path, refused))
    }

    fn write<S: Serializer>(&self, value: &B, serializer: S, one_line: bool) -> Result<S::Ok, S::Error> {
        Written(value, one_line).serialize(serializer)
    }

    fn schema(&self) -> Json {
        schema::of(B::NAME)
    }

    fn example(&self) -> String {
        B::EXAMPLE.to_owned()
    }

    fn over(&self, path: &str, raw: &RawValue, before: Option<B>) -> Result<B, BadRequest> {
        match before {
            None => self.read(path, raw, Source::Request),
            Some(before) => before.patched(raw).map_err(|refused| inside(path, refused)),
        }
    }
}

/// A list of any length. The hint is for values that are not a list.
pub(crate) fn list<K: Kind>(kind: K, hint: &'static str) -> List<K> {
    List { kind, hint, lengths: None }
}

/// See [`list`].
pub(crate) struct List<K> {
    kind: K,
    hint: &'static str,
    lengths: Option<(usize, usize)>,
}

impl<K> List<K> {
    /// Sets the lengths in the schema. Reading does not check them; [`Kind::checked`] can.
    pub(crate) fn of(self, min: usize, max: usize) -> Self {
        Self { lengths: Some((min, max)), ..self }
    }
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Vec<K::Value>, BadRequest> {
        let rows = value::array(path, raw, self.hint)?;
        let read =
            |(index, row)| self.kind.read(path, row, source).map_err(|refused| element(path, index, refused));
        rows.into_iter().enumerate().map(read).collect()
    }

    fn write<S: Serializer>(
        &self,
        value: &Vec<K::Value>,
        serializer: S,
        one_line: bool,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(value.len()))?;
        for value in value {
            list.serialize_element(&WrittenValue { kind: &self.kind, value, one_line })?;
        }
        list.end()
    }

    fn schema(&self) -> Json {
        match self.lengths {
            Some((min, max)) => schema::list(self.kind.schema(), min, max),
            None => schema::all(self.kind.schema()),
        }
    }

    fn example(&self) -> String {
        format!("[{}]", self.kind.example())
    }
}

/// Adds the index of an element to the path of its refusal.
fn element(path: &str, index: usize, refused: BadRequest) -> BadRequest {
    let location = match refused.location {
        Location::Member(member) => {
            let inner = member.strip_prefix(path).unwrap_or_default();
            Location::Member(format!("{path}[{index}]{inner}"))
        }
        other => other,
    };
    BadRequest { location, ..refused }
}
