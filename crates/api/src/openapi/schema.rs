//! What the parts of schemas are made of.

use serde_json::{Value, json};

use crate::time::INSTANT_MS_MAX;
use crate::{INTEGER_MAX, duration};

/// An object of requests or answers.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) what: String,
    /// Whether other members are refused: so it is in requests. In answers a later server may say more.
    pub(crate) closed: bool,
    pub(crate) members: Vec<Member>,
    /// What goes with what.
    pub(crate) rules: &'static [Rule],
}

/// What a schema says of several members together.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// One of them at most.
    OneOrNone(&'static [&'static str]),
    /// One of them.
    One(&'static [&'static str]),
    /// The first goes with the second only.
    With(&'static str, &'static str),
    /// There is some member.
    NotEmpty,
}

/// One member of it.
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

/// A member that is always there.
pub(crate) fn has(name: &'static str, schema: Value, what: &'static str) -> Member {
    Member { required: true, ..may(name, schema, what) }
}

impl Schema {
    pub(crate) fn request(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what: what.to_owned(), closed: true, members, rules: &[] }
    }

    pub(crate) fn answer(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what: what.to_owned(), closed: false, members, rules: &[] }
    }

    /// The same object under another name.
    pub(crate) fn named(self, name: &'static str, what: &str) -> Self {
        Self { name, what: what.to_owned(), ..self }
    }

    /// Without these members.
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

/// Exactly one of these members, or none of them. Each case forbids the other members by name, so that a program can also make requests from it.
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

/// Text without control characters, with so many bytes of UTF-8 at most. That bytes count and not characters no schema can say.
pub(crate) fn word(max: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" })
}

pub(crate) fn integer(min: u64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

pub(crate) fn count() -> Value {
    integer(0, INTEGER_MAX)
}

pub(crate) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(crate) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// A duration; its limits are in the description.
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

/// The units of a duration, the largest first, and how many digits each can have within 100 years.
const UNITS: [(&str, u32); 6] = [("w", 4), ("d", 5), ("h", 6), ("m", 8), ("s", 10), ("ms", 13)];

/// Each unit once at most, the largest first, at least one; only the last may have a fraction.
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

pub(crate) fn list(of: Value, min: usize, max: usize) -> Value {
    json!({ "type": "array", "items": of, "minItems": min, "maxItems": max })
}

/// Any number of them.
pub(crate) fn all(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(crate) fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Or `null`.
pub(crate) fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// Any JSON.
pub(crate) fn any() -> Value {
    json!({})
}
