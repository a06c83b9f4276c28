//! [`SecretBody`]: a secret in a request, and the traces of it in an answer.

use std::fmt;

use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

use crate::declare::{Body, Form, Source, ValueCodec, body, flag, may, or_null, text};
use crate::text::bad_request::{BadRequest, inside};

/// Maximum length of a secret (bytes).
const SECRET_BYTES_MAX: usize = 4_096;
/// Maximum length of the name or the id of a secret (bytes).
const NAME_BYTES_MAX: usize = 100;

/// A secret: its text, the name that it has in the configuration of the server, or the fact that it is set.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretBody {
    /// The secret itself. The server stores it encrypted, and shows it to no caller.
    Text(String),
    /// `{"name": "orders"}`: the secret of this name in the configuration of the server.
    Name(String),
    /// `{"set": true}`: a secret that the server has. In a request it keeps this secret.
    Set {
        /// An id that two secrets have in common only if they are equal, but by accident; `None`: the secret has no id.
        id: Option<String>,
    },
}

impl fmt::Debug for SecretBody {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Name(name) => f.debug_tuple("Name").field(name).finish(),
            Self::Set { id } => f.debug_struct("Set").field("id", id).finish(),
        }
    }
}

body! {
    /// A secret that is not written out.
    pub(crate) struct SecretMembers: members "Secret" {
        /// Name of the secret in the configuration of the server.
        name: Option<Option<String>> = may(or_null(text(NAME_BYTES_MAX, "orders")));
        /// `true`: the server has the secret, and keeps it.
        set: Option<Option<bool>> = may(or_null(flag()));
        /// An id by which two secrets are told apart.
        id: Option<Option<String>> = may(or_null(text(NAME_BYTES_MAX, "5e884898")));
    }
    example: r#"{"name": "orders"}"#;
}

/// A secret, see [`SecretBody`].
pub(crate) fn secret() -> Secret {
    Secret
}

/// See [`secret`].
pub(crate) struct Secret;

impl ValueCodec for Secret {
    type Value = SecretBody;

    fn read(&self, path: &str, raw: &RawValue, source: Source) -> Result<SecretBody, BadRequest> {
        let hint = r#"write the secret as a string, `{"name": "orders"}` for one of the server's configuration, or `{"set": true}` to keep the one that the target has"#;
        let refused = |what: &str| BadRequest::member(path, what, hint);
        if raw.get().starts_with('"') {
            let text: String =
                serde_json::from_str(raw.get()).map_err(|_| refused("has a string that is not Unicode"))?;
            return match text.len() {
                0 => Err(refused("is empty")),
                // The length alone is named, because errors are logged.
                len if len > SECRET_BYTES_MAX => Err(refused(&format!("has {len} bytes"))),
                _ => Ok(SecretBody::Text(text)),
            };
        }
        if !raw.get().starts_with('{') {
            return Err(refused("is not a secret"));
        }
        let members = SecretMembers::from_value(raw, source).map_err(|refused| inside(path, refused))?;
        match (members.name.flatten(), members.set.flatten()) {
            (Some(name), None) if !name.is_empty() && name.len() <= NAME_BYTES_MAX => {
                Ok(SecretBody::Name(name))
            }
            (None, Some(true)) => Ok(SecretBody::Set { id: members.id.flatten() }),
            _ => Err(refused("is not a secret")),
        }
    }

    fn write<S: Serializer>(&self, value: &SecretBody, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        match value {
            SecretBody::Text(text) => serializer.serialize_str(text),
            SecretBody::Name(name) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("name", name)?;
                map.end()
            }
            SecretBody::Set { id } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("set", &true)?;
                if let Some(id) = id {
                    map.serialize_entry("id", id)?;
                }
                map.end()
            }
        }
    }

    fn schema(&self) -> Json {
        let name = json!({ "type": "string", "minLength": 1, "maxLength": NAME_BYTES_MAX });
        json!({ "anyOf": [
            { "type": "string", "minLength": 1, "maxLength": SECRET_BYTES_MAX },
            { "type": "object", "additionalProperties": false, "required": ["name"], "properties": { "name": name.clone() } },
            { "type": "object", "additionalProperties": false, "required": ["set"], "properties": { "set": { "type": "boolean", "enum": [true] }, "id": name } }
        ] })
    }

    fn example(&self) -> String {
        r#"{"name": "orders"}"#.to_owned()
    }
}
