//! All tasks at once, from a server and into a server.

use std::io::{self, Read};

use hyper::body::Bytes;
use tickwheel_api::{ExportQuery, ImportEnd, ImportLine, ImportQuery, ImportRow};

use crate::call::{Answer, LONG_TIMEOUT, Request, calls};
use crate::exchange::Reply;
use crate::{Client, ClientError, blocking};

calls! {
    /// Sends lines of an export: the header first, and then up to 10,000 other lines. The answer has the results of the lines that were not
    /// simply added, and the end of the import. An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. The reason why an import stopped is not an error; it is in the end of the import. If the answer was lost, any
    /// number of the lines may be stored.
    fn import(query: ImportQuery, lines: Vec<u8>) -> (Vec<ImportLine>, ImportEnd) {
        Request::post("/v1/import").query(&query.to_query()).ndjson(lines).timeout(LONG_TIMEOUT).read(imported)
    }
}

fn imported(answer: Answer) -> Result<(Vec<ImportLine>, ImportEnd), ClientError> {
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

impl Client {
    /// The lines of an export, as they arrive. The export is whole only if its last line says `end`. It is cut after 10 minutes, and
    /// whenever the connection breaks. In that case, ask again with the text of the last whole cursor line.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. The client never repeats this call by itself.
    pub async fn export(&self, query: &ExportQuery) -> Result<Export, ClientError> {
        let request = Request::get("/v1/export").query(&query.to_query()).timeout(LONG_TIMEOUT);
        Ok(Export(self.exchange.open(&request).await?))
    }
}

/// The lines of an export as they arrive. If this value is dropped before the end, its connection is closed.
pub struct Export(Reply);

impl Export {
    /// The next bytes. They may begin and end anywhere in a line. `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoAnswer`] if the rest did not arrive. After this error there are no more bytes.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        Ok(self.0.next().await?.map(Vec::from))
    }
}

impl blocking::Client {
    /// The lines of an export, as they arrive: see [`Client::export`]. Where that method returns an error, a read fails with this error.
    ///
    /// # Errors
    ///
    /// As for [`Client::export`].
    pub fn export(&self, query: &ExportQuery) -> Result<impl Read + Send + use<>, ClientError> {
        let Export(reply) = self.block_on(self.client.export(query))?;
        Ok(Reading { client: self.clone(), reply, piece: Bytes::new() })
    }
}

struct Reading {
    client: blocking::Client,
    reply: Reply,
    piece: Bytes,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.client.block_on(self.reply.next()).map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let step = self.piece.len().min(buffer.len());
        buffer[..step].copy_from_slice(&self.piece.split_to(step));
        Ok(step)
    }
}
