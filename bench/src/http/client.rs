//! One connection, and the few requests that are measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};

/// It speaks just enough HTTP to be cheap beside a server.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), body: Vec::new() })
    }

    /// Posts a body and gives the answer's, which has to be a good one.
    pub(super) fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<&[u8]> {
        self.ask("POST", path, body)
    }

    /// Gives the body of a good answer.
    pub(super) fn get(&mut self, path: &str) -> anyhow::Result<&[u8]> {
        self.ask("GET", path, b"")
    }

    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<&[u8]> {
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        let out = self.stream.get_mut();
        out.write_all(head.as_bytes())?;
        out.write_all(body)?;
        let status = self.line()?;
        ensure!(status.starts_with("HTTP/1.1 20"), "{path} was answered {status:?}");
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>().context("read the content length")?);
            }
        }
        self.body.clear();
        match length {
            Some(length) => self.take(length)?,
            None => loop {
                let size = usize::from_str_radix(&self.line()?, 16).context("read the length of a chunk")?;
                self.take(size)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            },
        }
        Ok(&self.body)
    }

    fn take(&mut self, bytes: usize) -> anyhow::Result<()> {
        let from = self.body.len();
        self.body.resize(from + bytes, 0);
        Ok(self.stream.read_exact(&mut self.body[from..])?)
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the server closed the connection");
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
