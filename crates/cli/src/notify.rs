//! The protocol of systemd for a service that says when it is ready: datagrams to the socket that the environment names.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use tickwheel_server::events;

/// The environment variable with the address of the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The state that a service tells its manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The service takes calls.
    Ready,
    /// The service stops.
    Stopping,
}

/// The socket of the service manager, if there is one.
#[derive(Debug)]
pub(crate) struct Manager(Option<OsString>);

impl Manager {
    /// The one that the environment names.
    pub(crate) fn of_environment() -> Self {
        Self(env::var_os(VARIABLE).filter(|path| !path.is_empty()))
    }

    /// Tells the service manager. A failure is logged, because the manager would stop a service that it takes for one that never starts.
    pub(crate) fn tell(&self, state: State) {
        let Some(path) = &self.0 else { return };
        if let Err(error) = send(path, state) {
            tracing::warn!(
                event = events::DOUBTFUL,
                "the service manager at {} was not told: {error}",
                path.display()
            );
        }
    }
}

fn send(path: &OsStr, state: State) -> io::Result<()> {
    let message: &[u8] = match state {
        State::Ready => b"READY=1",
        State::Stopping => b"STOPPING=1",
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address(path)?).map(drop)
}

/// A path, or the name of an abstract socket after an `@`.
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = path.as_bytes().strip_prefix(b"@") {
        return SocketAddr::from_abstract_name(name);
    }
    SocketAddr::from_pathname(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// The datagrams that arrive at a socket with this address.
    fn heard(path: &OsStr) -> Vec<u8> {
        let socket = UnixDatagram::bind_addr(&address(path).expect("an address")).expect("bound");
        let manager = Manager(Some(path.to_owned()));
        let mut all = Vec::new();
        for state in [State::Ready, State::Stopping] {
            manager.tell(state);
            let mut bytes = [0; 64];
            let length = socket.recv(&mut bytes).expect("a datagram");
            all.extend_from_slice(&bytes[..length]);
        }
        all
    }

    #[test]
    fn a_socket_with_a_path_and_one_with_a_name_hear_both_states() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(heard(folder.path().join("notify").as_os_str()), b"READY=1STOPPING=1");
        #[cfg(target_os = "linux")]
        assert_eq!(
            heard(OsStr::new(&format!("@tickwheel-test-{}", std::process::id()))),
            b"READY=1STOPPING=1"
        );
    }

    #[test]
    fn without_a_manager_and_with_one_that_is_gone_nothing_happens() {
        Manager(None).tell(State::Ready);
        Manager(Some("/nowhere/notify".into())).tell(State::Ready);
    }
}
