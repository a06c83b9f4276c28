//! What a worker says about its leases, by token: ack, nack, extend.

use crate::bad_request::{BadRequest, shown};
use crate::body::body;
use crate::choice::choice;
use crate::kind::{Kind, choice, duration, list, text};
use crate::lease::{LEASE_MS_MAX, LEASE_MS_MIN};
use crate::part::{has, may};
use serde_json::json;

/// Tokens in one call: as many as one lease call hands out.
pub const TOKENS_MAX: usize = 1_000;
/// How many characters of `[A-Za-z0-9_-]` a token has.
pub const TOKEN_CHARS: usize = 32;
/// A nack's reason has at most 1 KiB.
const REASON_BYTES_MAX: usize = 1_024;

const ELSEWHERE: &[(&str, &str)] = &[
    ("token", "write `tokens`, an array, even for one token"),
    ("queue", "it stands in the path: POST /v1/queues/{q}/ack"),
];

body! {
    /// Which work is done.
    ///
    /// The body of `POST /v1/queues/{q}/ack`: `{"tokens": ["..."]}`, 1 to 1,000 of them.
    pub struct AckBody: request "Ack" {
        /// Those of the leases.
        ///
        /// The answer speaks of them in this order. One may stand there twice.
        tokens: Vec<String> = has(tokens());
    }
    elsewhere: ELSEWHERE;
}

body! {
    /// Which work is given back.
    ///
    /// The body of `POST /v1/queues/{q}/nack`: `{"tokens": ["..."], "delay": "5s", "reason": "..."}`.
    pub struct NackBody: request "Nack" {
        /// Those of the leases.
        tokens: Vec<String> = has(tokens());
        /// Not before so long. Default: what the retry policy says, or at once.
        ///
        /// At once is in its old place.
        delay_ms as "delay": Option<u64> = may(duration());
        /// What went wrong; it is kept with the task, 1,024 bytes at most.
        reason: Option<String> = may(text(REASON_BYTES_MAX, "the mail server did not answer").checked(fits));
    }
    elsewhere: ELSEWHERE;
}

body! {
    /// Which leases go on.
    ///
    /// The body of `POST /v1/queues/{q}/extend`: `{"tokens": ["..."], "lease": "30s"}`.
    pub struct ExtendBody: request "Extend" {
        /// Those of the leases.
        tokens: Vec<String> = has(tokens());
        /// So long from now, 1 s to 12 h. Default: that of the queue.
        lease_ms as "lease": Option<u64> = may(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
    }
    elsewhere: ELSEWHERE;
}

fn tokens() -> impl Kind<Value = Vec<String>> {
    let token = text(TOKEN_CHARS, "...").checked(is_token).described(|| {
        json!({ "type": "string", "minLength": TOKEN_CHARS, "maxLength": TOKEN_CHARS, "pattern": "^[A-Za-z0-9_-]{32}$" })
    });
    list(token, r#"write for example `"tokens": ["..."]`"#).of(1, TOKENS_MAX).checked(some_and_not_many)
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn some_and_not_many(path: &str, tokens: &Vec<String>) -> Result<(), BadRequest> {
    if (1..=TOKENS_MAX).contains(&tokens.len()) {
        return Ok(());
    }
    let what = format!("has {} tokens, not from 1 to {TOKENS_MAX}", tokens.len());
    Err(BadRequest::member(path, what, "send at least one token, and more than 1000 in several calls"))
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn is_token(path: &str, token: &String) -> Result<(), BadRequest> {
    let in_alphabet = token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if in_alphabet && token.len() == TOKEN_CHARS {
        return Ok(());
    }
    let what =
        format!("`{}` is not a token: it has {TOKEN_CHARS} characters of A-Z a-z 0-9 _ -", shown(token));
    Err(BadRequest::member(path, what, "send the `token` of a lease answer as it is"))
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn fits(path: &str, reason: &String) -> Result<(), BadRequest> {
    if reason.len() <= REASON_BYTES_MAX {
        return Ok(());
    }
    let what = format!("has {} bytes, the limit is {REASON_BYTES_MAX}", reason.len());
    Err(BadRequest::member(path, what, "shorten it"))
}

choice! {
    /// What became of one token.
    pub enum TokenResult {
        /// The task is done. It is never delivered again. A second ack of the token is told the same while the history remembers it.
        Acked = "acked",
        /// The task is given back: scheduled again if the nack had a delay, ready if not.
        Nacked = "nacked",
        /// The lease holds for longer.
        Extended = "extended",
        /// The lease had ended, or no such token was ever issued. Nothing changed.
        Expired = "expired",
        /// The owner took the task out of the worker's hands. Nothing changed.
        Revoked = "revoked",
    }
}

body! {
    /// What became of each token, in the order of the request.
    ///
    /// The answer to ack, nack and extend: `{"results": ["acked", "expired"]}`.
    pub struct TokenResults: answer "TokenResults" {
        /// `acked`: also a second ack of the token, while the history remembers the first. `expired` and `revoked`: the lease is over, and nothing changed.
        results: Vec<TokenResult> = has(list(choice(), ""));
    }
}
