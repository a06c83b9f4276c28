//! HTTP: a server in this process, and clients with one connection each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use tickwheel_server::{Config, ListenAt, Server, Store};

/// A server on a port of its own. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct WebServer {
    pub(crate) address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl WebServer {
    pub(crate) fn start(dir: &Path) -> anyhow::Result<Self> {
        let mut config = Config::new(Store::Dir(dir.to_owned()));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")?;
        let server = runtime.block_on(Server::bind(config)).context("start a server")?;
        let ListenAt::Tcp(address) = *server.local_addr() else { bail!("the server is not at an address") };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            }));
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection that is kept. It speaks just enough HTTP to be cheap beside a server.
#[derive(Debug)]
pub(crate) struct WebClient {
    stream: BufReader<TcpStream>,
    line: String,
    body: Vec<u8>,
}

impl WebClient {
    pub(crate) fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), line: String::new(), body: Vec::new() })
    }

    /// Puts a task and waits for its answer.
    pub(crate) fn put(&mut self, key: &str, payload: &str) -> anyhow::Result<()> {
        let body = format!("{{\"delay\":\"1d\",\"payload\":{payload}}}");
        self.ask("PUT", &format!("/v1/queues/bench/tasks/{key}"), body.as_bytes()).map(drop)
    }

    /// Posts a body and gives the answer's, which has to be a good one.
    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> anyhow::Result<&[u8]> {
        self.ask("POST", path, body)
    }

    /// Gives the body of a good answer.
    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<&[u8]> {
        self.ask("GET", path, b"")
    }

    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<&[u8]> {
        let status = self.call(method, path, "", body)?;
        ensure!(status / 100 == 2, "{method} {path} was answered {status}");
        Ok(&self.body)
    }

    /// The body of the last answer.
    pub(crate) fn answer(&self) -> &[u8] {
        &self.body
    }

    /// Makes a call and reads its answer, whatever it is; gives its status. `headers` have their line ends.
    pub(crate) fn call(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> anyhow::Result<u16> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat())?;
        let status = self.read_line()?;
        let status = status.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.with_context(|| format!("{method} {path} was answered in no words of HTTP"))?;
        let mut length = None;
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = Some(value.trim().parse().context("read the content length")?);
            }
        }
        self.body.clear();
        match length {
            Some(length) => self.take(length)?,
            None => self.take_chunks()?,
        }
        Ok(status)
    }

    fn take_chunks(&mut self) -> anyhow::Result<()> {
        loop {
            let size = usize::from_str_radix(self.read_line()?, 16).context("read the length of a chunk")?;
            self.take(size)?;
            self.read_line()?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn take(&mut self, bytes: usize) -> anyhow::Result<()> {
        let from = self.body.len();
        self.body.resize(from + bytes, 0);
        Ok(self.stream.read_exact(&mut self.body[from..])?)
    }

    fn read_line(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "the server closed the connection");
        Ok(self.line.trim_end())
    }
}
