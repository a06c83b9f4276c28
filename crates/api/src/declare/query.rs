//! The strict reader of query strings. Each known parameter may stand once; unknown parameters are refused by name.

use crate::declare::choice::Choice;
use crate::declare::json::list;
use crate::declare::value;
use crate::text::bad_request::{BadRequest, nearest, shown};
use crate::text::path::push_encoded;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Declares a query: its parameters, their defaults, readers and writers. Parser and writer follow.
///
/// A reader takes the name of its parameter and the decoded text. A field with a writer is written by it, another one by [`ToText`]. A
/// field in parentheses is a filter, which has several parameters.
macro_rules! query {
    (
        $(#[$attribute:meta])*
        pub struct $Name:ident $(($(#[$what:meta])* $filter:ident: $Filter:ty = $($part:literal),+))? {
            $($(#[$about:meta])* $field:ident $(as $wire:literal)?: $type:ty = $usual:expr, $read:expr $(, $write:expr)?;)*
        }
        $(later: $later:expr;)?
        $(check: $check:expr;)?
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $Name {
            $($(#[$what])* pub $filter: $Filter,)?
            $($(#[$about])* pub $field: $type,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($filter: <$Filter>::default(),)? $($field: $usual,)* }
            }
        }

        impl $Name {
            /// The names of the parameters.
            const NAMES: &[&str] = &[$($($part,)+)? $($crate::declare::body::wire_name!($field $($wire)?)),*];

            /// Reads the text after the `?`. An empty text is a query without parameters.
            ///
            /// # Errors
            ///
            /// Unknown and repeated parameters, values that their parameters do not allow, and broken percent-encoding.
            pub fn parse(query: &str) -> Result<Self, $crate::BadRequest> {
                Self::of(&$crate::declare::query::Parameters::read(query, Self::NAMES, $crate::declare::body::list!($($later)?))?)
            }

            fn of(found: &$crate::declare::query::Parameters) -> Result<Self, $crate::BadRequest> {
                let query = Self {
                    $($filter: <$Filter>::of_parameters(found)?,)?
                    $($field: found.read_as($crate::declare::body::wire_name!($field $($wire)?), $read)?.unwrap_or($usual),)*
                };
                $(($check)(&query)?;)?
                Ok(query)
            }

            /// The query as [`parse`](Self::parse) reads it, without the `?`. Defaults are left out.
            #[must_use]
            pub fn to_query(&self) -> String {
                let (mut query, usual) = ($crate::declare::query::Query::default(), Self::default());
                $(self.$filter.parameters().iter().for_each(|(name, text)| query.add(name, text));)?
                $(
                    if self.$field != usual.$field {
                        let text = $crate::declare::query::query!(text &self.$field $(, $write)?);
                        query.add($crate::declare::body::wire_name!($field $($wire)?), &text);
                    }
                )*
                query.text
            }
        }
    };
    (text $value:expr) => { $crate::declare::query::ToText::to_text($value) };
    (text $value:expr, $write:expr) => { ($write)($value) };
}
pub(crate) use query;

/// Refuses every parameter, for the endpoints that take none.
///
/// # Errors
///
/// Any parameter. If it was ignored, the caller would believe that it has an effect.
pub fn no_query(query: &str) -> Result<(), BadRequest> {
    Parameters::read(query, &[], &[]).map(|_| ())
}

/// The parameters of a query string, decoded.
pub(crate) struct Parameters {
    found: Vec<(&'static str, String)>,
}

impl Parameters {
    pub(crate) fn read(
        query: &str,
        known: &'static [&'static str],
        later: &[&str],
    ) -> Result<Self, BadRequest> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name =
                decoded(name).map_err(|what| BadRequest::parameter(shown(name), what, ENCODING_HINT))?;
            let Some(known) = known.iter().find(|known| **known == name) else {
                return Err(unknown(&name, known, later));
            };
            if found.iter().any(|(earlier, _)| earlier == known) {
                return Err(BadRequest::parameter(*known, "is given twice", "leave one of them out"));
            }
            let value = decoded(value).map_err(|what| BadRequest::parameter(*known, what, ENCODING_HINT))?;
            found.push((known, value));
        }
        Ok(Self { found })
    }

    /// The value of a parameter as `read` reads it.
    pub(crate) fn read_as<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&'static str, &str) -> Result<T, BadRequest>,
    ) -> Result<Option<T>, BadRequest> {
        let found = self.found.iter().find(|(found, _)| *found == name);
        found.map(|(_, value)| read(name, value)).transpose()
    }
}

fn unknown(name: &str, known: &[&str], later: &[&str]) -> BadRequest {
    if later.contains(&name) {
        return BadRequest::parameter(name, "is not supported by this version", "leave it out");
    }
    let hint = match (nearest(name, known), known) {
        (Some(close), _) => format!("did you mean `{close}`?"),
        (None, []) => "leave it out; there are none here".to_owned(),
        (None, _) => format!("there may be {}", list(known)),
    };
    BadRequest::parameter(shown(name), "is not a parameter of this request", hint)
}

pub(crate) fn word<T: Copy>(name: &'static str, given: &str, words: &[(&str, T)]) -> Result<T, BadRequest> {
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let hint = format!("it may be {}", list(&names).replace(" and ", " or "));
        BadRequest::parameter(name, format!("`{}` is not known", shown(given)), hint)
    })
}

/// Reads one of the words of a choice.
pub(crate) fn choice<T: Choice>(name: &'static str, given: &str) -> Result<T, BadRequest> {
    word(name, given, T::WORDS)
}

/// Reads `true` or `false`.
pub(crate) fn flag(name: &'static str, given: &str) -> Result<bool, BadRequest> {
    word(name, given, &[("true", true), ("false", false)])
}

/// Reads a number in this range. The hint of a refusal names the usual value.
pub(crate) fn number<N: FromStr + Display + PartialOrd>(
    name: &'static str,
    given: &str,
    range: RangeInclusive<N>,
    usual: impl Display,
) -> Result<N, BadRequest> {
    value::digits(given.as_bytes()).filter(|number| range.contains(number)).ok_or_else(|| {
        let what = format!("`{}` is not a number from {} to {}", shown(given), range.start(), range.end());
        BadRequest::parameter(name, what, format!("leave it out for {usual}"))
    })
}

pub(crate) fn cursor(given: &str, bytes_max: usize) -> Result<String, BadRequest> {
    if (1..=bytes_max).contains(&given.len()) {
        return Ok(given.to_owned());
    }
    Err(BadRequest::parameter(
        "cursor",
        format!("has {} bytes, not from 1 to {bytes_max}", given.len()),
        "send the `next_cursor` of the page before as it is, or leave it out for the first page",
    ))
}

const ENCODING_HINT: &str = "write other bytes than letters and digits as `%` and two hex digits, in UTF-8";

/// Decodes percent-encoding. A `%` without two hex digits is refused; `+` is a space, as in HTML forms.
fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
                let (Some(high), Some(low)) = (hex(rest.next()), hex(rest.next())) else {
                    return Err("has a `%` without two hex digits");
                };
                u8::try_from(high * 16 + low).expect("two hex digits are a byte")
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8")
}

/// A parameter whose value can be written as text.
pub(crate) trait ToText {
    /// The text, not yet encoded. A parameter that is written has a value.
    fn to_text(&self) -> String;
}

impl<T: Choice> ToText for T {
    fn to_text(&self) -> String {
        let word = T::WORDS.iter().find(|(_, choice)| choice == self);
        word.map_or_else(String::new, |(word, _)| (*word).to_owned())
    }
}

impl<T: ToText> ToText for Option<T> {
    fn to_text(&self) -> String {
        self.as_ref().map_or_else(String::new, T::to_text)
    }
}

macro_rules! to_text {
    ($($type:ty),*) => {
        $(impl ToText for $type {
            fn to_text(&self) -> String {
                self.to_string()
            }
        })*
    };
}
to_text!(bool, u64, usize, String);

/// Builds a query string.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) text: String,
}

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(name);
        self.text.push('=');
        push_encoded(&mut self.text, value);
    }
}
