//! [`Player`]: sends operations to a queue on a virtual clock, and writes its deliveries.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, Write};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tickwheel_api::replay::ReplayDelivery;
use tickwheel_api::{Answer, PayloadBody};
use tickwheel_queue::{
    Ack, CancelError, Cancelled, Key, Lease, Leased, ListQueues, Pending, Put, PutError, Queue, QueueCounts,
    QueueName, Stored, Timestamp, TokenAnswer, Unavailable, WhichQueues,
};

use super::lines::{Line, Lines, Op, line_of};
use super::summary::Summary;
use crate::output::STDOUT;

/// The largest number of calls under way. With this number the queue's thread always has work, and memory does not grow with the file.
const CALLS_MAX: usize = 8_192;
/// The number of lines after which the clock is moved even if no line needs it. So deliveries are written while lines are read.
const LINES_BEHIND_MAX: usize = 4_096;
/// The approximate number of tasks that fire together at the end. The limit keeps few deliveries in memory at a time.
const STRETCH_TASKS: usize = 4_096;
/// 50 years (ms), half of the limit for due times. A put that is due later than that may be refused, depending on the exact time. So the
/// clock is moved before such a put.
const FAR_MS: u64 = 50 * 365 * 86_400_000;

/// Plays the operations of `input` and writes each delivery to `out`, in the order of firing.
///
/// # Errors
/// A line is not valid; the error names its number, and deliveries before its instant are written. Unless `is_lax`, a
/// payload that only some JSON readers accept is not valid, as in a put to a server.
pub(crate) fn play(input: impl BufRead, out: impl Write, is_lax: bool) -> Result<Summary> {
    let mut lines = Lines::new(input, is_lax);
    // The clock starts at the instant of the first line, because virtual time never goes back.
    let Some(first) = lines.next()? else { return Ok(Summary::default()) };
    let queue =
        Queue::options().virtual_clock_at(first.at).open_memory().context("open a queue in memory")?;
    let mut player = Player {
        queue,
        out,
        is_lax,
        at: first.at,
        behind: 0,
        dues: HashMap::new(),
        calls: VecDeque::new(),
        summary: Summary::default(),
    };
    let played = player.run(first, lines);
    // Deliveries before an invalid line are valid and are written.
    let flushed = player.out.flush().context(STDOUT);
    played.and(flushed)?;
    Ok(player.summary)
}

/// The state between the file and the queue.
///
/// If the player waited for the queue's thread at each line, that would take longer than all the work of the thread. So the player sends
/// lines before the queue's clock reaches them, as long as the result is the same: puts carry their instant, and the queue records on each
/// task when it became ready. The delivery of a task can change only the result of a later line about the same task. The player moves the
/// clock in three cases: before a line whose task may have fired, which [`dues`](Self::dues) says; before a put whose result depends on
/// the exact time; and after [`LINES_BEHIND_MAX`] lines.
struct Player<W> {
    queue: Queue,
    out: W,
    /// Whether deliveries are written for readers of any JSON.
    is_lax: bool,
    /// The instant of the current line.
    at: Timestamp,
    /// Lines since the clock was moved.
    behind: usize,
    /// The due times of tasks that were put and not cancelled. They only decide when the clock is moved. The queue decides which tasks
    /// fire.
    dues: HashMap<(QueueName, Key), Timestamp>,
    /// Operations whose answers were not checked yet, oldest first.
    calls: VecDeque<Call>,
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
                    self.fire_until(self.at)?;
                    return Err(bad);
                }
            };
        }
        self.fire_all()
    }

    fn line(&mut self, line: Line) -> Result<()> {
        self.at = line.at;
        self.behind += 1;
        self.summary.lines += 1;
        let task = match &line.op {
            Op::Put { put, .. } => (put.queue.clone(), put.key.clone().expect("a line names its key")),
            Op::Cancel(cancel) => (cancel.queue.clone(), cancel.key.clone()),
        };
        let has_fired = self.dues.get(&task).is_some_and(|due| *due <= self.at);
        if has_fired || self.behind >= LINES_BEHIND_MAX {
            self.fire_until(self.at)?;
        }
        match line.op {
            Op::Put { put, due_at } => self.put(line.number, task, *put, due_at)?,
            Op::Cancel(cancel) => {
                if self.dues.remove(&task).is_none() {
                    // The task has fired, or it never existed; the queue's history decides which. Entries of the history expire, so the
                    // history at this point must not depend on the speed of the queue's thread.
                    self.settle(0)?;
                }
                let answer = Awaited::Cancel(self.queue.cancel(cancel));
                self.calls.push_back(Call { line: line.number, answer });
            }
        }
        if self.calls.len() >= CALLS_MAX {
            self.settle(CALLS_MAX / 2)?;
        }
        Ok(())
    }

    fn put(&mut self, line: u64, task: (QueueName, Key), put: Put, due_at: Timestamp) -> Result<()> {
        let at_once = due_at <= self.at;
        let is_exact = at_once || due_at.ms_since(self.at) > FAR_MS;
        if is_exact {
            self.fire_until(self.at)?;
        }
        self.calls.push_back(Call { line, answer: Awaited::Put(self.queue.put(put)) });
        self.dues.insert(task, due_at);
        if is_exact {
            self.settle(0)?;
        }
        if at_once {
            self.deliver()?;
        }
        Ok(())
    }

    /// Moves the clock to `end` and writes the deliveries of all tasks due up to `end`, inclusive.
    fn fire_until(&mut self, end: Timestamp) -> Result<()> {
        self.behind = 0;
        self.queue.advance_to(end).wait()?;
        // The clock moves after all earlier calls. So a refused line is reported before deliveries that are later than the line.
        self.settle(0)?;
        self.deliver()
    }

    /// Fires all remaining tasks.
    fn fire_all(&mut self) -> Result<()> {
        let mut instants: Vec<Timestamp> = self.dues.values().copied().collect();
        instants.sort_unstable();
        let last = instants.last().copied();
        let ends: Vec<Timestamp> = instants.into_iter().step_by(STRETCH_TASKS).chain(last).collect();
        for end in ends {
            self.fire_until(end.max(self.at))?;
        }
        self.settle(0)?;
        self.check_nothing_is_left()
    }

    /// Leases all ready tasks, writes them, and acks them.
    fn deliver(&mut self) -> Result<()> {
        let ready = self.queues()?.into_iter().filter(|counts| counts.ready > 0).map(|counts| counts.queue);
        let leases: Vec<_> = ready
            .map(|queue| {
                let lease = self.queue.lease(Lease::new(&queue).max(usize::MAX), Duration::ZERO);
                (queue, lease)
            })
            .collect();
        let mut fired: Vec<(QueueName, Leased)> = Vec::new();
        let mut acks = Vec::new();
        for (queue, lease) in leases {
            let leased = lease.wait()?;
            acks.push(self.queue.ack(Ack::new(&queue, leased.iter().map(|task| task.token))));
            fired.extend(leased.into_iter().map(|task| (queue.clone(), task)));
        }
        // The order in which tasks became ready, over all queues. For equal times, the order of the file.
        fired.sort_by_cached_key(|(_, task)| (task.ready_at, task.due_at, line_of(&task.body)));
        for (queue, task) in fired {
            self.write(&queue, &task)?;
            let known = self.dues.remove(&(queue, task.key.clone()));
            assert_eq!(known, Some(task.due_at), "{} fired as it was put", task.key);
        }
        acks.into_iter().try_for_each(check_acked)
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
        let delivery = Answer { body: delivery, lax: self.is_lax };
        serde_json::to_writer(&mut self.out, &delivery).map_err(std::io::Error::from).context(STDOUT)?;
        self.out.write_all(b"\n").context(STDOUT)
    }

    /// Checks answers, oldest first, until at most `left` calls are under way.
    fn settle(&mut self, left: usize) -> Result<()> {
        while self.calls.len() > left
            && let Some(call) = self.calls.pop_front()
        {
            let line = call.line;
            self.answered(call.answer).with_context(|| format!("line {line}"))?;
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

    /// The queues that have tasks, with their counts.
    fn queues(&self) -> Result<Vec<QueueCounts>> {
        let mut all = Vec::new();
        let mut list = ListQueues { which: WhichQueues::InUse, ..ListQueues::default() };
        loop {
            let page = self.queue.queues(list.clone()).wait()?;
            all.extend(page.queues);
            match page.next {
                Some(next) => list.after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Checks that neither the player nor the queue has a pending task. A pending task would mean that deliveries are missing.
    fn check_nothing_is_left(&self) -> Result<()> {
        let ours = self.dues.len();
        ensure!(ours == 0, "{ours} tasks were never delivered; this is a mistake of tickwheel");
        for queue in self.queues()? {
            let left = queue.live();
            if left > 0 {
                bail!("{left} tasks of {} were never delivered; this is a mistake of tickwheel", queue.queue);
            }
        }
        Ok(())
    }
}

fn check_acked(ack: Pending<Vec<TokenAnswer>, Unavailable>) -> Result<()> {
    let answers = ack.wait()?;
    let acked = answers.iter().all(|answer| *answer == TokenAnswer::Acked);
    ensure!(acked, "a delivery could not be acked: {answers:?}; this is a mistake of tickwheel");
    Ok(())
}
