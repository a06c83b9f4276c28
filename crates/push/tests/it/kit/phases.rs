//! [`Phases`]: a proxy that stops in front of one chosen piece of the talk between two programs, so that a test can kill one of them there.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;

/// A side of the talk: the one that sent the swallowed piece.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Client,
    Server,
}

/// A proxy on a port of loopback. All bytes that one read finds are one piece. The pieces of all connections and both directions have numbers
/// from 0 on, counted from [`count_from_now`](Self::count_from_now). The piece with the chosen number is swallowed, and no other is handed on until
/// [`go_on`](Self::go_on).
pub(crate) struct Phases {
    shared: Arc<Shared>,
    address: SocketAddr,
    stops: mpsc::Receiver<From>,
}

#[derive(Default)]
struct Count {
    is_on: bool,
    /// The number of pieces so far.
    pieces: usize,
    is_stopped: bool,
}

struct Shared {
    server: String,
    stop_at: usize,
    /// One lock, so that no piece of the other direction comes between the count and the stop.
    count: Mutex<Count>,
    streams: Mutex<Vec<TcpStream>>,
    stop: mpsc::Sender<From>,
}

impl Phases {
    /// Starts a proxy before the server at this address. It stops in front of the piece with this number.
    pub(crate) fn start(server: String, stop_at: usize) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").expect("a port"), server, stop_at)
    }

    /// Starts a proxy that takes connections from this listener.
    pub(crate) fn start_on(listener: TcpListener, server: String, stop_at: usize) -> Self {
        let address = listener.local_addr().expect("an address");
        let (stop, stops) = mpsc::channel();
        let shared =
            Arc::new(Shared { server, stop_at, count: Mutex::default(), streams: Mutex::default(), stop });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.connect(client);
            }
        });
        Self { shared, address, stops }
    }

    /// The address for clients.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Begins to count pieces.
    pub(crate) fn count_from_now(&self) {
        self.shared.count().is_on = true;
    }

    /// Returns the side whose piece was swallowed; `None`: the talk had fewer pieces until now.
    pub(crate) fn stopped(&self) -> Option<From> {
        self.stops.try_recv().ok()
    }

    /// Ends all connections, and hands on every piece from now on.
    pub(crate) fn go_on(&self) {
        for stream in self.shared.streams.lock().expect("no panic").drain(..) {
            // The other side may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.count().is_stopped = false;
    }
}

impl Shared {
    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().expect("no panic")
    }

    fn connect(self: &Arc<Self>, client: TcpStream) {
        // A server that is down ends the connection of its client.
        let Ok(server) = TcpStream::connect(&self.server) else { return };
        let copy = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        self.streams.lock().expect("no panic").extend([copy(&client), copy(&server)]);
        for (from, source, sink) in
            [(From::Client, copy(&client), copy(&server)), (From::Server, server, client)]
        {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.hand_on(from, source, sink));
        }
    }

    fn hand_on(&self, from: From, mut source: TcpStream, mut sink: TcpStream) {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = source.read(&mut bytes) {
            let mut counted = self.count();
            if counted.is_on {
                if counted.pieces == self.stop_at {
                    counted.is_stopped = true;
                    // A test that has ended waits for nothing.
                    let _ = self.stop.send(from);
                }
                counted.pieces += 1;
            }
            // Written under the lock: a piece with a higher number is written later.
            if counted.is_stopped || sink.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
        // The other side may have closed it.
        let _ = sink.shutdown(Shutdown::Write);
    }
}
