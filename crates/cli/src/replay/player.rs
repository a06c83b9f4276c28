//! [`Player`]: carries operations into a queue on a virtual clock, and its deliveries out.

use std::collections::VecDeque;
use std::io::{BufRead, Write};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tickwheel_api::PayloadBody;
use tickwheel_api::replay::ReplayDelivery;
use tickwheel_queue::{
    Ack, CancelError, Cancelled, Lease, Leased, Pending, Put, PutError, Queue, QueueName, Stored, Timestamp,
    TokenAnswer, Unavailable,
};

use super::dues::{Asked, Dues};
use super::lines::{Line, Lines, Op, line_of};
use super::summary::Summary;
use crate::output::STDOUT;

/// 8,192 calls under way: the queue's thread never runs dry, and memory does not grow with the file.
const CALLS_MAX: usize = 8_192;
/// 50 years, half of how far ahead a task may be due. A put beyond it is checked against the exact time, see [`Player::put`].
const FAR_MS: u64 = 50 * 365 * 86_400_000;

/// 1,024 instants are fired in one go: the wait for the queue's thread is shared, and few deliveries are held at a time.
const STRETCH_INSTANTS: usize = 1_024;

/// Plays the operations of `input` and writes each delivery to `out`, in the order of firing.
///
/// # Errors
/// A bad line, named by its number: deliveries before the instant of that line are written, none at or after it need be.
pub(crate) fn play(input: impl BufRead, out: impl Write) -> Result<Summary> {
    let mut lines = Lines::new(input);
    // The clock starts with the first line: virtual time never runs back.
    let Some(first) = lines.next()? else { return Ok(Summary::default()) };
    let queue =
        Queue::options().virtual_clock_at(first.at).open_memory().context("open a queue in memory")?;
    let mut player = Player {
        queue,
        out,
        at: first.at,
        clock: first.at,
        dues: Dues::new(),
        calls: VecDeque::new(),
        acks: VecDeque::new(),
        summary: Summary::default(),
    };
    let played = player.run(first, lines);
    // What fired before a bad line is true all the same.
    let flushed = player.out.flush().context(STDOUT);
    played.and(flushed)?;
    Ok(player.summary)
}

/// What goes on between the file and the queue.
///
/// The queue's clock may be behind the line that is played, as long as nothing can be due in between: then nothing that is
/// asked of the queue depends on it, for puts name their instant. This saves a wait for the queue's thread at most lines.
struct Player<W> {
    queue: Queue,
    out: W,
    /// The instant of the line that is played.
    at: Timestamp,
    /// Where the queue's clock stands.
    clock: Timestamp,
    dues: Dues,
    /// Operations whose answers are not looked at yet, oldest first.
    calls: VecDeque<Call>,
    acks: VecDeque<Pending<Vec<TokenAnswer>, Unavailable>>,
    summary: Summary,
}

struct Call {
    line: u64,
    answer: Awaited,
}

enum Awaited {
    Put(Pending<Stored, PutError>),
    Cancel(Pending<Cancelled, CancelError>),
}

impl<W: Write> Player<W> {
    fn run(&mut self, first: Line, mut lines: Lines<impl BufRead>) -> Result<()> {
        let mut next = Some(first);
        while let Some(line) = next {
            self.line(line)?;
            next = match lines.next() {
                Ok(next) => next,
                Err(bad) => {
                    // An earlier line that was refused is the first bad one.
                    self.settle(0)?;
                    return Err(bad);
                }
            };
        }
        if let Some(last) = self.dues.last() {
            self.walk_to(last)?;
        }
        self.settle(0)?;
        self.check_nothing_is_left()
    }

    fn line(&mut self, line: Line) -> Result<()> {
        if line.at > self.at {
            self.walk_to(line.at)?;
            self.at = line.at;
        }
        self.summary.lines += 1;
        match line.op {
            Op::Put { put, due_at } => self.put(line.number, put, due_at)?,
            Op::Cancel(cancel) => {
                let answer = Awaited::Cancel(self.queue.cancel(cancel));
                self.calls.push_back(Call { line: line.number, answer });
            }
        }
        if self.calls.len() >= CALLS_MAX {
            self.settle(CALLS_MAX / 2)?;
        }
        Ok(())
    }

    /// A put that is due already fires at once. One that is very far may be refused, which depends on the time. Both need
    /// the queue's clock to be exact; others do not.
    fn put(&mut self, line: u64, put: Put, due_at: Timestamp) -> Result<()> {
        let at_once = due_at <= self.at;
        if self.clock < self.at && (at_once || due_at.ms_since(self.at) > FAR_MS) {
            self.clock = self.queue.advance_to(self.at).wait()?;
        }
        let queue = put.queue.clone();
        self.calls.push_back(Call { line, answer: Awaited::Put(self.queue.put(put)) });
        self.dues.insert(due_at, &queue);
        if at_once {
            // A lease does not wait for a put that still looks its key up.
            self.settle(0)?;
            let asked = self.dues.pass(self.at);
            self.deliver(asked)?;
        }
        Ok(())
    }

    /// Lets everything fire that is due up to `target`, `target` included.
    ///
    /// The queue goes from one instant to the next by itself and notes on each task when it became ready. Nobody touches a
    /// task in between, so it makes no difference that they are leased and acked only at the end of a stretch.
    fn walk_to(&mut self, target: Timestamp) -> Result<()> {
        while let Some(end) = self.dues.stretch(target, STRETCH_INSTANTS) {
            self.clock = self.queue.advance_to(end).wait()?;
            let asked = self.dues.pass(self.clock);
            self.deliver(asked)?;
        }
        Ok(())
    }

    /// Leases whatever is ready, writes it, acks it.
    fn deliver(&mut self, asked: Asked) -> Result<()> {
        let queues = match asked {
            Asked::These(queues) => queues.into_iter().collect(),
            Asked::All => self.queues_with_ready()?,
        };
        let lease = |queue: &QueueName| {
            self.queue.lease(Lease::new(queue).max(usize::MAX), std::time::Duration::ZERO)
        };
        let leases: Vec<_> = queues.iter().map(lease).collect();
        let mut fired: Vec<(QueueName, Leased)> = Vec::new();
        for (queue, lease) in queues.into_iter().zip(leases) {
            let leased = lease.wait()?;
            if !leased.is_empty() {
                let tokens = leased.iter().map(|task| task.token);
                self.acks.push_back(self.queue.ack(Ack::new(&queue, tokens)));
                fired.extend(leased.into_iter().map(|task| (queue.clone(), task)));
            }
        }
        // A line that was refused comes before what fires after it.
        self.settle(0)?;
        // The order of the ready index, across queues, with the order of the file for that of the puts.
        fired.sort_by_cached_key(|(_, task)| (task.ready_at, task.due_at, line_of(&task.body)));
        for (queue, task) in fired {
            self.write(&queue, &task)?;
        }
        Ok(())
    }

    fn write(&mut self, queue: &QueueName, task: &Leased) -> Result<()> {
        let (due_at_ms, fired_at_ms) = (task.due_at.as_ms(), task.ready_at.as_ms());
        assert!(fired_at_ms >= due_at_ms, "fired at {fired_at_ms}, before it was due at {due_at_ms}");
        let delivery = ReplayDelivery {
            queue: queue.as_str().to_owned(),
            key: task.key.as_str().to_owned(),
            due_at_ms,
            fired_at_ms,
            payload: PayloadBody {
                bytes: task.body.payload.clone(),
                content_type: task.body.content_type.to_string(),
            },
        };
        self.summary.fired += 1;
        self.out.write_all(&delivery.to_line()).context(STDOUT)
    }

    fn queues_with_ready(&self) -> Result<Vec<QueueName>> {
        let queues = self.queue.queues().wait()?;
        Ok(queues.into_iter().filter(|queue| queue.ready > 0).map(|queue| queue.queue).collect())
    }

    /// Looks at the answers, oldest first, until no more than `left` are under way.
    fn settle(&mut self, left: usize) -> Result<()> {
        while self.calls.len() > left
            && let Some(call) = self.calls.pop_front()
        {
            let line = call.line;
            self.answered(call.answer).with_context(|| format!("line {line}"))?;
        }
        if left == 0 {
            for ack in self.acks.drain(..) {
                let answers = ack.wait()?;
                let acked = answers.iter().all(|answer| *answer == TokenAnswer::Acked);
                ensure!(acked, "a delivery could not be acked: {answers:?}; this is a mistake of tickwheel");
            }
        }
        Ok(())
    }

    fn answered(&mut self, answer: Awaited) -> Result<()> {
        match answer {
            Awaited::Put(answer) => match answer.wait() {
                Ok(_) => self.summary.puts += 1,
                Err(error) => return Err(anyhow!(error)),
            },
            Awaited::Cancel(answer) => match answer.wait() {
                Ok(Cancelled::Cancelled | Cancelled::Revoked) => self.summary.cancelled += 1,
                Err(CancelError::Done | CancelError::Leased) => self.summary.too_late += 1,
                Err(CancelError::NotFound) => self.summary.unknown += 1,
                Err(error) => return Err(anyhow!(error)),
            },
        }
        Ok(())
    }

    /// [`Dues`] is meant to know of everything; if it did not, deliveries would be missing, and nobody would know.
    fn check_nothing_is_left(&self) -> Result<()> {
        for queue in self.queue.queues().wait()? {
            let left = queue.scheduled + queue.ready + queue.leased;
            if left > 0 {
                bail!("{left} tasks of {} were never delivered; this is a mistake of tickwheel", queue.queue);
            }
        }
        Ok(())
    }
}
