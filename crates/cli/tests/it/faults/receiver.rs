//! A receiver of webhooks in the process of the tests, which is not killed. It answers as the test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::faults::report::wait_for;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(crate) key: String,
    /// The header `webhook-id`.
    pub(crate) id: String,
    pub(crate) attempt: u32,
    pub(crate) body: Vec<u8>,
}

/// An answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// An answer with this status line.
    Status(&'static str),
    /// No answer. The connection stays open until the server closes it.
    Silence,
}

pub(crate) const DONE: Reply = Reply::Status("204 No Content");

type Handler = dyn Fn(&Hook) -> Reply + Send + Sync;

/// See the module. Its threads end with the process of the tests.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    /// The number of connections that were accepted and have not ended.
    open: Arc<AtomicUsize>,
}

impl Receiver {
    /// Listens at any port. Each connection has a thread, which calls `handle` for each request.
    pub(crate) fn start(handle: impl Fn(&Hook) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", || true, handle)
    }

    /// Listens at this address. A connection that `admits` refuses is closed at once.
    pub(crate) fn start_at(
        address: &str,
        admits: impl Fn() -> bool + Send + 'static,
        handle: impl Fn(&Hook) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        let open = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&open);
        let handle: Arc<Handler> = Arc::new(handle);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !admits() {
                    continue;
                }
                let (count, handle) = (Arc::clone(&count), Arc::clone(&handle));
                count.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    serve(&stream, &*handle);
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, open }
    }

    /// Waits until everything that a killed server had sent was read. So no request of it comes after one of the next server.
    pub(crate) fn settle(&self) {
        // Connections are accepted in their order, so all before this one have been accepted when it is answered.
        let mut marker = TcpStream::connect(self.address).expect("it listens");
        marker.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
        marker.read_exact(&mut [0]).expect("it answers");
        drop(marker);
        wait_for("the end of all connections", || (self.open.load(Ordering::SeqCst) == 0).then_some(()));
    }
}

fn serve(stream: &TcpStream, handle: &Handler) {
    stream.set_nodelay(true).expect("a socket");
    let mut reader = BufReader::new(stream);
    while let Some((hook, is_marker)) = read(&mut reader) {
        let reply = if is_marker { DONE } else { handle(&hook) };
        let Reply::Status(status) = reply else {
            // The server sends nothing more on this connection. It ends with the server, or with its time-out.
            let _ended = reader.read_to_end(&mut Vec::new());
            return;
        };
        let length = if status.starts_with("204") { "" } else { "content-length: 0\r\n" };
        if (&*stream).write_all(format!("HTTP/1.1 {status}\r\n{length}\r\n").as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request, and whether it is that of [`Receiver::settle`]; `None`: the connection ended first.
fn read(reader: &mut impl BufRead) -> Option<(Hook, bool)> {
    let mut hook = Hook { key: String::new(), id: String::new(), attempt: 0, body: Vec::new() };
    let mut first = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.strip_suffix("\r\n")?;
        let Some(first) = &first else {
            first = Some(line.to_owned());
            continue;
        };
        if line.is_empty() {
            reader.read_exact(&mut hook.body).ok()?;
            return Some((hook, first.starts_with("GET ")));
        }
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "tickwheel-key" => hook.key = value.to_owned(),
            "webhook-id" => hook.id = value.to_owned(),
            "tickwheel-attempt" => hook.attempt = value.parse().ok()?,
            "content-length" => hook.body = vec![0; value.parse().ok()?],
            _ => {}
        }
    }
}
