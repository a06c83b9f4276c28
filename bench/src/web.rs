//! Puts over HTTP: a server in this process and clients with one connection each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use anyhow::{Context, ensure};
use tickwheel_server::{Config, Server, Store};

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
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start a runtime")?;
        let server = runtime.block_on(Server::bind(config)).context("start a server")?;
        let address = server.local_addr();
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

/// One connection that is kept.
#[derive(Debug)]
pub(crate) struct WebClient {
    stream: BufReader<TcpStream>,
    line: String,
}

impl WebClient {
    pub(crate) fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), line: String::new() })
    }

    /// Puts a task and waits for its answer.
    pub(crate) fn put(&mut self, key: &str, payload: &str) -> anyhow::Result<()> {
        let body = format!("{{\"delay\":\"1d\",\"payload\":{payload}}}");
        let request = format!(
            "PUT /v1/queues/bench/tasks/{key} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.read_line()?.to_owned();
        ensure!(status.starts_with("HTTP/1.1 20"), "a put was answered {status:?}");
        let mut length = 0;
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().context("read the content length")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(())
    }

    fn read_line(&mut self) -> anyhow::Result<&str> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line)? > 0, "the server closed the connection");
        Ok(self.line.trim_end())
    }
}
