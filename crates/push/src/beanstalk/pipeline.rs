//! [`Pipeline`]: the puts that are under way on one connection. The server answers them in their order.

use std::io;

use tickwheel_api::beanstalk::{LINE_BYTES_MAX, Tube};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::answer;
use crate::outcome::Outcome;

/// This many puts wait to be written. More of them wait for a place.
const WAITING_MAX: usize = 1_024;
/// Puts are written together up to this size (bytes): 64 KiB.
const WRITE_BYTES: usize = 64 << 10;

/// One job to put.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) tube: Tube,
    pub(super) priority: u32,
    pub(super) ttr_s: u32,
    pub(super) body: Vec<u8>,
}

/// The puts of one connection.
#[derive(Debug)]
pub(super) struct Pipeline {
    puts: mpsc::Sender<Put>,
}

#[derive(Debug)]
struct Put {
    job: Job,
    answer: oneshot::Sender<Outcome>,
}

/// An answer that is to come.
enum Awaited {
    Use,
    Put(oneshot::Sender<Outcome>),
}

impl Pipeline {
    /// Returns the pipeline of a new connection, which uses the tube `default`.
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (puts, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(async move {
            let (reading, writing) = tokio::io::split(stream);
            let (awaited, awaiting) = mpsc::unbounded_channel();
            // The connection ends with the first of the two, and then no put that waits gets an answer.
            tokio::select! {
                _ended = write(writing, receiver, awaited) => {}
                _ended = read(reading, awaiting) => {}
            }
        });
        Self { puts }
    }

    /// Puts a job, and returns the outcome. `None`: the connection was lost before the answer came.
    pub(super) async fn put(&self, job: Job) -> Option<Outcome> {
        let (answer, answered) = oneshot::channel();
        self.puts.send(Put { job, answer }).await.ok()?;
        answered.await.ok()
    }

    /// Whether the connection is not lost, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.puts.is_closed()
    }
}

/// Writes puts, and tells the reader which answers are to come.
async fn write(
    mut stream: impl AsyncWrite + Unpin,
    mut puts: mpsc::Receiver<Put>,
    awaited: mpsc::UnboundedSender<Awaited>,
) -> io::Result<()> {
    let mut used = Tube::new(b"default").expect("the name is allowed");
    let mut bytes = Vec::new();
    while let Some(put) = puts.recv().await {
        let mut next = Some(put);
        while let Some(Put { job, answer }) = next {
            if job.tube != used {
                bytes.extend_from_slice(format!("use {}\r\n", job.tube).as_bytes());
                used = job.tube;
                // The reader is there as long as the writer is.
                let _ = awaited.send(Awaited::Use);
            }
            let head = format!("put {} 0 {} {}\r\n", job.priority, job.ttr_s, job.body.len());
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(&job.body);
            bytes.extend_from_slice(b"\r\n");
            let _ = awaited.send(Awaited::Put(answer));
            next = if bytes.len() < WRITE_BYTES { puts.try_recv().ok() } else { None };
        }
        stream.write_all(&bytes).await?;
        stream.flush().await?;
        bytes.clear();
    }
    Ok(())
}

/// Reads answers until the connection ends, or until a line is no answer to its command.
async fn read(
    stream: impl AsyncRead + Unpin,
    mut awaited: mpsc::UnboundedReceiver<Awaited>,
) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = LINE_BYTES_MAX as u64;
        (&mut lines).take(most).read_until(b'\n', &mut line).await?;
        let text = String::from_utf8_lossy(&line);
        // A line without an end was cut by the end of the connection, or is too long to be an answer.
        let Some(text) = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)) else {
            return Ok(());
        };
        match awaited.try_recv() {
            Ok(Awaited::Use) if text.starts_with("USING ") => {}
            Ok(Awaited::Put(answer)) => match answer::judge(text) {
                // A message that was given up does not wait for its answer.
                Some(outcome) => drop(answer.send(outcome)),
                None => {
                    drop(answer.send(answer::wrong(text)));
                    return Ok(());
                }
            },
            Ok(Awaited::Use) | Err(_) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn job(tube: &str, body: &str) -> Job {
        let tube = Tube::new(tube.as_bytes()).expect("a tube");
        Job { tube, priority: 1, ttr_s: 60, body: body.as_bytes().to_vec() }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_belong_to_puts_in_their_order() {
        let (ours, mut server) = tokio::io::duplex(4_096);
        let pipeline = Pipeline::new(ours);
        let puts = async {
            let (first, second, third) = (job("default", "a"), job("b", "b"), job("b", "c"));
            tokio::join!(pipeline.put(first), pipeline.put(second), pipeline.put(third))
        };
        let answers = async {
            let wanted = "put 1 0 60 1\r\na\r\nuse b\r\nput 1 0 60 1\r\nb\r\nput 1 0 60 1\r\nc\r\n";
            let mut bytes = vec![0; wanted.len()];
            server.read_exact(&mut bytes).await.expect("all commands, before any answer");
            assert_eq!(String::from_utf8_lossy(&bytes), wanted);
            server.write_all(b"INSERTED 1\r\nUSING b\r\nDRAINING\r\nINSE").await.expect("written");
            server.write_all(b"RTED 2\r\n").await.expect("written");
        };
        let both = async { tokio::join!(puts, answers) };
        let both = timeout(Duration::from_secs(10), both).await.expect("no command is missing");
        let ((first, second, third), ()) = both;
        assert_eq!((first, third), (Some(Outcome::Delivered), Some(Outcome::Delivered)));
        assert_eq!(second.map(|outcome| outcome.name()), Some("given_back"));
    }

    #[tokio::test]
    async fn a_server_of_another_kind_ends_the_connection() {
        let (ours, mut server) = tokio::io::duplex(4_096);
        let pipeline = Pipeline::new(ours);
        let answer = async {
            server.read_u8().await.expect("a command");
            server.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("written");
        };
        let (outcome, ()) = tokio::join!(pipeline.put(job("a", "a")), answer);
        assert_eq!(outcome, None, "the answer to `use` is wrong");
        pipeline.puts.closed().await;
        assert!(!pipeline.is_open());
        assert_eq!(pipeline.put(job("a", "a")).await, None);
    }
}
