//! What a worker says about its leases, by token: ack, nack, extend.

use crate::bad_request::{BadRequest, shown};
use crate::json::{self, Members, Shape};
use crate::lease::{LEASE_MS_MAX, LEASE_MS_MIN};
use crate::{duration, value};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// Tokens in one call: as many as one lease call hands out.
pub const TOKENS_MAX: usize = 1_000;
/// How many characters of `[A-Za-z0-9_-]` a token has.
pub const TOKEN_CHARS: usize = 32;
/// A nack's reason has at most 1 KiB.
const REASON_BYTES_MAX: usize = 1_024;

const LATER: [&str; 0] = [];
const ELSEWHERE: [(&str, &str); 2] = [
    ("token", "write `tokens`, an array, even for one token"),
    ("queue", "it stands in the path: POST /v1/queues/{q}/ack"),
];

/// The body of `POST /v1/queues/{q}/ack`: `{"tokens": ["..."]}`, 1 to 1,000 of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AckBody {
    /// The tokens, in the order in which the answer speaks of them. One may stand there twice.
    pub tokens: Vec<String>,
}

/// The body of `POST /v1/queues/{q}/nack`: `{"tokens": ["..."], "delay": "5s", "reason": "..."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NackBody {
    /// The tokens, in the order in which the answer speaks of them.
    pub tokens: Vec<String>,
    /// The task becomes due again after so many ms. `None`: as its retry policy says; without one it is ready again at once, in its old
    /// place.
    #[serde(rename = "delay", serialize_with = "write_delay", skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Why, in the worker's words, at most 1 KiB. The task's owner sees it among its failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The body of `POST /v1/queues/{q}/extend`: `{"tokens": ["..."], "lease": "30s"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtendBody {
    /// The tokens, in the order in which the answer speaks of them.
    pub tokens: Vec<String>,
    /// The leases end so many ms after the call: 1 s to 12 h, by default as the queue's settings say, else 30 s.
    #[serde(rename = "lease", skip_serializing_if = "Option::is_none", with = "crate::duration::option")]
    pub lease_ms: Option<u64>,
}

impl AckBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; no token, more than 1,000, or one that could
    /// not be a token.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = read(bytes, &["tokens"])?;
        Ok(Self { tokens: tokens(&members)? })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl NackBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// As [`AckBody::parse`]; a bad delay; a reason above 1 KiB.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = read(bytes, &["tokens", "delay", "reason"])?;
        Ok(Self {
            tokens: tokens(&members)?,
            delay_ms: members.get("delay").map(|raw| value::duration_ms("delay", raw)).transpose()?,
            reason: members.get("reason").map(reason).transpose()?,
        })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

impl ExtendBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// As [`AckBody::parse`]; a lease outside 1 s to 12 h.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = read(bytes, &["tokens", "lease"])?;
        let lease = |raw| value::duration_ms_within("lease", raw, LEASE_MS_MIN..=LEASE_MS_MAX);
        let lease_ms = members.get("lease").map(lease).transpose()?;
        Ok(Self { tokens: tokens(&members)?, lease_ms })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

fn read<'a>(bytes: &'a [u8], known: &'static [&'static str]) -> Result<Members<'a>, BadRequest> {
    Members::read(bytes, &Shape { known, later: &LATER, elsewhere: &ELSEWHERE })
}

fn tokens(members: &Members<'_>) -> Result<Vec<String>, BadRequest> {
    const EXAMPLE: &str = r#""tokens": ["..."]"#;
    let raw = members.required("tokens", EXAMPLE)?;
    let found = value::array("tokens", raw, &format!("write for example `{EXAMPLE}`"))?;
    if found.is_empty() || found.len() > TOKENS_MAX {
        return Err(BadRequest::member(
            "tokens",
            format!("has {} tokens, not from 1 to {TOKENS_MAX}", found.len()),
            "send at least one token, and more than 1000 in several calls",
        ));
    }
    found.into_iter().enumerate().map(|(index, raw)| token(index, raw)).collect()
}

fn token(index: usize, raw: &RawValue) -> Result<String, BadRequest> {
    let path = format!("tokens[{index}]");
    let token = value::text(&path, raw, "the token of a lease")?;
    let in_alphabet = token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if in_alphabet && token.len() == TOKEN_CHARS {
        return Ok(token);
    }
    Err(BadRequest::member(
        path,
        format!("`{}` is not a token: it has {TOKEN_CHARS} characters of A-Z a-z 0-9 _ -", shown(&token)),
        "send the `token` of a lease answer as it is",
    ))
}

fn reason(raw: &RawValue) -> Result<String, BadRequest> {
    let reason = value::text("reason", raw, "the mail server did not answer")?;
    if reason.len() <= REASON_BYTES_MAX {
        return Ok(reason);
    }
    Err(BadRequest::member(
        "reason",
        format!("has {} bytes, the limit is {REASON_BYTES_MAX}", reason.len()),
        "shorten it",
    ))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn write_delay<S: Serializer>(delay_ms: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match delay_ms {
        Some(ms) => serializer.serialize_str(&duration::format(*ms)),
        None => serializer.serialize_none(),
    }
}

/// What became of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenResult {
    /// The task is done. It is never delivered again. A second ack of the token is told the same while the history remembers it.
    Acked,
    /// The task is given back: scheduled again if the nack had a delay, ready if not.
    Nacked,
    /// The lease holds for longer.
    Extended,
    /// The lease had ended, or no such token was ever issued. Nothing changed.
    Expired,
    /// The owner took the task out of the worker's hands. Nothing changed.
    Revoked,
}

/// The answer to ack, nack and extend: `{"results": ["acked", "expired"]}`, in the order of the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenResults {
    /// One for each token of the request.
    pub results: Vec<TokenResult>,
}
