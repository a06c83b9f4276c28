//! The answer table: the meaning of the answers to `put`.

use tickwheel_queue::Undeliverable;

use crate::outcome::Outcome;
use crate::text::in_one_line;

/// Returns the meaning of an answer, which is a line without its end; `None`: the line is no answer to `put`.
///
/// | answer | meaning |
/// |---|---|
/// | `INSERTED` | delivered |
/// | `BURIED` | failure of the task; the job is in the server, and a second one follows |
/// | `JOB_TOO_BIG` | the task is dead |
/// | `DRAINING`, `OUT_OF_MEMORY` | failure of the target |
/// | `INTERNAL_ERROR` | failure of the task, which may have caused it |
pub(super) fn judge(line: &str) -> Option<Outcome> {
    let (word, _) = line.split_once(' ').unwrap_or((line, ""));
    Some(match word {
        "INSERTED" => Outcome::Delivered,
        "BURIED" => Outcome::task_failed("BURIED: the server had no memory to make the job ready"),
        "JOB_TOO_BIG" => {
            let reason = "JOB_TOO_BIG: the server takes no job of this size";
            Outcome::undeliverable(Undeliverable::TooLarge, reason)
        }
        "DRAINING" => Outcome::target_failed("DRAINING: the server takes no new jobs"),
        "OUT_OF_MEMORY" => Outcome::target_failed("OUT_OF_MEMORY"),
        "INTERNAL_ERROR" => Outcome::task_failed("INTERNAL_ERROR"),
        _ => return None,
    })
}

/// Returns the outcome of a message whose answer is no answer to its command. The connection cannot be used any more. A line in which
/// beanstalkd refuses a command may have its cause in the task. Any other line is from another program.
pub(super) fn wrong(line: &str) -> Outcome {
    let shown = in_one_line(line);
    if ["BAD_FORMAT", "EXPECTED_CRLF", "UNKNOWN_COMMAND"].contains(&line) {
        return Outcome::task_failed(format!("the server answered `{shown}` to `put`"));
    }
    Outcome::target_failed(format!("the server answered `{shown}`; no beanstalkd listens at this address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_a_meaning() {
        let name = |line: &str| judge(line).map(|outcome| outcome.name());
        assert_eq!(judge("INSERTED 7"), Some(Outcome::Delivered));
        assert_eq!(name("BURIED 7"), Some("failed"));
        assert_eq!(name("JOB_TOO_BIG"), Some("dead"));
        assert_eq!((name("DRAINING"), name("OUT_OF_MEMORY")), (Some("given_back"), Some("given_back")));
        assert_eq!(name("INTERNAL_ERROR"), Some("failed"));
        for (line, wanted) in [
            ("", "given_back"),
            ("HTTP/1.1 400 Bad Request", "given_back"),
            ("inserted 1", "given_back"),
            ("EXPECTED_CRLF", "failed"),
            ("BAD_FORMAT", "failed"),
        ] {
            assert_eq!((judge(line), wrong(line).name()), (None, wanted), "{line}");
        }
    }
}
