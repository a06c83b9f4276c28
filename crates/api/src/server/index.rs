//! The index of the API.

use crate::declare::body::body;
use crate::declare::kind::text;
use crate::declare::part::{has, may};

/// Maximum length of a name or an address (bytes).
const TEXT_BYTES_MAX: usize = 255;

body! {
    /// The addresses to begin with, relative to the one that was asked for.
    ///
    /// The answer to `GET /`.
    pub struct IndexBody: answer "Index" {
        /// Always `tickwheel`.
        name: String = has(text(TEXT_BYTES_MAX, "tickwheel"));
        /// Version of the server.
        version: String = has(text(TEXT_BYTES_MAX, "0.1.0"));
        /// The description of the API, as OpenAPI 3.1.
        openapi: String = has(text(TEXT_BYTES_MAX, "openapi.json"));
        /// Whether the process is alive.
        health: String = has(text(TEXT_BYTES_MAX, "healthz"));
        /// Whether the server is ready for work.
        ready: String = has(text(TEXT_BYTES_MAX, "readyz"));
        /// The metrics for Prometheus.
        metrics: String = has(text(TEXT_BYTES_MAX, "metrics"));
        /// The pages for a browser, if there are any.
        console: Option<String> = may(text(TEXT_BYTES_MAX, "console/"));
        /// The page of the documentation with all calls: a path in the source of Tickwheel.
        docs: String = has(text(TEXT_BYTES_MAX, "docs/reference/http.md"));
    }
}
