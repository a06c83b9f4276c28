//! A server in a process of its own, whose processor time can be asked for.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::cpu;
use crate::web::WebServer;

/// Serves until its input ends.
pub(super) fn serve(dir: &Path) -> anyhow::Result<()> {
    let server = WebServer::start(dir)?;
    tell(server.address)
}

/// Says where this process serves. Then answers each line of its input with the nanoseconds of processor time that it
/// has used: all its threads together, and the async threads alone.
pub(super) fn tell(address: SocketAddr) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{address}")?;
    out.flush()?;
    for line in std::io::stdin().lines() {
        line?;
        writeln!(out, "{} {}", cpu::of_process(), cpu::of_async_threads()?)?;
        out.flush()?;
    }
    Ok(())
}

/// Nanoseconds of processor time that a server has used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    /// All its threads together.
    pub(super) all: f64,
    /// The threads of its async runtime.
    pub(super) on_async_threads: f64,
}

/// Such a process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) address: SocketAddr,
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Served {
    pub(super) fn start(dir: &Path) -> anyhow::Result<Self> {
        Self::run(Command::new(std::env::current_exe()?).args(["http-part", "serve"]).arg(dir))
    }

    /// The server that only parses and answers. With `dir` each body is durable there before its answer.
    pub(super) fn start_bare(dir: Option<&Path>) -> anyhow::Result<Self> {
        Self::run(Command::new(std::env::current_exe()?).args(["http-part", "bare"]).args(dir))
    }

    fn run(command: &mut Command) -> anyhow::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("start a server")?;
        let (ask, answers) = (child.stdin.take(), child.stdout.take().context("a pipe")?);
        let mut answers = BufReader::new(answers);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the server said {line:?}"))?;
        Ok(Self { address, child, ask, answers })
    }

    /// The processor time that it has used.
    pub(super) fn used(&mut self) -> anyhow::Result<Used> {
        writeln!(self.ask.as_mut().context("it runs")?)?;
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "the server is gone");
        let mut figures = line.split_whitespace().filter_map(|word| word.parse().ok());
        let used = figures.next().zip(figures.next());
        let (all, on_async_threads) = used.with_context(|| format!("the server said {line:?}"))?;
        Ok(Used { all, on_async_threads })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}
