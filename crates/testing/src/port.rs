//! Ports of loopback for servers of others, which are told their port and cannot choose one.

use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The lowest port that is given, and how many there are. They are below those that a system gives to programs that ask for any port,
/// because such a program might take one before its server does.
const LOWEST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// Returns a port of loopback on which no program listens. No other test gets it while this process lives, because the process locks a file
/// that belongs to the port. A test can also use the port as an address without a server.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static LOCKED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    for _ in 0..COUNT {
        let nth = std::process::id().wrapping_mul(131).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = (LOWEST + nth % COUNT) as u16;
        if let Some(file) = lock(port)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
        {
            LOCKED.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            return port;
        }
    }
    panic!("all ports from {LOWEST} on are taken");
}

/// Locks the file of a port; `None`: another process or another call has it.
fn lock(port: u16) -> Option<File> {
    // Each user has a folder, because the files of another one cannot be opened.
    let user = fs::metadata("/proc/self").map_or(0, |process| process.uid());
    let folder = std::env::temp_dir().join(format!("tickwheel-test-ports-{user}"));
    fs::create_dir_all(&folder).expect("a folder for temporary files");
    let path = folder.join(port.to_string());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).expect("a file");
    file.try_lock().is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let mut ports: Vec<u16> = (0..40).map(|_| free_port()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 40);
        for port in ports {
            assert!((20_000..32_000).contains(&port));
            assert!(lock(port).is_none(), "{port} can be taken by another process");
        }
    }
}
