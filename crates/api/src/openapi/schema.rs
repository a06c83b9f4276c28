//! What the parts of schemas are made of.

use serde_json::{Value, json};

use crate::time::INSTANT_MS_MAX;
use crate::{INTEGER_MAX, duration};

/// An object of requests or answers.
pub(super) struct Schema {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// Whether other members are refused: so it is in requests. In answers a later server may say more.
    pub(super) closed: bool,
    pub(super) members: Vec<Member>,
    /// What goes with what.
    rules: Vec<Rule>,
}

/// What a schema says of several members together.
enum Rule {
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
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) schema: Value,
    pub(super) what: &'static str,
}

/// A member that may be left out.
pub(super) fn may(name: &'static str, schema: Value, what: &'static str) -> Member {
    Member { name, required: false, schema, what }
}

/// A member that is always there.
pub(super) fn has(name: &'static str, schema: Value, what: &'static str) -> Member {
    Member { required: true, ..may(name, schema, what) }
}

impl Schema {
    pub(super) fn request(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what, closed: true, members, rules: Vec::new() }
    }

    pub(super) fn answer(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what, closed: false, members, rules: Vec::new() }
    }

    fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Of these members a request has one at most.
    pub(super) fn one_or_none(self, names: &'static [&'static str]) -> Self {
        self.rule(Rule::OneOrNone(names))
    }

    /// Of these members a request has exactly one.
    pub(super) fn exactly_one(self, names: &'static [&'static str]) -> Self {
        self.rule(Rule::One(names))
    }

    /// The member `name` goes with the member `other` only.
    pub(super) fn only_with(self, name: &'static str, other: &'static str) -> Self {
        self.rule(Rule::With(name, other))
    }

    /// A request has some member.
    pub(super) fn not_empty(self) -> Self {
        self.rule(Rule::NotEmpty)
    }

    pub(super) fn value(&self) -> Value {
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
        for rule in &self.rules {
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

pub(super) fn text(max: usize) -> Value {
    json!({ "type": "string", "maxLength": max })
}

/// Text without control characters, with so many bytes of UTF-8 at most. That bytes count and not characters no schema can say.
pub(super) fn word(max: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$" })
}

pub(super) fn integer(min: u64, max: u64) -> Value {
    json!({ "type": "integer", "minimum": min, "maximum": max })
}

pub(super) fn count() -> Value {
    integer(0, INTEGER_MAX)
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// A duration; what its limits are says the description.
pub(super) fn duration() -> Value {
    duration_like("30m")
}

/// The same with an example of its own, where `30m` is beyond its limits.
pub(super) fn duration_like(example: &str) -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX,
        "pattern": format!("^({})$", duration_cases()), "examples": [example]
    })
}

/// A duration that may be negative.
pub(super) fn signed_duration() -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX + 1,
        "pattern": format!("^-?({})$", duration_cases()), "examples": ["-1h"]
    })
}

/// The units of a duration, the largest first, and how many digits each can have within 100 years.
const UNITS: [(&str, u32); 6] = [("w", 4), ("d", 5), ("h", 6), ("m", 8), ("s", 10), ("ms", 13)];

/// Each unit once at most, the largest first, at least one; only the last may have a fraction.
pub(super) fn duration_cases() -> String {
    let last = |(place, (unit, digits)): (usize, &(&str, u32))| {
        let before: String =
            UNITS[..place].iter().map(|(unit, most)| format!("([0-9]{{1,{most}}}{unit})?")).collect();
        format!("{before}[0-9]{{1,{digits}}}(\\.[0-9]{{1,9}})?{unit}")
    };
    UNITS.iter().enumerate().map(last).collect::<Vec<_>>().join("|")
}

/// An instant as RFC 3339.
pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "pattern": "^(19[7-9][0-9]|[2-9][0-9]{3})-", "examples": ["2030-01-01T00:00:00.000Z"] })
}

pub(super) fn time_ms() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": INSTANT_MS_MAX })
}

pub(super) fn list(of: Value, min: usize, max: usize) -> Value {
    json!({ "type": "array", "items": of, "minItems": min, "maxItems": max })
}

/// Any number of them.
pub(super) fn all(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(super) fn of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Or `null`.
pub(super) fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// Any JSON.
pub(super) fn any() -> Value {
    json!({})
}
