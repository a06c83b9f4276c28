//! A program that embeds the queue and survives its own crash.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin embedded_crash -- /tmp/my-tasks        # crashes in the middle of its work
//! cargo run -p tickwheel-examples --bin embedded_crash -- /tmp/my-tasks        # finds everything again, and crashes again
//! cargo run -p tickwheel-examples --bin embedded_crash -- /tmp/my-tasks last   # finds everything again, and ends well
//! ```
//!
//! The program keeps a witness of its own, `acknowledged.txt`: a line for each key, written only after the queue has
//! acknowledged its put. At each start every key in there has to be in the queue.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tickwheel_queue::{Ack, Get, Key, Lease, Put, Queue, QueueName, TokenAnswer};

/// Tasks of one run.
const PUTS: usize = 2_000;
/// The crash comes after this number of them is acknowledged, while the others are on their way.
const CRASH_AFTER: usize = 1_000;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let directory = words.next().context("name a directory: embedded_crash DIR [last]")?;
    let last = words.next().is_some_and(|word| word == "last");
    let directory = Path::new(&directory);
    fs::create_dir_all(directory).context("make the directory")?;
    let witness_path = directory.join("acknowledged.txt");

    // Opening recovers: a crash needs no other repair.
    let queue = Queue::open(directory.join("queue")).context("open the queue")?;
    let mail = QueueName::new("mail")?;

    let acknowledged: BTreeSet<String> =
        fs::read_to_string(&witness_path).unwrap_or_default().lines().map(str::to_owned).collect();
    for key in &acknowledged {
        queue
            .get(Get::new(&mail, Key::new(key)?))
            .wait()
            .with_context(|| format!("LOST: {key} was acknowledged"))?;
    }
    say(&format!("{} acknowledged before, {} found again", acknowledged.len(), acknowledged.len()))?;

    if last {
        return finish(&queue, &mail, &acknowledged);
    }

    // All puts are on their way at once; they share a few syncs.
    let run = acknowledged.len();
    let puts: Vec<_> = (0..PUTS)
        .map(|number| {
            let key = format!("welcome:{run}:{number}");
            let put = Put::new(&mail, Key::new(&key)?).payload(key.clone());
            Ok((key, queue.put(put)))
        })
        .collect::<Result<_>>()?;
    let mut witness = File::options().create(true).append(true).open(&witness_path)?;
    for (number, (key, put)) in puts.into_iter().enumerate() {
        put.wait()?;
        writeln!(witness, "{key}")?;
        if number == CRASH_AFTER {
            say("crash")?;
            std::process::abort();
        }
    }
    Ok(())
}

/// Works everything off. What was acknowledged is among it; what was on its way at a crash may be, too.
fn finish(queue: &Queue, mail: &QueueName, acknowledged: &BTreeSet<String>) -> Result<()> {
    let mut missing = acknowledged.clone();
    loop {
        let tasks = queue.lease(Lease::new(mail).max(500), std::time::Duration::ZERO).wait()?;
        if tasks.is_empty() {
            break;
        }
        for task in &tasks {
            ensure!(task.body.payload == task.key.as_str().as_bytes(), "{} has another's payload", task.key);
            missing.remove(task.key.as_str());
        }
        let answers = queue.ack(Ack::new(mail, tasks.iter().map(|task| task.token))).wait()?;
        ensure!(answers.iter().all(|answer| *answer == TokenAnswer::Acked), "an ack was refused");
    }
    ensure!(missing.is_empty(), "LOST: {missing:?}");
    // Graceful: nothing is left to recover.
    queue.close();
    say(&format!("all {} delivered and acked, 0 lost", acknowledged.len()))
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("write to stdout")
}
