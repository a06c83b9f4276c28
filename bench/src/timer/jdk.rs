//! A peer of another language: the JDK's `ScheduledThreadPoolExecutor` with one thread, where there is a JDK.

use std::process::{Command, Stdio};

use super::ring::Shape;
use super::scale::Scale;
use super::workload::Workload;
use crate::sample::Sample;

/// A program of one file, which `java` compiles as it starts.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/ScheduledRing.java");

/// The rings only, by a process that does what [`ring`](super::ring) does and says it in the same lines.
pub(crate) fn sample(workload: Workload, scale: &Scale) -> anyhow::Result<Option<Sample>> {
    let Some(Shape { ring, delays_us }) = workload.shape(scale) else { return Ok(None) };
    if !["java", "javac"].into_iter().all(is_there) {
        eprintln!("  jdk-scheduled needs java and javac, and one of them is not here");
        return Ok(None);
    }
    let numbers = [u64::from(scale.producers), ring, scale.pairs, delays_us.start, delays_us.end];
    Sample::of(Command::new("java").arg(SOURCE).args(numbers.map(|number| number.to_string())))
}

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
