//! The objects in the settings of a target.

use crate::declare::{Rule, body, choice, duration, has, instant, may, nullable, number, or, text, word};
use crate::text::bad_request::BadRequest;

use super::secret::{SecretBody, secret};

/// Maximum number of signing secrets of a target.
pub const SIGNING_MAX: usize = 5;
/// Maximum length of a name in the configuration of the server (bytes).
const NAME_BYTES_MAX: usize = 100;

body! {
    /// A secret that signs.
    pub struct SigningBody: inner "Signing" {
        /// The secret: `whsec_` and the base64 of 24 to 64 bytes, or `whsk_` and the base64 of an Ed25519 key.
        secret: SecretBody = has(secret());
        /// Until when the secret signs. Default: it has no end.
        until_ms as "until": Option<i64> = nullable(instant());
    }
    example: r#"{"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}"#;
}

body! {
    /// The header `authorization` of a webhook: one of the two.
    pub struct AuthBody: inner "Auth" {
        /// The token behind `Bearer`.
        bearer: Option<SecretBody> = may(secret());
        /// User and password.
        basic: Option<BasicBody> = may(crate::declare::value_codec::object());
    }
    example: r#"{"bearer": {"name": "orders"}}"#;
    rules: &[Rule::One(&["bearer", "basic"])];
    check: |auth: &Self, _| auth.check();
}

impl AuthBody {
    fn check(&self) -> Result<(), BadRequest> {
        if self.bearer.is_some() != self.basic.is_some() {
            return Ok(());
        }
        Err(BadRequest::body("has not exactly one of `bearer` and `basic`", "write one of the two"))
    }
}

body! {
    /// A user and a password.
    pub struct BasicBody: inner "Basic" {
        /// The user, without a colon.
        user: String = has(word(200, "tickwheel"));
        /// The password.
        password: SecretBody = has(secret());
    }
    example: r#"{"user": "tickwheel", "password": {"name": "orders"}}"#;
}

body! {
    /// The settings of TLS towards a webhook. The names are those of `[push.tls.NAME]` in the server's configuration.
    #[derive(Default)]
    pub struct TargetTlsBody: inner "TargetTls" {
        /// Name of the authorities that are trusted. Default: the usual ones of the web.
        ca: Option<String> = nullable(text(NAME_BYTES_MAX, "shop"));
        /// Name of the client certificate. Default: none.
        client_cert: Option<String> = nullable(text(NAME_BYTES_MAX, "shop"));
        /// The lowest version of TLS. Default: 1.2.
        min: Option<TlsVersion> = nullable(choice());
    }
    example: r#"{"ca": "shop"}"#;
}

choice! {
    /// A version of TLS.
    pub enum TlsVersion {
        /// TLS 1.2.
        V12 = "1.2",
        /// TLS 1.3.
        V13 = "1.3",
    }
}

body! {
    /// When nothing is sent for a while, because the target fails.
    #[derive(Copy)]
    pub struct BreakerBody: inner "Breaker" {
        /// Number of failures in a row after which the breaker opens. Default: 10.
        failures: u32 = or(10, number(1, 10_000));
        /// How long the breaker is open the first time, 10 ms to 1 h. Default: 1 s.
        open_ms as "open": u64 = or(1_000, duration().within(10, 3_600_000).like("1s"));
        /// The longest time for which the breaker is open, up to 24 h. The time doubles with each probe that fails. Default: 60 s, or `open` if that is longer.
        open_max_ms as "open_max": Option<u64> = nullable(duration().within(10, 86_400_000).like("60s"));
    }
    example: r#"{"failures": 10, "open": "1s", "open_max": "60s"}"#;
    check: |breaker: &Self, _| breaker.check();
}

impl BreakerBody {
    fn check(&self) -> Result<(), BadRequest> {
        match self.open_max_ms {
            Some(max) if max < self.open_ms => Err(BadRequest::member(
                "open_max",
                "is shorter than `open`",
                "make it longer, or leave it out",
            )),
            _ => Ok(()),
        }
    }
}

choice! {
    /// The end of a list of Redis to which messages are pushed.
    pub enum ListEnd {
        /// The tail: `RPUSH`.
        Right = "right",
        /// The head: `LPUSH`.
        Left = "left",
    }
}
