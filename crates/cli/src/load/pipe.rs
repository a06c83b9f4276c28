//! One connection: commands are written in batches, answers are read in their order.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The longest wait for an answer. After this time, either another program took the jobs or the server hangs.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The interval at which a waiting thread checks whether another thread failed.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const READ_BYTES: usize = 64 << 10;

/// An answer. It has only the parts that the load generator needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Inserted(u64),
    /// The id, and the number at the start of the payload.
    Reserved(u64, u64),
    Deleted,
    Other(String),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inserted(id) => write!(f, "`INSERTED {id}`"),
            Self::Reserved(id, _) => write!(f, "`RESERVED {id}` and a job"),
            Self::Deleted => f.write_str("`DELETED`"),
            Self::Other(line) if line.starts_with("HTTP/") => f.write_str(
                "HTTP; name the port for clients of beanstalkd, which is 11300 unless said otherwise",
            ),
            Self::Other(line) => write!(f, "`{}`", line.escape_debug()),
        }
    }
}

pub(super) struct Pipe {
    socket: TcpStream,
    address: String,
    output: Vec<u8>,
    input: Vec<u8>,
    taken: usize,
    body: Vec<u8>,
}

impl Pipe {
    /// Connects, and uses and watches only the tube of this name.
    pub(super) fn open(address: &str, tube: &str, payload_bytes: usize) -> Result<Self> {
        let mut pipe = Self::connect(address, payload_bytes)?;
        pipe.ask(&format!("use {tube}"), "USING ")?;
        pipe.ask(&format!("watch {tube}"), "WATCHING ")?;
        pipe.ask("ignore default", "WATCHING ")?;
        Ok(pipe)
    }

    /// Connects.
    pub(super) fn connect(address: &str, payload_bytes: usize) -> Result<Self> {
        let socket = TcpStream::connect(address).with_context(|| format!("connect to {address}"))?;
        socket.set_nodelay(true).context("set up the connection")?;
        socket.set_read_timeout(Some(LOOK_EVERY)).context("set up the connection")?;
        let body = vec![b'x'; payload_bytes.max(16)];
        Ok(Self {
            socket,
            address: address.to_owned(),
            output: Vec::new(),
            input: Vec::new(),
            taken: 0,
            body,
        })
    }

    /// Sends a command and checks that its answer is a line that begins with `begins`.
    pub(super) fn ask(&mut self, command: &str, begins: &str) -> Result<()> {
        self.output.extend_from_slice(format!("{command}\r\n").as_bytes());
        self.send()?;
        match self.reply()? {
            Reply::Other(line) if line.starts_with(begins) => Ok(()),
            other => bail!("{} answered `{command}` with {other}", self.address),
        }
    }

    /// Adds a put to the next batch of commands. The payload of the job begins with `number`.
    pub(super) fn put(&mut self, delay_s: u32, number: u64) {
        let hex = format!("{number:016x}");
        self.body[..16].copy_from_slice(hex.as_bytes());
        let bytes = self.body.len();
        write!(self.output, "put 1024 {delay_s} 120 {bytes}\r\n").expect("memory takes all");
        self.output.extend_from_slice(&self.body);
        self.output.extend_from_slice(b"\r\n");
    }

    pub(super) fn reserve(&mut self) {
        self.output.extend_from_slice(b"reserve\r\n");
    }

    pub(super) fn delete(&mut self, id: u64) {
        write!(self.output, "delete {id}\r\n").expect("memory takes all");
    }

    /// Sends all commands of the batch.
    pub(super) fn send(&mut self) -> Result<()> {
        self.socket.write_all(&self.output).context("send commands")?;
        self.output.clear();
        Ok(())
    }

    /// The next answer, if it has arrived already.
    pub(super) fn next(&mut self) -> Result<Option<Reply>> {
        let rest = &self.input[self.taken..];
        let Some(ends) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let line = str::from_utf8(&rest[..ends]).context("read an answer that is text")?;
        let (reply, bytes) = match line.split_once(' ') {
            Some(("INSERTED", id)) => (Reply::Inserted(number(id)?), ends + 2),
            Some(("RESERVED", words)) => {
                let (id, bytes) = words.split_once(' ').context("read a job")?;
                let whole = ends + 2 + usize::try_from(number(bytes)?).context("read a job")? + 2;
                if rest.len() < whole {
                    return Ok(None);
                }
                let hex = rest.get(ends + 2..ends + 18).and_then(|hex| str::from_utf8(hex).ok());
                let begins = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok());
                (Reply::Reserved(number(id)?, begins.context("find a job of this load")?), whole)
            }
            _ if line == "DELETED" => (Reply::Deleted, ends + 2),
            _ => (Reply::Other(line.to_owned()), ends + 2),
        };
        self.taken += bytes;
        Ok(Some(reply))
    }

    /// Waits for the next answer.
    pub(super) fn reply(&mut self) -> Result<Reply> {
        self.reply_unless(&AtomicBool::new(false))?.context("wait for an answer")
    }

    /// Waits for the next answer. `None`: `over` became true before the answer came.
    pub(super) fn reply_unless(&mut self, over: &AtomicBool) -> Result<Option<Reply>> {
        let begun = Instant::now();
        loop {
            if let Some(reply) = self.next()? {
                return Ok(Some(reply));
            }
            self.input.drain(..self.taken);
            self.taken = 0;
            let had = self.input.len();
            self.input.resize(had + READ_BYTES, 0);
            let read = self.socket.read(&mut self.input[had..]);
            self.input.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => bail!("{} has closed the connection", self.address),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if over.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                    if begun.elapsed() >= SILENCE_MAX {
                        bail!(
                            "{} has answered nothing for {} s; does another program work on its tubes, or does it hang?",
                            self.address,
                            SILENCE_MAX.as_secs()
                        );
                    }
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("wait for an answer of {}", self.address));
                }
            }
        }
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("read the number `{text}` in an answer"))
}

/// The time since a command was sent (us).
pub(super) fn micros_since(sent: Instant) -> u32 {
    u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX)
}
