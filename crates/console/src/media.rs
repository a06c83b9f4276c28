//! The media types of the files.

/// The media type of a file, as `Content-Type` has it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Media(&'static str);

impl Media {
    pub(crate) const PAGE: Self = Self("text/html; charset=utf-8");

    /// The type of a file with this path; `None`: no file with this ending is served.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        Some(Self(match ending {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            "txt" => "text/plain; charset=utf-8",
            _ => return None,
        }))
    }

    /// The value of `Content-Type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}
