//! The answer table: the meaning of the answers of JetStream.

use std::error::Error as _;

use async_nats::jetstream::Error;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::{ConnectError, ConnectErrorKind};
use tickwheel_queue::Undeliverable;

use crate::outcome::Outcome;
use crate::text::in_one_line;
use crate::tls_error;

/// Returns the meaning of an error for the task and for the target.
///
/// | error | meaning |
/// |---|---|
/// | no stream takes the subject, or another one does | failure of the target |
/// | the stream, the account or the server is full or not available | failure of the target |
/// | the connection was lost | failure of the target |
/// | the message is larger than the server or the stream takes | the task is dead |
/// | another answer | failure of the task |
pub(super) fn judge(error: &PublishError, subject: &str, has_jetstream: bool) -> Outcome {
    match error.kind() {
        PublishErrorKind::StreamNotFound if has_jetstream => {
            Outcome::target_failed(format!("no stream takes the subject `{subject}`"))
        }
        PublishErrorKind::StreamNotFound => Outcome::target_failed(format!(
            "no stream takes the subject `{subject}`, for the server has no JetStream"
        )),
        PublishErrorKind::MaxPayloadExceeded => Outcome::undeliverable(Undeliverable::TooLarge, text(error)),
        PublishErrorKind::BrokenPipe | PublishErrorKind::MaxAckPending => Outcome::target_failed(text(error)),
        PublishErrorKind::TimedOut
        | PublishErrorKind::WrongLastMessageId
        | PublishErrorKind::WrongLastSequence => Outcome::task_failed(text(error)),
        PublishErrorKind::Other => {
            match error.source().and_then(|source| source.downcast_ref::<Error>()) {
                Some(answer) => of_jetstream(answer),
                // The client could not hand the message to its connection.
                None => Outcome::target_failed(text(error)),
            }
        }
    }
}

/// Returns the meaning of an answer of JetStream.
fn of_jetstream(answer: &Error) -> Outcome {
    let reason = in_one_line(&answer.to_string());
    match answer.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            Outcome::undeliverable(Undeliverable::TooLarge, reason)
        }
        ErrorCode::STREAM_NOT_MATCH
        | ErrorCode::STREAM_STORE_FAILED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::JETSTREAM_NOT_ENABLED
        | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT => Outcome::target_failed(reason),
        // 503: the server is not able to, whatever the message is.
        _ if answer.code() == 503 => Outcome::target_failed(reason),
        _ => Outcome::task_failed(reason),
    }
}

/// Returns an error of a connection that is being opened in one line.
pub(super) fn greeting(error: &ConnectError) -> String {
    let text = tls_error::in_words(error);
    match error.kind() {
        ConnectErrorKind::TimedOut => {
            format!("no greeting of NATS in time; the other side may be no NATS at this port ({text})")
        }
        ConnectErrorKind::Io
            if ["invalid server operation", "expected INFO"].iter().any(|part| text.contains(part)) =>
        {
            format!("the other side does not speak the protocol of NATS at this port ({text})")
        }
        _ => text,
    }
}

fn text(error: &PublishError) -> String {
    in_one_line(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, err_code: u64) -> &'static str {
        let json = serde_json::json!({"code": code, "err_code": err_code, "description": "x"});
        let answer: Error = serde_json::from_value(json).expect("an answer");
        let error = PublishError::with_source(PublishErrorKind::Other, answer);
        judge(&error, "due", true).name()
    }

    #[test]
    fn a_server_of_another_kind_is_told() {
        for source in ["invalid server operation: 'HTTP/1.1 400'", "expected INFO, got nothing"] {
            let told = greeting(&ConnectError::with_source(ConnectErrorKind::Io, source));
            assert!(told.starts_with("the other side does not speak the protocol of NATS"), "{told}");
            assert!(told.ends_with(&format!("{source})")), "{told}");
        }
        let refused = greeting(&ConnectError::with_source(ConnectErrorKind::Io, "connection refused"));
        assert_eq!(refused, "IO error: connection refused");
    }

    #[test]
    fn each_answer_has_a_meaning() {
        assert_eq!(answer(400, 10_054), "dead", "larger than the stream takes");
        for (code, err_code) in [(400, 10_060), (503, 10_077), (503, 10_023), (503, 10_008), (400, 10_047)] {
            assert_eq!(answer(code, err_code), "given_back", "{err_code}");
        }
        assert_eq!(answer(400, 10_071), "failed");
        let lost = PublishError::new(PublishErrorKind::BrokenPipe);
        assert_eq!(judge(&lost, "due", true).name(), "given_back");
    }
}
