//! Results of lease tokens, for ack, nack and extend.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use serde::Serialize;
use tickwheel_api::{TOKENS_MAX, TokenResult};

use crate::output::{Format, Row, say};

/// Sends the tokens and prints the result of each. One call has at most as many tokens as the server allows. The exit code is 1 if the lease
/// of at least one token had ended.
pub(super) fn settle(
    format: &Format,
    tokens: Vec<String>,
    send: impl Fn(Vec<String>) -> Result<Vec<TokenResult>>,
) -> Result<ExitCode> {
    let mut ended = 0_usize;
    for tokens in tokens.chunks(TOKENS_MAX) {
        let results = send(tokens.to_vec())?;
        let (sent, answered) = (tokens.len(), results.len());
        ensure!(sent == answered, "{sent} tokens were sent and the server speaks of {answered}");
        ended += results.iter().filter(|result| is_ended(**result)).count();
        format.print(tokens.iter().zip(results).map(|(token, result)| Settled { token, result }))?;
    }
    if ended == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    say(
        "a lease had ended: `expired` is one that ran out, was settled before or never was, `revoked` one that its owner took back",
    );
    Ok(ExitCode::FAILURE)
}

fn is_ended(result: TokenResult) -> bool {
    match result {
        TokenResult::Acked | TokenResult::Nacked | TokenResult::Extended => false,
        TokenResult::Expired | TokenResult::Revoked => true,
    }
}

#[derive(Serialize)]
struct Settled<'a> {
    token: &'a str,
    result: TokenResult,
}

impl Row for Settled<'_> {
    const HEADER: &'static [&'static str] = &["TOKEN", "RESULT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a result is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let name = match self.result {
            TokenResult::Acked => "acked",
            TokenResult::Nacked => "nacked",
            TokenResult::Extended => "extended",
            TokenResult::Expired => "expired",
            TokenResult::Revoked => "revoked",
        };
        vec![self.token.to_owned(), name.to_owned()]
    }
}
