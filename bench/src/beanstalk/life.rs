//! Many jobs that are due in days: what they take while they wait, and until a server that was killed has them again.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use super::load::Load;
use super::server::{Kind, Server};
use crate::sample::Sample;
use crate::slope::slope;

/// Resident memory is looked at after so many steps of filling.
const STEPS: u64 = 3;
/// What the last jobs left to do is over after so long.
const SETTLED: Duration = Duration::from_secs(10);

/// Resident bytes for one more job.
pub(super) fn memory(kind: Kind, program: &Path, dir: &Path, jobs: u64) -> anyhow::Result<Sample> {
    let server = Server::start(kind, program, dir)?;
    let mut points = Vec::new();
    for step in 1..=STEPS {
        Load::far(jobs / STEPS).run(program, &server)?;
        std::thread::sleep(SETTLED);
        points.push((step * (jobs / STEPS), server.resident_bytes()? as f64));
    }
    let mut sample = Sample { measured: jobs, ..Sample::default() };
    sample.figure("job_bytes", slope(&points).unwrap_or_default());
    sample.figure("all_mb", points.last().map_or(0.0, |(_, bytes)| bytes / 1e6));
    Ok(sample)
}

/// Wake-ups in a second while all wait, and then milliseconds from a start after SIGKILL to the first answer.
pub(super) fn restart(
    kind: Kind,
    program: &Path,
    dir: &Path,
    jobs: u64,
    idle: Duration,
) -> anyhow::Result<Sample> {
    let mut sample = Sample { measured: jobs, ..Sample::default() };
    let server = Server::start(kind, program, dir)?;
    Load::far(jobs).run(program, &server)?;
    std::thread::sleep(SETTLED);
    let before = server.waits()?;
    std::thread::sleep(idle);
    sample.figure("wakes_s", (server.waits()? - before) as f64 / idle.as_secs_f64());
    server.kill()?;
    let server = Server::start(kind, program, dir)?;
    sample.figure("start_ms", server.started_in.as_secs_f64() * 1e3);
    ensure!(server.waits()? > 0, "it runs");
    Ok(sample)
}
