//! The rights of a caller.

use crate::body::body;
use crate::kind::{choice, flag, list, or_null, text};
use crate::openapi::Right;
use crate::part::{has, shown};

/// Maximum length of a name or a scope (bytes).
const NAME_BYTES_MAX: usize = 255;

body! {
    /// The rights of the caller, and its queues.
    ///
    /// The answer to `GET /v1/whoami`: `{"anonymous": false, "token": "worker", "rights": ["consume"], "scopes": ["shop/"], "version": "0.1.0"}`.
    pub struct WhoamiBody: answer "Whoami" {
        /// Whether the server has no tokens, so that each caller may do everything.
        anonymous: bool = has(flag());
        /// Name of the token, as the log of the server has it; `null` without tokens.
        token: Option<String> = shown(None, or_null(text(NAME_BYTES_MAX, "worker")));
        /// The rights of the caller.
        rights: Vec<Right> = has(list(choice(), ""));
        /// The queues of the caller: names, and namespaces with a `/` at the end. Empty: all queues.
        scopes: Vec<String> = has(list(text(NAME_BYTES_MAX, "shop/"), ""));
        /// Version of the server.
        version: String = has(text(NAME_BYTES_MAX, "0.1.0"));
    }
}
