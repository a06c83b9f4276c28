//! A member that is an object with names of the caller's own choice, such as headers.

use std::collections::BTreeMap;

use serde::Serializer;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use crate::declare::{Form, Source, ValueCodec, value};
use crate::text::bad_request::BadRequest;

/// Texts by name, at most `max`.
pub(crate) fn names(max: usize) -> Names {
    Names { max }
}

/// See [`names`].
pub(crate) struct Names {
    max: usize,
}

impl ValueCodec for Names {
    type Value = BTreeMap<String, String>;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<Self::Value, BadRequest> {
        let hint = format!("write an object whose values are strings, for example {}", self.example());
        let refused = |what: String| BadRequest::member(path, what, &hint);
        if !raw.get().starts_with('{') {
            return Err(refused(format!("expected an object, got {}", value::kind(raw))));
        }
        let texts: BTreeMap<String, String> = serde_json::from_str(raw.get())
            .map_err(|_| refused("has a value that is not a string".to_owned()))?;
        if source.is_checked() && texts.len() > self.max {
            return Err(refused(format!("has {} members, more than {}", texts.len(), self.max)));
        }
        Ok(texts)
    }

    fn write<S: Serializer>(&self, value: &Self::Value, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.collect_map(value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "object", "maxProperties": self.max, "additionalProperties": { "type": "string" } })
    }

    fn example(&self) -> String {
        r#"{"shop": "eu"}"#.to_owned()
    }
}
