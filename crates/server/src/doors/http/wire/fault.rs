//! What is wrong with a request before it is a request.

/// Which rule a head broke.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// It is not HTTP/1.x, or has more than one reading.
    Malformed,
    /// The request target is too long.
    UriTooLong,
    /// The header fields are too many or too long.
    HeadersTooLarge,
    /// It did not arrive in time.
    Timeout,
}

/// A head that is refused: the rule, what is wrong, and what to do instead.
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
