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
        Self { name, what, closed: true, members }
    }

    pub(super) fn answer(name: &'static str, what: &'static str, members: Vec<Member>) -> Self {
        Self { name, what, closed: false, members }
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
        schema
    }
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

/// A duration of a request; what its limits are says the description.
pub(super) fn duration() -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX,
        "pattern": "^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+(\\.[0-9]{1,9})?(ms|s|m|h|d|w))?$",
        "examples": ["30m"]
    })
}

/// A duration that may be negative.
pub(super) fn signed_duration() -> Value {
    json!({
        "type": "string", "format": "duration-text", "minLength": 2, "maxLength": duration::DURATION_BYTES_MAX + 1,
        "pattern": "^-?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+(\\.[0-9]{1,9})?(ms|s|m|h|d|w))?$",
        "examples": ["-1h"]
    })
}

/// An instant as RFC 3339.
pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time", "examples": ["2030-01-01T00:00:00.000Z"] })
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
