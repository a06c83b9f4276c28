//! Value codecs: a value codec reads, writes and describes the values of a member.

use crate::declare::body::{Body, Written};
use crate::declare::choice::Choice;
use crate::declare::form::{Form, Source};
use crate::declare::{schema, value};
use crate::text::bad_request::{BadRequest, Location, inside, shown};
use crate::text::portable::INTEGER_MAX;
use crate::text::{duration, time};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::marker::PhantomData;

/// Reads, writes and describes the values of a member.
pub(crate) trait ValueCodec: Sized {
    /// The Rust type of the value.
    type Value;

    /// Reads the value of the member `path`. The limits of the codec are for requests alone.
    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Self::Value, BadRequest>;

    /// Writes a value.
    fn write<S: Serializer>(&self, value: &Self::Value, serializer: S, form: Form)
    -> Result<S::Ok, S::Error>;

    /// Describes the value.
    fn schema(&self) -> Json;

    /// An example in JSON, for the hint if the member is missing.
    fn example(&self) -> String;

    /// The refusal of a body that lacks the member.
    fn missing(&self, own: &str) -> BadRequest {
        BadRequest::member(own, "is missing", format!("add for example `\"{own}\": {}`", self.example()))
    }

    /// Reads the value of the member `path` of a patch. `_before` is the value so far.
    fn patch(
        &self,
        path: &str,
        raw: &RawValue,
        _before: Option<Self::Value>,
    ) -> Result<Self::Value, BadRequest> {
        self.read(path, raw, Source::Request)
    }

    /// The same codec with another schema.
    fn described(self, schema: fn() -> Json) -> With<Self> {
        With { schema: Some(schema), ..With::of(self) }
    }

    /// The same codec with another hint for refused values. The hint is made from the refusal and the refused text.
    fn hinted(self, hint: fn(&BadRequest, &str) -> String) -> With<Self> {
        With { hint: Some(hint), ..With::of(self) }
    }

    /// The same codec with an additional rule. The rule applies to requests only.
    fn checked(self, rule: Check<Self::Value>) -> With<Self> {
        With { rule: Some(rule), ..With::of(self) }
    }

    /// The same codec, whose `null` stands for this value.
    fn null_is(self, usual: Self::Value) -> With<Self> {
        With { null: Some(usual), ..With::of(self) }
    }
}

/// Adapter by which serde writes a value with a codec.
pub(crate) struct WrittenValue<'v, K: ValueCodec> {
    pub(crate) kind: &'v K,
    pub(crate) value: &'v K::Value,
    pub(crate) form: Form,
}

impl<K: ValueCodec> Serialize for WrittenValue<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.kind.write(self.value, serializer, self.form)
    }
}

/// An additional rule about the value of the member with this path.
pub(crate) type Check<V> = fn(&str, &V) -> Result<(), BadRequest>;

/// A codec with another schema, another hint, an additional rule, or a meaning of `null`.
pub(crate) struct With<K: ValueCodec> {
    kind: K,
    schema: Option<fn() -> Json>,
    hint: Option<fn(&BadRequest, &str) -> String>,
    rule: Option<Check<K::Value>>,
    null: Option<K::Value>,
}

impl<K: ValueCodec> With<K> {
    fn of(kind: K) -> Self {
        Self { kind, schema: None, hint: None, rule: None, null: None }
    }
}

impl<K: ValueCodec> ValueCodec for With<K>
where
    K::Value: Clone,
{
    type Value = K::Value;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<K::Value, BadRequest> {
        if let (Some(null), "null") = (&self.null, raw.get()) {
            return Ok(null.clone());
        }
        let hinted = |refused| match self.hint {
            Some(hint) => BadRequest { hint: hint(&refused, raw.get()), ..refused },
            None => refused,
        };
        let value = self.kind.read(path, raw, source).map_err(hinted)?;
        if let (Some(rule), true) = (self.rule, source.is_checked()) {
            rule(path, &value)?;
        }
        Ok(value)
    }

    fn write<S: Serializer>(&self, value: &K::Value, serializer: S, form: Form) -> Result<S::Ok, S::Error> {
        self.kind.write(value, serializer, form)
    }

    fn schema(&self) -> Json {
        let schema = self.schema.map_or_else(|| self.kind.schema(), |schema| schema());
        if self.null.is_some() { schema::or_null(schema) } else { schema }
    }

    fn example(&self) -> String {
        self.kind.example()
    }
}

/// A codec that also accepts `null`, for no value.
pub(crate) fn or_null<K: ValueCodec>(kind: K) -> OrNull<K> {
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

impl<K: ValueCodec> ValueCodec for OrNull<K> {
    type Value = Option<K::Value>;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Option<K::Value>, BadRequest> {
        value::or_null(raw, |raw| self.0.read(path, raw, source))
    }

    fn write<S: Serializer>(
        &self,
        value: &Option<K::Value>,
        serializer: S,
        form: Form,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => self.0.write(value, serializer, form),
            None => serializer.serialize_none(),
        }
    }

    fn schema(&self) -> Json {
        if self.1 { schema::or_null(self.0.schema()) } else { self.0.schema() }
    }

    fn example(&self) -> String {
        self.0.example()
    }

    fn patch(
        &self,
        path: &str,
        raw: &RawValue,
        before: Option<Option<K::Value>>,
    ) -> Result<Option<K::Value>, BadRequest> {
        value::or_null(raw, |raw| self.0.patch(path, raw, before.flatten()))
    }
}

/// A text. The schema gives its maximum length, which reading does not check. The example is for hints.
pub(crate) fn text(max: usize, example: &'static str) -> Text {
    Text { max, example, is_word: false, is_checked: false }
}

/// A text of 1 to `max` bytes without control characters.
pub(crate) fn word(max: usize, example: &'static str) -> Text {
    Text { max, example, is_word: true, is_checked: true }
}

/// A key or a name in an answer or a batch. Reading does not check it; the server does so elsewhere.
pub(crate) fn key(example: &'static str) -> Text {
    Text { max: 256, example, is_word: true, is_checked: false }
}

/// See [`text`], [`word`] and [`key`].
pub(crate) struct Text {
    max: usize,
    example: &'static str,
    /// Whether the schema demands a byte and forbids control characters.
    is_word: bool,
    /// Whether reading a request demands the same.
    is_checked: bool,
}

impl ValueCodec for Text {
    type Value = String;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<String, BadRequest> {
        let (text, max) = (value::text(path, raw, self.example)?, self.max);
        if !self.is_checked || source == Source::Answer {
            return Ok(text);
        }
        let what = match text.chars().find(|c| c.is_control()) {
            _ if text.is_empty() => "is empty".to_owned(),
            _ if text.len() > max => format!("has {} bytes", text.len()),
            Some(control) => format!("has the control character `{}`", shown(&control.to_string())),
            None => return Ok(text),
        };
        let hint = format!("write 1 to {max} bytes of UTF-8 without control characters");
        Err(BadRequest::member(path, what, hint))
    }

    fn write<S: Serializer>(&self, value: &String, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value)
    }

    fn schema(&self) -> Json {
        if self.is_word { schema::word(self.max) } else { schema::text(self.max) }
    }

    fn example(&self) -> String {
        format!("\"{}\"", self.example)
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

impl<T: TryFrom<u64> + Serialize> ValueCodec for Number<T> {
    type Value = T;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<T, BadRequest> {
        let range = if source.is_checked() { self.min..=self.max } else { 0..=INTEGER_MAX };
        let number = value::integer(path, raw, range)?;
        T::try_from(number).map_err(|_| BadRequest::member(path, "is too large", "write a smaller number"))
    }

    fn write<S: Serializer>(&self, value: &T, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

impl ValueCodec for Flag {
    type Value = bool;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<bool, BadRequest> {
        value::boolean(path, raw)
    }

    fn write<S: Serializer>(&self, value: &bool, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

    /// Sets another example, for codecs whose limits exclude `30m`.
    pub(crate) fn like(self, example: &'static str) -> Self {
        Self { example, ..self }
    }
}

impl ValueCodec for Duration {
    type Value = u64;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<u64, BadRequest> {
        match self.within {
            Some((min_ms, max_ms)) if source.is_checked() => {
                value::duration_ms_within(path, raw, min_ms..=max_ms)
            }
            _ => value::duration_ms(path, raw),
        }
    }

    fn write<S: Serializer>(&self, value: &u64, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

impl ValueCodec for Instant {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        value::instant_ms(path, raw)
    }

    fn write<S: Serializer>(&self, value: &i64, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

impl<T: Copy + PartialEq> ValueCodec for OneOf<T> {
    type Value = T;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<T, BadRequest> {
        value::word(path, raw, self.0)
    }

    fn write<S: Serializer>(&self, value: &T, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
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

/// An object.
pub(crate) fn object<B: Body>() -> Object<B> {
    Object(PhantomData)
}

/// See [`object`].
pub(crate) struct Object<B>(PhantomData<B>);

impl<B: Body> ValueCodec for Object<B> {
    type Value = B;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<B, BadRequest> {
        B::from_value(raw, source).map_err(|refused| inside(path, refused))
    }

    fn write<S: Serializer>(&self, value: &B, serializer: S, form: Form) -> Result<S::Ok, S::Error> {
        Written(value, form).serialize(serializer)
    }

    fn schema(&self) -> Json {
        schema::of(B::NAME)
    }

    fn example(&self) -> String {
        B::EXAMPLE.to_owned()
    }

    fn patch(&self, path: &str, raw: &RawValue, before: Option<B>) -> Result<B, BadRequest> {
        match before {
            None => self.read(path, raw, Source::Request),
            Some(before) => before.patch_value(raw).map_err(|refused| inside(path, refused)),
        }
    }
}

/// A list of any length. The hint is for values that are not a list.
pub(crate) fn list<K: ValueCodec>(kind: K, hint: &'static str) -> List<K> {
    List { kind, hint, lengths: None }
}

/// See [`list`].
pub(crate) struct List<K> {
    kind: K,
    hint: &'static str,
    lengths: Option<(usize, usize)>,
}

impl<K> List<K> {
    /// Sets the lengths in the schema. Reading does not check them; [`ValueCodec::checked`] can.
    pub(crate) fn of(self, min: usize, max: usize) -> Self {
        Self { lengths: Some((min, max)), ..self }
    }
}

impl<K: ValueCodec> ValueCodec for List<K> {
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
        form: Form,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(value.len()))?;
        for value in value {
            list.serialize_element(&WrittenValue { kind: &self.kind, value, form })?;
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
