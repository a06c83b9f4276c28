//! The building blocks of schemas.

use serde_json::{Value, json};

use crate::text::duration;
use crate::text::time::INSTANT_MS_MAX;

/// An object of requests or answers.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) what: String,
    /// Whether other members are refused. Requests are closed; answers are not, because a later server may add members.
    pub(crate) closed: bool,
    pub(crate) members: Vec<Member>,
    /// Rules about several members together.
    pub(crate) rules: &'static [Rule],
}

/// A rule about several members together.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// At most one of the members.
    OneOrNone(&'static [&'static str]),
    /// Exactly one of the members.
    One(&'static [&'static str]),
    /// The first member is allowed only together with the second.
    With(&'static str, &'static str),
    /// At least one member.
    NotEmpty,
}

/// One member of an object.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) schema: Value,
    pub(crate) what: String,
}

/// A member that may be left out.
pub(crate) fn may(name: &'static str, schema: Value, what: &'static str) -> Member {
    Member { name, required: false, schema, what: what.to_owned() }
}

impl Schema {
    pub(crate) fn request(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what: what.to_owned(), closed: true, members, rules: &[] }
    }

    pub(crate) fn answer(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what: what.to_owned(), closed: false, members, rules: &[] }
    }

    /// The same object with another name and description.
    pub(crate) fn named(self, name: &'static str, what: &str) -> Self {
        Self { name, what: what.to_owned(), ..self }
    }

    /// The same object without these members.
    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        self.members.retain(|member| !names.contains(&member.name));
        self
    }

    pub(crate) fn value(&self) -> Value {
        let properties: serde_json::Map<String, Value> =
            self.members.iter().map(|member| (member.name.to_owned(), member.described())).collect();
        let required: Vec<_> =
            self.members.iter().filter(|member| member.required).map(|member| member.name).collect();
        let mut schema = json!({ "type": "object", "description": self.what, "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if self.closed {
            schema["additionalProperties"] = json!(false);
        }
        let mut choices = Vec::new();
        for rule in self.rules {
            match rule {
                Rule::OneOrNone(names) => choices.push(choice(names, true)),
                Rule::One(names) => choices.push(choice(names, false)),
                Rule::With(name, other) => schema["dependentRequired"][*name] = json!([other]),
                Rule::NotEmpty => schema["minProperties"] = json!(1),
            }
        }
        if !choices.is_empty() {
            schema["allOf"] = json!(choices);
        }
        schema
    }
}

/// A schema that demands exactly one of these members, or, with `or_none`, at most one. Each case forbids the other members by name, so that a program can also generate requests from it.
fn choice(names: &[&'static str], or_none: bool) -> Value {
    let without = |kept: Option<&str>| -> serde_json::Map<String, Value> {
        let others = names.iter().filter(|name| kept != Some(**name));
        others.map(|name| ((*name).to_owned(), json!(false))).collect()
    };
    let mut cases: Vec<Value> =
        names.iter().map(|name| json!({ "required": [name], "properties": without(Some(*name)) })).collect();
    if or_none {
        cases.push(json!({ "properties": without(None) }));
    }
    json!({ "oneOf": cases })
}

impl Member {
    fn described(&self) -> Value {
        let mut schema = self.schema.clone();
        schema["description"] = json!(self.what);
        schema
    }
}

pub(crate) fn text(max: usize) -> Value {
    json!({ "type": "string", "maxLength": max })
}

/// Text without control characters, with at most `max` bytes of UTF-8. JSON Schema counts characters, so it may allow more than the server does.
pub(crate) fn word(max: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" })
}

pub(crate) fn integer(min: u64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

pub(crate) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(crate) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// A duration. Its limits are in the description.
pub(crate) fn duration_like(example: &str) -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX,
        "pattern": format!("^({})$", duration_cases()), "examples": [example]
    })
}

/// A duration that may be negative.
pub(crate) fn signed_duration() -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX + 1,
        "pattern": format!("^-?({})$", duration_cases()), "examples": ["-1h"]
    })
}

/// The units of a duration, the largest first, each with its maximum number of digits within 100 years.
const UNITS: [(&str, u32); 6] = [("w", 4), ("d", 5), ("h", 6), ("m", 8), ("s", 10), ("ms", 13)];

/// A pattern of durations: each unit at most once, the largest first, and at least one. Only the last number may have a fraction.
pub(crate) fn duration_cases() -> String {
    let last = |(place, (unit, digits)): (usize, &(&str, u32))| {
        let before: String =
            UNITS[..place].iter().map(|(unit, most)| format!("([0-9]{{1,{most}}}{unit})?")).collect();
        format!("{before}[0-9]{{1,{digits}}}(\\.[0-9]{{1,9}})?{unit}")
    };
    UNITS.iter().enumerate().map(last).collect::<Vec<_>>().join("|")
}

/// An instant as RFC 3339.
pub(crate) fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-", "examples": ["2030-01-01T00:00:00.000Z"] })
}

pub(crate) fn time_ms() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": INSTANT_MS_MAX })
}

/// An instant as RFC 3339, or in milliseconds since 1970.
pub(crate) fn time_or_ms() -> Value {
    json!({ "anyOf": [time(), time_ms()] })
}

pub(crate) fn list(of: Value, min: usize, max: usize) -> Value {
    json!({ "type": "array", "items": of, "minItems": min, "maxItems": max })
}

/// A list of any length.
pub(crate) fn all(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(crate) fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The schema, or `null`.
pub(crate) fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// Any JSON value.
pub(crate) fn any() -> Value {
    json!({})
}
