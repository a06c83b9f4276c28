//! The health of a server.

use crate::declare::{
    Form, Source, ValueCodec, body, choice, count, flag, has, list, object, or_null, shown, text, value,
};
use crate::text::bad_request::BadRequest;
use serde::Serializer;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};

/// Maximum length of a reason (bytes).
const REASON_BYTES_MAX: usize = 4_096;

body! {
    /// The process is alive.
    ///
    /// The answer to `GET /healthz`.
    #[derive(Copy)]
    pub struct AliveBody: answer "Alive" {
        /// Always `ok`.
        status: Alive = has(choice());
    }
}

choice! {
    /// The state of a process that answers.
    pub enum Alive {
        /// The process is alive.
        Ok = "ok",
    }
}

body! {
    /// Whether the server is ready for work.
    ///
    /// The answer to `GET /readyz`.
    pub struct ReadyBody: answer "Ready" {
        /// Whether the server takes leases and acks, and also puts unless it drains.
        ready: bool = has(flag());
        /// The state in one word. `degraded`: leases and acks go on, but puts are refused because the disk is nearly full, or the server doubts its wall clock.
        status: Readiness = has(choice());
        /// Why the server is not ready or is degraded; `null` otherwise.
        why: Option<String> = shown(None, or_null(text(REASON_BYTES_MAX, "")));
        /// All reasons, the most serious first; empty if there is none.
        reasons: Vec<String> = has(list(text(REASON_BYTES_MAX, ""), ""));
        /// Whether the server refuses new tasks (`POST /v1/drain`, SIGUSR1). All other calls go on.
        draining: bool = has(flag());
        /// The durability of an acknowledged call. `fsync`: it survives a loss of power; `os`: a crash of the process; `memory`: neither.
        durability: Durability = has(choice());
        /// Whether the server has a virtual clock, which moves only with `POST /v1/clock/advance`.
        virtual_clock: bool = has(flag());
        /// Why the server is read-only; `null` if it is not.
        read_only: Option<String> = shown(None, or_null(text(REASON_BYTES_MAX, "")));
        /// Observations of the wall clock.
        clock: ClockReport = has(object());
        /// Remarks about the last recovery for the operator; `null` if there are none.
        recovery: Option<String> = shown(None, or_null(text(REASON_BYTES_MAX, "")));
    }
}

choice! {
    /// The state of a server.
    pub enum Readiness {
        /// All is well.
        Ok = "ok",
        /// The server drains on request: puts are refused.
        Draining = "draining",
        /// Leases and acks go on, but puts are refused or due tasks wait.
        Degraded = "degraded",
        /// The server changes nothing.
        ReadOnly = "read_only",
        /// The server does not answer, or it stops.
        NotReady = "not_ready",
    }
}

choice! {
    /// The durability of an acknowledged call.
    pub enum Durability {
        /// The call survives a loss of power.
        Fsync = "fsync",
        /// The call survives a crash of the process.
        Os = "os",
        /// The call survives neither.
        Memory = "memory",
    }
}

body! {
    /// The wall clock in comparison with the monotonic clock, which cannot step.
    #[derive(Copy)]
    pub struct ClockReport: answer "ClockReport" {
        /// Number of steps of the wall clock since the start of the server.
        steps: u64 = has(count());
        /// How far the system's wall clock is ahead of the time by which tasks fall due (ms). Above 0 only while the server doubts a step, or a clock that was far ahead at its start.
        offset_ms: i64 = has(Signed);
    }
}

/// An integer that may be negative.
struct Signed;

impl ValueCodec for Signed {
    type Value = i64;

    fn read(&self, path: &str, raw: &RawValue, _: Source) -> Result<i64, BadRequest> {
        serde_json::from_str(raw.get()).map_err(|_| {
            let what = format!("expected an integer, got {}", value::kind(raw));
            BadRequest::member(path, what, "write a whole number")
        })
    }

    fn write<S: Serializer>(&self, value: &i64, serializer: S, _: Form) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(*value)
    }

    fn schema(&self) -> Json {
        json!({ "type": "integer" })
    }

    fn example(&self) -> String {
        "0".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_report_is_read_as_it_is_written() {
        let report = ClockReport { steps: 1, offset_ms: -3_600_000 };
        let text = serde_json::to_string(&report).expect("JSON");
        assert_eq!(text, r#"{"steps":1,"offset_ms":-3600000}"#);
        assert_eq!(serde_json::from_str::<ClockReport>(&text).expect("a report"), report);
    }
}
