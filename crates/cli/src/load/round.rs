//! One round against one server.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::pipe::{Pipe, Reply, micros_since};
use super::plan::{Mode, Plan};

/// The result of a round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The time from the first command to the last answer.
    pub(crate) took: Duration,
    /// The duration of each command or cycle, or the lateness of each job (us), in rising order.
    pub(crate) micros: Vec<u32>,
}

impl Round {
    /// Commands or cycles per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.micros.len() as f64 / self.took.as_secs_f64()
    }

    /// A quantile (ms) of the durations or latenesses, given in thousandths: 500 is the median.
    pub(crate) fn permille_ms(&self, permille: usize) -> f64 {
        let at = (self.micros.len() * permille).div_ceil(1_000).max(1) - 1;
        self.micros.get(at).map_or(0.0, |micros| f64::from(*micros) / 1_000.0)
    }
}

/// Checks that a server of this protocol is there.
///
/// # Errors
/// There is no such server.
pub(crate) fn greet(address: &str) -> Result<()> {
    Pipe::connect(address, 0)?.ask("list-tube-used", "USING ")
}

/// Measures one round on tubes whose names begin with `tube`.
///
/// # Errors
/// There is no server, an answer is unexpected, or none came for a minute.
pub(crate) fn measure(address: &str, tube: &str, plan: &Plan) -> Result<Round> {
    let (start, zero) = (Barrier::new(plan.connections), Instant::now());
    // True when a thread has failed. Without it, a worker could wait for jobs that another thread cannot put.
    let failed = AtomicBool::new(false);
    let work = |connection: usize| -> Result<(Duration, Vec<u32>)> {
        let own = format!("{tube}-{connection}");
        // Workers and producers share one tube.
        let tube = if plan.mode == Mode::Lateness { tube } else { &own };
        let opened = Pipe::open(address, tube, plan.payload_bytes);
        // Each thread reaches the barrier even after a failure, so that no other thread waits for ever.
        start.wait();
        let mut pipe = opened?;
        let begun = Instant::now();
        let micros = match plan.mode {
            Mode::Put => return puts(&mut pipe, plan, plan.share(connection, plan.connections)),
            Mode::Cycle => cycles(&mut pipe, plan, plan.share(connection, plan.connections))?,
            Mode::Lateness => lateness(&mut pipe, plan, connection, zero, &failed)?,
        };
        Ok((begun.elapsed(), micros))
    };
    let done: Vec<Result<(Duration, Vec<u32>)>> = thread::scope(|scope| {
        let (work, failed) = (&work, &failed);
        let watched = move |n: usize| work(n).inspect_err(|_| failed.store(true, Ordering::Relaxed));
        let threads: Vec<_> = (0..plan.connections).map(|n| scope.spawn(move || watched(n))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a connection does not panic")).collect()
    });
    let (mut took, mut micros) = (Duration::ZERO, Vec::new());
    for one in done {
        let (its, mut of_it) = one?;
        took = took.max(its);
        micros.append(&mut of_it);
    }
    micros.sort_unstable();
    Ok(Round { took, micros })
}

/// Puts jobs with at most `depth` commands under way. The jobs are deleted after the measurement, unless the plan keeps them.
fn puts(pipe: &mut Pipe, plan: &Plan, jobs: u64) -> Result<(Duration, Vec<u32>)> {
    let begun = Instant::now();
    let mut left = jobs;
    let mut sent: VecDeque<Instant> = VecDeque::new();
    let (mut micros, mut ids) = (Vec::new(), Vec::new());
    while left > 0 || !sent.is_empty() {
        let now = Instant::now();
        while left > 0 && sent.len() < plan.depth {
            pipe.put(plan.delay_s, left);
            sent.push_back(now);
            left -= 1;
        }
        pipe.send()?;
        let mut reply = Some(pipe.reply()?);
        while let Some(one) = reply {
            let Reply::Inserted(id) = one else { bail!("a put was answered {one}") };
            ids.push(id);
            micros.push(micros_since(sent.pop_front().context("match an answer with a put")?));
            reply = pipe.next()?;
        }
    }
    let took = begun.elapsed();
    for ids in ids.chunks(plan.depth).filter(|_| !plan.keep) {
        ids.iter().for_each(|id| pipe.delete(*id));
        pipe.send()?;
        for id in ids {
            let reply = pipe.reply()?;
            if reply != Reply::Deleted {
                bail!("the delete of job {id} was answered {reply}");
            }
        }
    }
    Ok((took, micros))
}

/// Runs cycles of put, reserve and delete, at most `depth` at one time.
fn cycles(pipe: &mut Pipe, plan: &Plan, jobs: u64) -> Result<Vec<u32>> {
    let mut left = jobs;
    // The start times of the cycles under way. Answers come in this order.
    let mut sent: VecDeque<Instant> = VecDeque::new();
    let mut micros = Vec::new();
    while left > 0 && sent.len() < plan.depth {
        pipe.put(0, left);
        sent.push_back(Instant::now());
        left -= 1;
    }
    while !sent.is_empty() {
        pipe.send()?;
        let mut reply = Some(pipe.reply()?);
        while let Some(one) = reply {
            let begun = sent.pop_front().context("match an answer with a command")?;
            match one {
                Reply::Inserted(_) => {
                    pipe.reserve();
                    sent.push_back(begun);
                }
                Reply::Reserved(id, _) => {
                    pipe.delete(id);
                    sent.push_back(begun);
                }
                Reply::Deleted => {
                    micros.push(micros_since(begun));
                    if left > 0 {
                        pipe.put(0, left);
                        sent.push_back(Instant::now());
                        left -= 1;
                    }
                }
                other @ Reply::Other(_) => bail!("a command was answered {other}"),
            }
            reply = pipe.next()?;
        }
    }
    Ok(micros)
}

/// Half of the connections put jobs, evenly over the span; the other half work. The lateness of a job is its arrival at the worker minus
/// the time of its put and its delay.
fn lateness(
    pipe: &mut Pipe,
    plan: &Plan,
    connection: usize,
    zero: Instant,
    failed: &AtomicBool,
) -> Result<Vec<u32>> {
    let begun = Instant::now();
    let pairs = plan.connections / 2;
    let jobs = plan.share(connection / 2, pairs);
    // All connections use this clock.
    let stamp = || u64::try_from(zero.elapsed().as_micros()).unwrap_or(u64::MAX);
    if connection.is_multiple_of(2) {
        for job in 0..jobs {
            let due = Duration::from_micros(plan.span_ms * 1_000 * job / jobs);
            if let Some(wait) = due.checked_sub(begun.elapsed()) {
                thread::sleep(wait);
            }
            pipe.put(plan.delay_s, stamp());
            pipe.send()?;
            let reply = pipe.reply()?;
            if !matches!(reply, Reply::Inserted(_)) {
                bail!("a put was answered {reply}");
            }
        }
        return Ok(Vec::new());
    }
    let mut micros = Vec::new();
    for _ in 0..jobs {
        pipe.reserve();
        pipe.send()?;
        let (id, put_at) = match pipe.reply_unless(failed)? {
            Some(Reply::Reserved(id, put_at)) => (id, put_at),
            Some(other) => bail!("a reserve was answered {other}"),
            // Another connection failed, and reports the reason.
            None => return Ok(micros),
        };
        let due = put_at + u64::from(plan.delay_s) * 1_000_000;
        let late = stamp().checked_sub(due).context("a job came before it was due")?;
        micros.push(u32::try_from(late).unwrap_or(u32::MAX));
        pipe.delete(id);
        pipe.send()?;
        let reply = pipe.reply()?;
        if reply != Reply::Deleted {
            bail!("the delete of job {id} was answered {reply}");
        }
    }
    Ok(micros)
}
