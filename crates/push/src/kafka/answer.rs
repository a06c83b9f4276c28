//! The answer table: the meaning of errors of Kafka.

use krafka::KrafkaError;
use krafka::error::ErrorCode;
use tickwheel_queue::Undeliverable;

use crate::outcome::Outcome;
use crate::tls_error;

/// Returns the meaning of an error for the task and for the target.
///
/// | error | meaning |
/// |---|---|
/// | `MESSAGE_TOO_LARGE`, `RECORD_LIST_TOO_LARGE` | the task is dead |
/// | `INVALID_TOPIC_EXCEPTION` | the task is dead |
/// | no connection, no such topic, no rights, too few replicas, a producer that cannot go on | failure of the target |
/// | no answer in time | failure of the target |
/// | another error | failure of the task |
pub(super) fn judge(error: &KrafkaError) -> Outcome {
    let reason = text(error);
    let dead = |why| Outcome::undeliverable(why, reason.as_str());
    match error {
        KrafkaError::Broker { code: ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge, .. } => {
            dead(Undeliverable::TooLarge)
        }
        KrafkaError::Broker { code: ErrorCode::InvalidTopic, .. } => dead(Undeliverable::Refused),
        KrafkaError::Broker { code: ErrorCode::TopicAuthorizationFailed, .. } => {
            Outcome::target_failed(reason.as_str())
        }
        _ if error.is_retriable() || error.is_fatal() => Outcome::target_failed(reason.as_str()),
        KrafkaError::DeliveryTimeout { .. }
        | KrafkaError::UnknownTopic { .. }
        | KrafkaError::OutOfOrderSequence { .. }
        | KrafkaError::IllegalState { .. } => Outcome::target_failed(reason.as_str()),
        _ => Outcome::task_failed(reason.as_str()),
    }
}

/// Whether the producer is to be replaced by another one.
pub(super) fn ends_producer(error: &KrafkaError) -> bool {
    error.is_fatal()
        || matches!(
            error,
            KrafkaError::Network(_)
                | KrafkaError::Timeout { .. }
                | KrafkaError::DeliveryTimeout { .. }
                | KrafkaError::OutOfOrderSequence { .. }
                | KrafkaError::IllegalState { .. }
        )
}

/// Returns an error in one line.
pub(super) fn text(error: &KrafkaError) -> String {
    tls_error::in_words(error)
}

/// Returns an error of a connection that is being opened in one line.
pub(super) fn greeting(error: &KrafkaError) -> String {
    let text = text(error);
    // The client wraps the error of each broker in a text.
    if text.contains("protocol error (") {
        return format!(
            "the other side does not speak the protocol of Kafka at this port, or wants TLS there ({text})"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(error: &KrafkaError) -> &'static str {
        judge(error).name()
    }

    #[test]
    fn each_error_has_a_meaning() {
        let broker = |code| KrafkaError::Broker { code, message: "x".to_owned() };
        for (code, outcome) in [
            (ErrorCode::MessageTooLarge, "dead"),
            (ErrorCode::RecordListTooLarge, "dead"),
            (ErrorCode::InvalidTopic, "dead"),
            (ErrorCode::TopicAuthorizationFailed, "given_back"),
            (ErrorCode::ClusterAuthorizationFailed, "given_back"),
            (ErrorCode::NotEnoughReplicas, "given_back"),
            (ErrorCode::UnknownTopicOrPartition, "given_back"),
            (ErrorCode::InvalidRecord, "failed"),
        ] {
            assert_eq!(name(&broker(code)), outcome, "{code:?}");
        }
        let late =
            |possibly_written| KrafkaError::DeliveryTimeout { possibly_written, message: String::new() };
        assert_eq!((name(&late(true)), name(&late(false))), ("given_back", "given_back"));
        let unknown = KrafkaError::UnknownTopic { topic: "due".to_owned() };
        assert_eq!((name(&unknown), ends_producer(&unknown)), ("given_back", false));
        let closed = KrafkaError::Closed { message: String::new() };
        assert_eq!((name(&closed), ends_producer(&closed)), ("given_back", true));
    }
}
