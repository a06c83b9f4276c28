//! S10: opening what a killed process left.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::feed::{BATCH, batch, fill};
use super::place::disk_bytes;
use super::record::{Keys, Records, wall};
use super::subject::Keeper;
use crate::random::Random;
use crate::sample::Sample;

/// What the process that is to be killed says when it may be.
const FILLED: &str = "filled";
/// It goes on for so long, so that the kill meets it at work.
const AT_WORK: Duration = Duration::from_millis(300);
/// Tasks looked up afterwards.
const LOOKED_UP: u64 = 1_000;

/// Another process fills the directory and is killed while it commits; then it is opened here. Its pages are still in memory.
pub(crate) fn sample<K: Keeper>(data: &Path, n: u64, name: &str) -> anyhow::Result<Sample> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command.args(["store-fill", "--impl", name, "--n", &n.to_string(), "--data"]).arg(data);
    let mut filler =
        Filler(command.stdout(Stdio::piped()).spawn().context("start the process to be killed")?);
    let output = filler.0.stdout.take().context("listen to the process to be killed")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    ensure!(line.trim() == FILLED, "the process to be killed ended before its time");
    std::thread::sleep(AT_WORK);
    drop(filler);

    let begun = Instant::now();
    let mut keeper = K::open(data, wall())?;
    let seconds = begun.elapsed().as_secs_f64();
    check(&mut keeper, n)?;
    keeper.rest()?;
    let mut sample = Sample { measured: n, ..Sample::default() };
    sample.figure("open_s", seconds);
    let disk = disk_bytes(data)? as f64;
    sample.figure("disk_mb", disk / 1e6);
    sample.figure("disk_bytes", disk / n as f64);
    keeper.close()?;
    Ok(sample)
}

/// It is killed with this, however that comes about.
struct Filler(Child);

impl Drop for Filler {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was committed before the kill is there.
fn check<K: Keeper>(keeper: &mut K, n: u64) -> anyhow::Result<()> {
    let (records, mut random) = (Records::new(Keys::Own)?, Random::new(10));
    let numbers: Vec<u64> = (0..LOOKED_UP.min(n)).map(|_| random.below(n)).collect();
    let keys = numbers.iter().map(|&number| records.key(number)).collect::<Result<Vec<_>, _>>()?;
    for (found, number) in keeper.get(&keys)?.iter().zip(&numbers) {
        ensure!(
            found.as_ref().is_some_and(|found| found.number == *number),
            "number {number} was lost: {found:?}"
        );
    }
    Ok(())
}

/// Fills the directory, says so, and commits on and on. It does not come back unless something fails.
pub(crate) fn fill_for_ever<K: Keeper>(data: &Path, n: u64) -> anyhow::Result<()> {
    let mut keeper = K::open(data, wall())?;
    let records = Records::new(Keys::Own)?;
    fill(&mut keeper, &records, 0..n)?;
    let mut out = std::io::stdout();
    writeln!(out, "{FILLED}")?;
    out.flush()?;
    let mut next = n;
    loop {
        // A tenth of a batch: some commits in flight, and no other store in the end.
        let some = BATCH / 10;
        keeper.commit(wall(), batch::<K>(&records, next..next + some, wall())?)?;
        next += some;
    }
}
