//! The answer table: the meaning of errors of Redis.

use ::redis::{ErrorKind, RedisError};
use tickwheel_queue::Undeliverable;

use crate::outcome::Outcome;
use crate::text::in_one_line;
use crate::tls_error;

/// Errors of the server as a whole: it takes nothing now, or nothing from this user.
const OF_THE_SERVER: [&str; 15] = [
    "OOM",
    "MISCONF",
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "NOREPLICAS",
    "BUSY",
    "NOAUTH",
    "NOPERM",
    "WRONGPASS",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "UNBLOCKED",
];

/// Returns the meaning of an error for the task and for the target.
///
/// | error | meaning |
/// |---|---|
/// | the connection was lost | failure of the target |
/// | `OOM`, `MISCONF`, `READONLY`, `LOADING`, `MASTERDOWN`, `NOREPLICAS`, `BUSY`, and those of clusters | failure of the target |
/// | `NOAUTH`, `NOPERM`, `WRONGPASS` | failure of the target |
/// | `WRONGTYPE`: the key has another type | the target is disabled |
/// | the value is too large for the server | the task is dead |
/// | another error | failure of the task |
pub(super) fn judge(error: &RedisError) -> Outcome {
    let reason = text(error);
    match error.code() {
        Some("WRONGTYPE") => Outcome::Disabled { reason: reason.into() },
        Some(code) if OF_THE_SERVER.contains(&code) || reason.contains("unauthenticated") => {
            Outcome::target_failed(reason)
        }
        Some(_) if is_too_large(&reason) => Outcome::undeliverable(Undeliverable::TooLarge, reason),
        Some(_) => Outcome::task_failed(reason),
        None => match error.kind() {
            ErrorKind::UnexpectedReturnType => Outcome::task_failed(reason),
            _ => Outcome::target_failed(reason),
        },
    }
}

/// Whether the error makes another address worth a try: the server has become a replica, or lost its master.
pub(super) fn is_replica(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN"))
}

fn is_too_large(reason: &str) -> bool {
    ["invalid bulk length", "Elements are too large", "string exceeds maximum allowed size"]
        .iter()
        .any(|part| reason.contains(part))
}

/// Returns an error in one line.
pub(super) fn text(error: &RedisError) -> String {
    let text = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        // The client replaces the answer of the server.
        (None, _) if error.kind() == ErrorKind::AuthenticationFailed => {
            "Password authentication failed".to_owned()
        }
        (None, _) => return tls_error::in_words(error),
    };
    in_one_line(&text)
}

/// Returns an error of a connection that is being opened in one line.
pub(super) fn greeting(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Parse => {
            format!(
                "the other side does not speak the protocol of Redis at this port, or wants TLS there ({})",
                text(error)
            )
        }
        _ if error.is_connection_dropped() => {
            format!("the other side ended the connection; it may be no Redis, or want TLS ({})", text(error))
        }
        _ => text(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error of a line as a server sends it.
    fn error(line: &str) -> RedisError {
        let value =
            ::redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("an error is a value");
        value.extract_error().expect_err("an error")
    }

    #[test]
    fn the_fault_of_a_server_uses_up_no_attempt() {
        for line in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
            "MISCONF Errors writing to the AOF file: No space left on device",
            "NOAUTH Authentication required.",
            "NOPERM this user has no permissions to run the 'xadd' command",
            "MOVED 3999 127.0.0.1:6381",
            "ERR Protocol error: unauthenticated multibulk length",
        ] {
            assert_eq!(judge(&error(line)), Outcome::target_failed(line), "{line}");
        }
    }

    #[test]
    fn other_errors_have_their_own_meaning() {
        let line = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(judge(&error(line)), Outcome::Disabled { reason: line.into() });
        let line = "ERR Protocol error: invalid bulk length";
        let dead = Outcome::Undeliverable { why: Undeliverable::TooLarge, reason: line.into() };
        assert_eq!(judge(&error(line)), dead);
        let line = "ERR unknown command 'XADD'";
        assert_eq!(judge(&error(line)), Outcome::task_failed(line));
    }
}
