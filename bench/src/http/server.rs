//! A server in a process of its own, whose processor time can be asked for.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::cpu;
use crate::web::WebServer;

/// Serves until its input ends; answers each line with the nanoseconds of processor time that it has used.
pub(super) fn serve(dir: &Path) -> anyhow::Result<()> {
    let server = WebServer::start(dir)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", server.address)?;
    out.flush()?;
    for line in std::io::stdin().lines() {
        line?;
        writeln!(out, "{}", cpu::of_process())?;
        out.flush()?;
    }
    drop(server);
    Ok(())
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
        let program = std::env::current_exe().context("find this program")?;
        let mut child = Command::new(program)
            .args(["http-part", "serve"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a server")?;
        let (ask, answers) = (child.stdin.take(), child.stdout.take().context("a pipe")?);
        let mut answers = BufReader::new(answers);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the server said {line:?}"))?;
        Ok(Self { address, child, ask, answers })
    }

    /// Nanoseconds of processor time that it has used, all its threads together.
    pub(super) fn cpu_nanos(&mut self) -> anyhow::Result<f64> {
        writeln!(self.ask.as_mut().context("it runs")?)?;
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "the server is gone");
        line.trim().parse().with_context(|| format!("the server said {line:?}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.child.wait();
    }
}
