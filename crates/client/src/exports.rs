//! All tasks at once, out of a server and into one.

use crate::exchange::Call;
use crate::{Client, ClientError};
use std::io::Read;
use std::time::Duration;
use tickwheel_api::{ExportQuery, ImportEnd, ImportLine, ImportQuery, ImportRow};

/// 10 minutes for one answer or one request of lines. An export that takes longer goes on from its last cursor line.
const LINES_TIMEOUT: Duration = Duration::from_secs(600);

impl Client {
    /// The lines of an export, as they come. It is whole only if its last line says `end`. After 10 minutes, and whenever the connection breaks, it is cut:
    /// then ask again with the text of the last whole cursor line.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn export(&self, query: &ExportQuery) -> Result<impl Read + Send + use<>, ClientError> {
        self.exchange.stream(
            &Call::new("GET", "/v1/export".to_owned()).query(&query.to_query()).timeout(LINES_TIMEOUT),
        )
    }

    /// Sends lines of an export, the header first, up to 10,000 others behind it: what became of those that were not plainly added, and how it ended.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. What stopped the import is no error, but stands in its end. If the answer was lost, any number of the lines may be in.
    pub fn import(
        &self,
        query: ImportQuery,
        lines: Vec<u8>,
    ) -> Result<(Vec<ImportLine>, ImportEnd), ClientError> {
        let call = Call::new("POST", "/v1/import".to_owned()).query(&query.to_query());
        let answer = self.exchange.send(call.ndjson(lines).timeout(LINES_TIMEOUT))?;
        let (mut found, mut end) = (Vec::new(), None);
        for row in answer.lines()? {
            match row {
                ImportRow::Line(line) => found.push(line),
                ImportRow::End(last) => end = Some(*last),
            }
        }
        let what = || "an import without an end: any number of its lines may be in".to_owned();
        end.map(|end| (found, end))
            .ok_or_else(|| ClientError::BadAnswer { status: Some(answer.status), what: what() })
    }
}
