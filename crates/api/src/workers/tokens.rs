//! The calls of a worker about its leases: ack, nack and extend, each by token.

use crate::declare::{ValueCodec, body, choice, duration, has, list, may, text};
use crate::text::bad_request::{BadRequest, shown};
use crate::values::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use serde_json::json;

/// Maximum number of tokens in one call; one lease call hands out as many.
pub const TOKENS_MAX: usize = 1_000;
/// Length of a token, whose characters are `[A-Za-z0-9_-]`.
pub const TOKEN_CHARS: usize = 32;
/// Maximum length of the reason of a nack (bytes).
const REASON_BYTES_MAX: usize = 1_024;

const ELSEWHERE: &[(&str, &str)] = &[
    ("token", "write `tokens`, an array, even for one token"),
    ("queue", "it stands in the path: POST /v1/queues/{q}/ack"),
];

body! {
    /// The leases whose tasks are done.
    ///
    /// The body of `POST /v1/queues/{q}/ack`: `{"tokens": ["..."]}`, 1 to 1,000 of them.
    pub struct AckBody: request "Ack" {
        /// The tokens of the leases.
        ///
        /// The answer has the results in this order. A token may be given twice.
        tokens: Vec<String> = has(tokens());
    }
    elsewhere: ELSEWHERE;
}

body! {
    /// The leases whose tasks failed and are given back.
    ///
    /// The body of `POST /v1/queues/{q}/nack`: `{"tokens": ["..."], "delay": "5s", "reason": "..."}`.
    pub struct NackBody: request "Nack" {
        /// The tokens of the leases.
        tokens: Vec<String> = has(tokens());
        /// Delay until the tasks are ready again. Default: the wait of the retry policy, or none.
        ///
        /// A task that is ready again at once keeps its old place in the queue.
        delay_ms as "delay": Option<u64> = may(duration());
        /// Why the attempt failed, at most 1,024 bytes. The reason is kept with the task.
        reason: Option<String> = may(text(REASON_BYTES_MAX, "the mail server did not answer").checked(fits));
    }
    elsewhere: ELSEWHERE;
}

body! {
    /// The leases that get more time.
    ///
    /// The body of `POST /v1/queues/{q}/extend`: `{"tokens": ["..."], "lease": "30s"}`.
    pub struct ExtendBody: request "Extend" {
        /// The tokens of the leases.
        tokens: Vec<String> = has(tokens());
        /// Length of the leases from now on, 1 s to 12 h. Default: the queue's `default_lease`.
        lease_ms as "lease": Option<u64> = may(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
    }
    elsewhere: ELSEWHERE;
}

fn tokens() -> impl ValueCodec<Value = Vec<String>> {
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
    /// The result for one token.
    pub enum TokenResult {
        /// The task is done and is never delivered again. A second ack of the token has the same result while the history remembers the task.
        Acked = "acked",
        /// The task is given back: scheduled if there is a delay, otherwise ready.
        Nacked = "nacked",
        /// The lease has more time.
        Extended = "extended",
        /// The lease had ended, or the token was never issued. Nothing changed.
        Expired = "expired",
        /// The owner had revoked the task. Nothing changed.
        Revoked = "revoked",
    }
}

body! {
    /// The result for each token, in the order of the request.
    ///
    /// The answer to ack, nack and extend: `{"results": ["acked", "expired"]}`.
    pub struct TokenResults: answer "TokenResults" {
        /// `acked` is also the result of a second ack of the token, while the history remembers the first. `expired` and `revoked`: the lease had ended, and nothing changed.
        results: Vec<TokenResult> = has(list(choice(), ""));
    }
}
