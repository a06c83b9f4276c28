//! [`Proxy`]: a way to a server whose answers take their time.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A port on loopback from which connections go on to a server. All bytes of the server arrive later by the same time. The bytes to the server
/// are not delayed. Its threads end with their connections, and the one that accepts ends with the test process.
pub(crate) struct Proxy {
    port: u16,
}

impl Proxy {
    /// Starts a proxy to a port on loopback. What the server sends arrives `late` by this time.
    pub(crate) fn start(to: u16, late: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is gone refuses the connection. The client then sees its end.
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { continue };
                let [to_server, to_client] = [&server, &client].map(|stream| {
                    stream.set_nodelay(true).expect("a socket");
                    stream.try_clone().expect("a descriptor")
                });
                std::thread::spawn(move || pass(client, to_server, Duration::ZERO));
                std::thread::spawn(move || pass(server, to_client, late));
            }
        });
        Self { port }
    }

    /// Returns the port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Passes on each piece `late` by this time, until one of the streams ends. Pieces do not wait for each other.
#[allow(clippy::disallowed_methods, reason = "a proxy for the tests delays by real time")]
fn pass(mut from: TcpStream, mut to: TcpStream, late: Duration) {
    let (pieces, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    let writer = std::thread::spawn(move || {
        for (at, piece) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // The other end may have closed it before.
        let _closed = to.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 64 * 1_024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if pieces.send((Instant::now() + late, buffer[..length].to_vec())).is_err() {
            break;
        }
    }
    drop(pieces);
    writer.join().expect("no panic");
}
