//! A connection to a unix socket.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::ClientError;

/// The first pause before the connect to a busy server is tried again: 1 ms. It doubles with each try, up to 50 ms.
const BUSY_WAIT_MIN: Duration = Duration::from_millis(1);
const BUSY_WAIT_MAX: Duration = Duration::from_millis(50);

/// Connects to the socket at a path.
///
/// While the server's backlog is full, the system refuses the connect at once. The connect is repeated until it succeeds or the time is
/// over. A refused connect leaves no trace in the server.
pub(crate) async fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let end = Instant::now() + timeout;
    let mut wait = BUSY_WAIT_MIN;
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                sleep(wait.min(end - Instant::now())).await;
                wait = (wait * 2).min(BUSY_WAIT_MAX);
            }
            connected => return connected,
        }
    }
}

/// Says why no connection could be made, and what to do.
pub(crate) fn told(error: &io::Error, address: &str, path: &Path) -> ClientError {
    let start = || {
        format!(
            "start one with `tickwheel serve --listen unix:{}`, or give the address of another",
            path.display()
        )
    };
    let (why, hint, lasting) = match error.kind() {
        ErrorKind::NotFound => ("there is no such file".to_owned(), start(), false),
        ErrorKind::ConnectionRefused => {
            ("no server listens at it, or it is no socket".to_owned(), start(), false)
        }
        ErrorKind::WouldBlock => (
            "it takes no connection, because many wait already".to_owned(),
            "try again later, or find out what holds it up".to_owned(),
            false,
        ),
        ErrorKind::PermissionDenied => (
            "this user may not open it".to_owned(),
            "let this user write to the socket and search its directories, or run this as the user of the server"
                .to_owned(),
            true,
        ),
        ErrorKind::InvalidInput => (
            format!("the path has {} bytes, which is too long for a socket", path.as_os_str().len()),
            "listen at a shorter path".to_owned(),
            true,
        ),
        _ => (error.to_string(), start(), false),
    };
    ClientError::NoSocket { address: address.to_owned(), why, hint, lasting }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixSocket;

    use super::*;

    #[tokio::test]
    async fn a_connect_to_a_busy_server_ends_and_leaves_no_connection_behind() {
        let path = std::env::temp_dir().join(format!("tickwheel-busy-{}", std::process::id()));
        let socket = UnixSocket::new_stream().expect("a socket");
        socket.bind(&path).expect("bound");
        // A backlog of 0 takes one connection.
        let server = socket.listen(0).expect("it listens");
        let first = connect(&path, Duration::from_secs(60)).await.expect("there is room");
        let error = connect(&path, Duration::from_millis(1)).await.expect_err("there is none");
        let said = told(&error, "", &path).to_string();
        assert!(said.contains("many wait already; try again later"), "{said}");
        // If the second connect stayed in the queue of the system, it would be woken first when there is space, and the server would get
        // no bytes from it.
        let third = tokio::spawn({
            let path = path.clone();
            async move { connect(&path, Duration::from_secs(60)).await?.write_all(b"3").await }
        });
        server.accept().await.expect("the first");
        let mut said = Vec::new();
        server.accept().await.expect("the third").0.read_to_end(&mut said).await.expect("its word");
        assert_eq!(said, b"3");
        third.await.expect("no panic").expect("there was room");
        drop(first);
        fs::remove_file(&path).expect("removed");
    }
}
