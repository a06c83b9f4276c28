//! W3C trace context: the headers that let tracing tools connect the work on a task with its put.

use crate::declare::{Mapped, RawMembers, body, may, text};
use crate::text::bad_request::BadRequest;

/// Length of a `traceparent`, which is `version-trace_id-parent_id-flags` (bytes).
const TRACEPARENT_BYTES: usize = 55;
/// Maximum length of a `tracestate` (bytes). A longer one is left out, as the W3C recommendation allows.
const TRACESTATE_BYTES_MAX: usize = 512;

/// The headers `traceparent` and `tracestate` of a put. They are kept with the task.
///
/// ```
/// use tickwheel_api::TraceContext;
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace = TraceContext::of_headers(parent, Some("vendor=1")).expect("well formed");
/// assert_eq!(trace.trace_id(), "0af7651916cd43dd8448eb211c80319c");
/// assert_eq!(TraceContext::read(&trace.to_text()), Some(trace));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The span that made the put.
    pub traceparent: String,
    /// Additional data of the tracing tools.
    pub tracestate: Option<String>,
}

body! {
    /// The trace context of a put.
    pub(crate) struct TraceMembers: group {
        /// The header `traceparent` of the put: the span that the work on the task should link to.
        traceparent: Option<String> = may(text(TRACEPARENT_BYTES, "text"));
        /// The header `tracestate` of the put.
        tracestate: Option<String> = may(text(TRACESTATE_BYTES_MAX, "text"));
    }
}

impl Mapped for TraceContext {
    type Members = TraceMembers;

    fn from_members(
        members: TraceMembers,
        _: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let TraceMembers { traceparent, tracestate } = members;
        let Some(parent) = traceparent else {
            let hint = "leave it out, or add the `traceparent` that it goes with";
            return Err(BadRequest::member("tracestate", "means nothing without a `traceparent`", hint));
        };
        let malformed = || {
            let hint = "leave the line as the export wrote it, or the member out";
            BadRequest::member("traceparent", "is no W3C trace context", hint)
        };
        Self::of_headers(&parent, tracestate.as_deref()).ok_or_else(malformed)
    }

    fn to_members(&self) -> TraceMembers {
        TraceMembers { traceparent: Some(self.traceparent.clone()), tracestate: self.tracestate.clone() }
    }
}

impl TraceContext {
    /// Reads the two headers. `None`: they are malformed; by the recommendation the receiver ignores them.
    ///
    /// For an unknown version, only the part that it shares with version 00 is kept.
    pub fn of_headers(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let traceparent = traceparent.trim_ascii();
        let (known, rest) = traceparent.split_at_checked(TRACEPARENT_BYTES)?;
        let mut parts = known.split('-');
        let mut hex = |digits: usize| {
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == digits && part.bytes().all(lower))
        };
        let (version, trace, parent, _flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let is_nothing = |id: &str| id.bytes().all(|byte| byte == b'0');
        let goes_on = rest.is_empty() || version != "00" && rest.starts_with('-');
        if version == "ff" || is_nothing(trace) || is_nothing(parent) || !goes_on {
            return None;
        }
        let fits = |state: &&str| {
            (1..=TRACESTATE_BYTES_MAX).contains(&state.len())
                && state.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let tracestate = tracestate.map(str::trim).filter(fits).map(str::to_owned);
        Some(Self { traceparent: known.to_owned(), tracestate })
    }

    /// The id of the trace, in hex.
    pub fn trace_id(&self) -> &str {
        self.traceparent.get(3..35).unwrap_or_default()
    }

    /// Both headers in one text, the form in which they are stored.
    pub fn to_text(&self) -> String {
        match &self.tracestate {
            None => self.traceparent.clone(),
            Some(state) => format!("{} {state}", self.traceparent),
        }
    }

    /// Reads the text of [`to_text`](Self::to_text); `None` for any other text.
    pub fn read(text: &str) -> Option<Self> {
        let (parent, state) =
            text.split_once(' ').map_or((text, None), |(parent, state)| (parent, Some(state)));
        Self::of_headers(parent, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_malformed_is_as_if_it_were_not_there() {
        for bad in [
            "",
            "00",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319cb7ad6b7169203331-0101",
            "00-ü0af7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::of_headers(bad, None), None, "{bad:?}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = PARENT.replacen("00", "01", 1);
        let trace = TraceContext::of_headers(&format!("{later}-more"), None).expect("it begins well");
        assert_eq!(trace.traceparent, later);
        assert_eq!(TraceContext::of_headers(&format!("{later}more"), None), None);
    }

    #[test]
    fn a_state_that_is_too_long_or_no_text_is_left_out() {
        for bad in ["", " ", "a\u{7f}", &"x".repeat(513)] {
            let trace = TraceContext::of_headers(PARENT, Some(bad)).expect("the parent is good");
            assert_eq!(trace.tracestate, None, "{bad:?}");
        }
        let long = "x".repeat(512);
        let trace = TraceContext::of_headers(PARENT, Some(&long)).expect("good");
        assert_eq!(TraceContext::read(&trace.to_text()), Some(trace));
    }
}
