//! The rights of a caller.

use crate::declare::{body, choice, count, duration, flag, has, list, may, object, or_null, shown, text};
use crate::values::rate::{Rate, RateBody};
use crate::values::right::Right;

/// Maximum length of a name or a scope (bytes).
const NAME_BYTES_MAX: usize = 255;

body! {
    /// The rights of the caller, and its queues.
    ///
    /// The answer to `GET /v1/whoami`: `{"anonymous": false, "token": "worker", "rights": ["consume"], "scopes": ["shop/"], "limits": {"rate": "100/s"}, ...}`.
    pub struct WhoamiBody: answer "Whoami" {
        /// Whether the server has no tokens, so that each caller may do everything.
        anonymous: bool = has(flag());
        /// Name of the token, as the log of the server has it; `null` without tokens.
        token: Option<String> = shown(None, or_null(text(NAME_BYTES_MAX, "worker")));
        /// The rights of the caller.
        rights: Vec<Right> = has(list(choice(), ""));
        /// The queues of the caller: names, and namespaces with a `/` at the end. Empty: all queues.
        scopes: Vec<String> = has(list(text(NAME_BYTES_MAX, "shop/"), ""));
        /// The limits of the token, as the token file has them.
        limits: TokenLimits = has(object());
        /// Version of the server.
        version: String = has(text(NAME_BYTES_MAX, "0.1.0"));
        /// Whether the server has a virtual clock, which moves only with `POST /v1/clock/advance`.
        virtual_clock: bool = has(flag());
        /// Whether the store failed, so that the server changes nothing until it is started again; `GET /readyz` says why.
        read_only: bool = has(flag());
        /// A text that is another one after each start of the server. A page that stays open learns from it that the server was started again.
        instance: String = has(text(NAME_BYTES_MAX, "9f2c41d07be6a853"));
        /// The console of the server, for its pages. With `read-only` they show no actions; the rights of a caller are those in `rights`.
        console: ConsoleMode = has(choice());
    }
}

body! {
    /// The limits of a token. A limit that is absent does not apply.
    #[derive(Copy, Default)]
    pub struct TokenLimits: answer "TokenLimits" {
        /// Calls per time. Each line of a batch is a call.
        rate: Option<RateBody> = may(Rate);
        /// Bytes of request bodies per time.
        bytes: Option<RateBody> = may(Rate);
        /// Live and dead tasks in the queues of the token.
        tasks: Option<u64> = may(count());
        /// How far ahead the due time of a put may be.
        max_delay_ms as "max_delay": Option<u64> = may(duration());
    }
}

choice! {
    /// The pages of a server for browsers.
    #[derive(Default)]
    pub enum ConsoleMode {
        /// The pages show what the server has, and a person can act on it.
        #[default]
        On = "on",
        /// The pages show no actions. That is no protection: the API takes the same calls.
        ReadOnly = "read-only",
        /// There are no pages.
        Off = "off",
    }
}
