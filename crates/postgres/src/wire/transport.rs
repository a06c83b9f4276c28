//! [`Transport`]: bytes to and from the server, with or without TLS, never beyond a deadline.

#![expect(
    clippy::disallowed_methods,
    reason = "a deadline needs the clock; nothing that is stored depends on it"
)]

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use postgres_protocol::message::backend::Message;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::message;
use super::socket::Socket;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// At most these bytes are written before the next read, so that a long pipeline does not fill the memory of the
/// server with answers.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Returns the time by the clock of deadlines.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Why bytes do not come or go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    #[error("no answer in time")]
    TimedOut,
    #[error("the server closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the server broke the protocol: {0}")]
    Violation(String),
}

/// A stream to the server. Reading and writing go on at the same time, so that neither side waits for the other with
/// full buffers.
pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    incoming: BytesMut,
    outgoing: BytesMut,
    scratch: Box<[u8]>,
    /// The end of the writing side. The last words of the server may still be on their way, so reading goes on.
    unwritable: Option<io::Error>,
}

impl Transport {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            socket,
            tls: None,
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            scratch: vec![0; READ_BYTES].into(),
            unwritable: None,
        }
    }

    /// The bytes to be sent. They go with the next wait.
    pub(crate) fn outgoing(&mut self) -> &mut BytesMut {
        &mut self.outgoing
    }

    /// Reads one byte without TLS: the answer to `SSLRequest`. No more is read: what follows belongs to TLS, and an
    /// attacker could put plain messages there.
    pub(crate) fn one_byte(&mut self, deadline: Instant) -> Result<u8, TransportError> {
        let mut byte = [0];
        loop {
            let is_written = self.write_some()?;
            match self.socket.read(&mut byte) {
                Ok(0) => return Err(self.closed()),
                Ok(_) => return Ok(byte[0]),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error.into()),
            }
            if !is_written {
                self.wait(Some(deadline))?;
            }
        }
    }

    /// Makes the TLS handshake.
    pub(crate) fn handshake(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        deadline: Instant,
    ) -> Result<(), TransportError> {
        self.tls = Some(Box::new(ClientConnection::new(config, name)?));
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking() || tls.wants_write()) {
            self.pump(Some(deadline))?;
        }
        Ok(())
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the certificate of the server, in DER.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.peer_certificates()?.first().map(|certificate| &**certificate)
    }

    /// Waits for the next message.
    pub(crate) fn message(
        &mut self,
        bytes_max: usize,
        deadline: Option<Instant>,
    ) -> Result<Message, TransportError> {
        loop {
            if let Some(message) = self.message_if_there(bytes_max)? {
                return Ok(message);
            }
            self.pump(deadline)?;
        }
    }

    /// Returns the next message if its bytes have been read.
    pub(crate) fn message_if_there(&mut self, bytes_max: usize) -> Result<Option<Message>, TransportError> {
        message::take(&mut self.incoming, bytes_max).map_err(TransportError::Violation)
    }

    /// Reads and writes what is possible without a wait.
    pub(crate) fn poke(&mut self) -> Result<bool, TransportError> {
        let is_written = self.write_some()?;
        let is_read = self.read_some()?;
        Ok(is_written || is_read)
    }

    /// Reads or writes at least one byte, or waits for it.
    fn pump(&mut self, deadline: Option<Instant>) -> Result<(), TransportError> {
        loop {
            if deadline.is_some_and(|deadline| now() >= deadline) {
                return Err(TransportError::TimedOut);
            }
            if self.poke()? {
                return Ok(());
            }
            self.wait(deadline)?;
        }
    }

    fn wants_write(&self) -> bool {
        self.unwritable.is_none()
            && match &self.tls {
                None => !self.outgoing.is_empty(),
                // Before the handshake is done, bytes stay in the buffer and there may be nothing to write.
                Some(tls) => tls.wants_write(),
            }
    }

    /// Waits until the socket can be read, or written if there is something to write.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), TransportError> {
        let mut flags = PollFlags::IN;
        if self.wants_write() {
            flags |= PollFlags::OUT;
        }
        loop {
            let left = match deadline {
                None => None,
                Some(deadline) => match deadline.saturating_duration_since(now()) {
                    Duration::ZERO => return Err(TransportError::TimedOut),
                    left => Some(left),
                },
            };
            // A time that is too long for the call is as good as none.
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match rustix::event::poll(&mut [PollFd::new(&self.socket, flags)], left.as_ref()) {
                Ok(0) => return Err(TransportError::TimedOut),
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(TransportError::Io(error.into())),
            }
        }
    }

    fn write_some(&mut self) -> Result<bool, TransportError> {
        if self.unwritable.is_some() {
            self.outgoing.clear();
            return Ok(false);
        }
        let mut written = 0;
        while written < WRITE_BYTES_MAX {
            let wrote = match &mut self.tls {
                None if self.outgoing.is_empty() => break,
                None => self.socket.write(&self.outgoing),
                Some(tls) => {
                    if !self.outgoing.is_empty() {
                        let taken = tls.writer().write(&self.outgoing)?;
                        self.outgoing.advance(taken);
                    }
                    if !tls.wants_write() {
                        break;
                    }
                    tls.write_tls(&mut self.socket)
                }
            };
            match wrote {
                Ok(0) => self.unwritable = Some(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    if self.tls.is_none() {
                        self.outgoing.advance(count);
                    }
                    written += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.unwritable = Some(error),
            }
            break;
        }
        Ok(written > 0)
    }

    fn read_some(&mut self) -> Result<bool, TransportError> {
        let Some(tls) = &mut self.tls else {
            return match self.socket.read(&mut self.scratch) {
                Ok(0) => Err(self.closed()),
                Ok(count) => {
                    self.incoming.extend_from_slice(&self.scratch[..count]);
                    Ok(true)
                }
                Err(error) if is_later(&error) => Ok(false),
                Err(error) => Err(error.into()),
            };
        };
        match tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(self.closed()),
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if let Err(error) = tls.process_new_packets() {
            // The alert tells the other side why; that it arrives is not needed.
            let _ = tls.write_tls(&mut self.socket);
            return Err(error.into());
        }
        loop {
            match tls.reader().read(&mut self.scratch) {
                // The other side has said goodbye; the next read of the socket finds the end.
                Ok(0) => return Ok(true),
                Ok(count) => self.incoming.extend_from_slice(&self.scratch[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn closed(&mut self) -> TransportError {
        match self.unwritable.take() {
            Some(error) => TransportError::Io(error),
            None => TransportError::Closed,
        }
    }

    /// Gives the memory of a run back. A buffer that was read from hides how large it has grown, so every empty one goes.
    pub(crate) fn trim(&mut self) {
        for buffer in [&mut self.incoming, &mut self.outgoing] {
            if buffer.is_empty() {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Sends the last bytes, if that is possible without a wait.
    pub(crate) fn farewell(&mut self) {
        // The transport ends here, so an error changes nothing.
        let _ = self.write_some();
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = self.write_some();
        }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
