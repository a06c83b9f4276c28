//! The two sides of a text: the sender whose text is read, and the reader for whom a text is written.

/// The sender of a text that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client, in a request: its members are checked, and unknown ones are refused.
    Request,
    /// A file, in a line of an export. It is checked as a request is, but JSON that some readers cannot read is taken.
    Export,
    /// As `Export`, but JSON that some readers cannot read is taken only where the line says that the payload is invalid.
    PortableExport,
    /// A server, in an answer. It may be of a later release: unknown members are skipped, and limits are not checked.
    Answer,
}

impl Source {
    /// Whether the limits are checked, and unknown members are refused.
    pub(crate) fn is_checked(self) -> bool {
        self != Self::Answer
    }
}

/// The form in which JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Whether the JSON is written without line ends.
    pub(crate) one_line: bool,
    /// The reader, which decides the form of payloads that some readers cannot read.
    pub(crate) reader: Reader,
}

/// The reader of a text that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A server, which checks the request by itself.
    Server,
    /// A client that reads strict JSON.
    Client,
    /// A client of a server with `--lax-json`.
    LaxClient,
}
