//! All tasks at once, out of a server and into one.

use std::io::{self, Read};

use hyper::body::Bytes;
use tickwheel_api::{ExportQuery, ImportEnd, ImportLine, ImportQuery, ImportRow};

use crate::call::{Answer, LONG_TIMEOUT, Request, calls};
use crate::exchange::Reply;
use crate::{Client, ClientError, blocking};

calls! {
    /// Sends lines of an export, the header first, up to 10,000 others behind it: what became of those that were not plainly added, and how
    /// it ended. An answer may take 10 minutes.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. What stopped the import is no error, but stands in its end. If the answer was lost, any number of the lines may be
    /// in.
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
    /// The lines of an export, as they come. It is whole only if its last line says `end`. After 10 minutes, and whenever the connection
    /// breaks, it is cut: then ask again with the text of the last whole cursor line.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. It is never sent again by itself.
    pub async fn export(&self, query: &ExportQuery) -> Result<Export, ClientError> {
        let request = Request::get("/v1/export").query(&query.to_query()).timeout(LONG_TIMEOUT);
        Ok(Export(self.exchange.open(&request).await?))
    }
}

/// The lines of an export on their way. Dropped before its end it closes its connection.
pub struct Export(Reply);

impl Export {
    /// The next bytes, which begin and end anywhere in a line; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ClientError::NoAnswer`] if the rest did not arrive; after that there is no more.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        Ok(self.0.next().await?.map(Vec::from))
    }
}

impl blocking::Client {
    /// The lines of an export, as they come: see [`Client::export`]. Where that returns an error, a read fails with it.
    ///
    /// # Errors
    ///
    /// As for [`Client::export`].
    pub fn export(&self, query: &ExportQuery) -> Result<impl Read + Send + use<>, ClientError> {
        let Export(reply) = self.run(self.client.export(query))?;
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
            match self.client.run(self.reply.next()).map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let step = self.piece.len().min(buffer.len());
        buffer[..step].copy_from_slice(&self.piece.split_to(step));
        Ok(step)
    }
}
