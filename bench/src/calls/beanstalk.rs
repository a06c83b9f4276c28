//! The other door: long watch lists, the largest jobs, many commands at once.

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;

use anyhow::{Context, ensure};

use super::watched::{Take, Watched};

/// Some of them are refused: memory for them has its limit.
const TUBES: usize = 5_000;
/// The largest job.
const JOB_BYTES: usize = 16 << 20;
/// Jobs that are kicked in one call.
const KICKED: usize = 10_000;

/// The calls of this door.
pub(super) fn beanstalk(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let watched = Watched::start(None)?;
    let mut door = Door::connect(&watched)?;
    let watch = |index: usize| format!("watch {index:0>200}\r\n");
    let watches: Vec<String> = (0..TUBES).map(watch).collect();
    for watches in watches.chunks(100) {
        door.ask(&watches.concat(), watches.len())?;
    }
    let job = format!("put 1 100 100 {JOB_BYTES}\r\n{}\r\n", "x".repeat(JOB_BYTES));
    let again = watches[..900].concat();
    let in_turn = (0..1_000).map(|index| format!("ignore {index:0>200}\r\n{}", watch(index)));
    let in_turn: String = in_turn.take(200).collect();
    for _ in 0..rounds {
        take("list-tubes-watched", watched.longest_us(|| door.ask("list-tubes-watched\r\n", 1))?);
        take("reserve", watched.longest_us(|| door.ask("reserve-with-timeout 0\r\n", 1))?);
        take("put-job", watched.longest_us(|| door.ask(&job, 1))?);
        take("ignored", watched.longest_us(|| door.ask(&"nothing\r\n".repeat(10_000), 10_000))?);
        take("watch-again", watched.longest_us(|| door.ask(&again, 900))?);
        take("ignore-watch", watched.longest_us(|| door.ask(&in_turn, 400))?);
    }
    large_jobs(rounds, take)?;
    many_jobs(rounds, take)
}

/// The largest job, to be looked at, to be worked on, and to be deleted.
fn large_jobs(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let watched = Watched::start(None)?;
    let mut door = Door::connect(&watched)?;
    let job = format!("put 1 0 100 {JOB_BYTES}\r\n{}\r\n", "x".repeat(JOB_BYTES));
    for _ in 0..rounds {
        door.ask(&job, 1)?;
        take("peek-job", watched.longest_us(|| door.ask("peek-ready\r\n", 1))?);
        take("reserve-job", watched.longest_us(|| door.ask("reserve\r\n", 1))?);
        let delete = format!("delete {}\r\n", door.last_id()?);
        take("delete-job", watched.longest_us(|| door.ask(&delete, 1))?);
    }
    Ok(())
}

/// Very many small jobs: puts and deletes that are sent together, and one command that kicks all.
fn many_jobs(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let watched = Watched::start(None)?;
    let mut door = Door::connect(&watched)?;
    let put = "put 1 1000000 100 1\r\nx\r\n".repeat(KICKED);
    for _ in 0..rounds {
        take("put-many", watched.longest_us(|| door.ask(&put, KICKED))?);
        let last = door.last_id()?;
        take("kick", watched.longest_us(|| door.ask(&format!("kick {KICKED}\r\n"), 1))?);
        let first = last + 1 - KICKED as u64;
        let deletes: String = (first..=last).map(|id| format!("delete {id}\r\n")).collect();
        take("delete-many", watched.longest_us(|| door.ask(&deletes, KICKED))?);
    }
    Ok(())
}

/// A connection to the other door.
pub(super) struct Door {
    socket: BufReader<TcpStream>,
    /// The last answer, or its first line.
    answer: String,
}

impl Door {
    pub(super) fn connect(watched: &Watched) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(watched.beanstalk).context("connect to the other door")?;
        socket.set_nodelay(true)?;
        Ok(Self { socket: BufReader::new(socket), answer: String::new() })
    }

    /// Sends commands and reads this many answers meanwhile.
    pub(super) fn ask(&mut self, commands: &str, answers: usize) -> anyhow::Result<()> {
        let mut sent = self.socket.get_ref().try_clone()?;
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || sent.write_all(commands.as_bytes()));
            for _ in 0..answers {
                self.read()?;
            }
            sending.join().map_err(|_| anyhow::anyhow!("the sending thread ended"))??;
            Ok(())
        })
    }

    fn read(&mut self) -> anyhow::Result<()> {
        self.answer.clear();
        ensure!(self.socket.read_line(&mut self.answer)? > 0, "the server closed the connection");
        let mut words = self.answer.split_ascii_whitespace();
        let bytes = match words.next() {
            Some("OK") => words.next(),
            Some("FOUND" | "RESERVED") => words.nth(1),
            _ => None,
        };
        if let Some(bytes) = bytes {
            let bytes: usize = bytes.parse().with_context(|| self.answer.clone())?;
            self.socket.read_exact(&mut vec![0; bytes + 2])?;
        }
        Ok(())
    }

    /// The id of the job that the last answer told of.
    fn last_id(&self) -> anyhow::Result<u64> {
        let id = self.answer.split_ascii_whitespace().nth(1).context("an answer with an id")?;
        Ok(id.parse()?)
    }
}
