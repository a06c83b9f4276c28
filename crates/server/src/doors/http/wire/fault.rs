//! The faults for which a head is refused.

/// The rule that a head broke.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// The head is not HTTP/1.x, or has more than one reading.
    Malformed,
    /// The request target is too long.
    UriTooLong,
    /// The header fields are too many or too long.
    HeadersTooLarge,
    /// The head did not arrive in time.
    Timeout,
}

/// Why a head is refused: the rule, the mistake, and the correct form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) rule: Rule,
    pub(crate) what: String,
    pub(crate) hint: &'static str,
}

impl Fault {
    pub(crate) fn malformed(what: impl Into<String>, hint: &'static str) -> Self {
        Self { rule: Rule::Malformed, what: what.into(), hint }
    }
}
