//! W7: threads that schedule and cancel, against each other and against the timer's own thread.
//!
//! Each keeps a ring of pending timers: it schedules one and cancels the oldest. The wall counts, from the moment at which
//! all begin to the one at which all have ended and the timer's own threads have come to rest; so a timer that only takes
//! notes is not ahead of one that files.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::scale::Scale;
use super::subject::{Counts, Producer, Service};
use super::usage;
use crate::random::Random;
use crate::sample::Sample;

/// The ring and the delays, in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// 0 to cancel each at once.
    pub(crate) ring: u64,
    pub(crate) delays_us: Range<u64>,
}

/// A thread, its ring, and how many of its cancels came in time.
struct Thread<P: Producer> {
    producer: P,
    ring: VecDeque<P::Claim>,
    random: Random,
    delays_us: Range<u64>,
    cancelled: u64,
}

impl<P: Producer> Thread<P> {
    /// Inlined, so that the calls of the implementation are part of the caller's loop.
    #[inline]
    fn schedule(&mut self) {
        let Range { start, end } = self.delays_us;
        let delay = Duration::from_micros(start + self.random.below(end - start));
        self.ring.push_back(self.producer.schedule(delay));
    }

    #[inline]
    fn cancel(&mut self) {
        if let Some(oldest) = self.ring.pop_front() {
            self.cancelled += u64::from(self.producer.cancel(oldest));
        }
    }

    #[inline]
    fn exchange(&mut self, pairs: u64) {
        for _ in 0..pairs {
            self.schedule();
            self.cancel();
        }
    }
}

/// Where a producer waits for the others. Unlike a barrier it lets everybody go when somebody has panicked.
struct Gate {
    here: Sender<()>,
    opened: Receiver<()>,
}

/// The other side of one gate.
struct Keeper {
    here: Receiver<()>,
    opened: Sender<()>,
}

impl Gate {
    fn new() -> (Self, Keeper) {
        let ((here, is_here), (open, opened)) = (channel(), channel());
        (Self { here, opened }, Keeper { here: is_here, opened: open })
    }

    /// Nothing if nobody will open it any more.
    fn pass(&self) -> Option<()> {
        self.here.send(()).ok()?;
        self.opened.recv().ok()
    }
}

impl Keeper {
    fn wait(&self) {
        self.here.recv().expect("the producer did not panic");
    }

    fn open(&self) {
        self.opened.send(()).expect("the producer waits");
    }
}

/// Measures the pairs of all producers together, after a quarter as many to warm up.
///
/// # Errors
/// Where the system does not tell whether threads rest.
pub(crate) fn sample<S: Service>(shape: &Shape, scale: &Scale) -> anyhow::Result<Sample> {
    let service = S::start(None);
    let each = scale.pairs / u64::from(scale.producers);
    let produce = |number, gate: &Gate| {
        let mut thread = Thread {
            producer: service.producer(number),
            ring: VecDeque::with_capacity(shape.ring as usize + 1),
            random: Random::new(7 + u64::from(number)),
            delays_us: shape.delays_us.clone(),
            cancelled: 0,
        };
        (0..shape.ring).for_each(|_| thread.schedule());
        thread.exchange(each / 4);
        thread.cancelled = 0;
        gate.pass()?;
        thread.exchange(each);
        gate.pass()?;
        let cancelled = thread.cancelled;
        while !thread.ring.is_empty() {
            thread.cancel();
        }
        Some(cancelled)
    };
    std::thread::scope(|scope| {
        let produce = &produce;
        let mut keepers = Vec::new();
        let mut threads = Vec::new();
        for number in 0..scale.producers {
            let (gate, keeper) = Gate::new();
            keepers.push(keeper);
            threads.push(scope.spawn(move || produce(number, &gate)));
        }
        // All are warm.
        keepers.iter().for_each(Keeper::wait);
        usage::wait_for_rest(scale.patience)?;
        let counts = service.counts();
        let (begun, cpu) = (Instant::now(), usage::process_nanos());
        keepers.iter().for_each(Keeper::open);
        keepers.iter().for_each(Keeper::wait);
        let ended = usage::wait_for_rest(scale.patience)?;
        let (passed, cpu) = (ended - begun, usage::process_nanos() - cpu);
        let share = counts.zip(service.counts()).and_then(|(before, after)| unfiled(before, after));
        keepers.iter().for_each(Keeper::open);
        let cancelled = threads.into_iter().map(|thread| thread.join().expect("it ends"));
        let cancelled: u64 = cancelled.map(|cancelled| cancelled.expect("the gate was opened")).sum();
        let accepted = each * u64::from(scale.producers);
        let operations = accepted + cancelled;
        let mut sample = Sample { measured: operations, ..Sample::default() };
        sample.figure("mops", operations as f64 / passed.as_secs_f64() / 1e6);
        sample.figure("cpu_ns", cpu as f64 / operations as f64);
        if let Some(share) = share {
            sample.figure("unfiled", share);
        }
        sample.check("accepted", accepted);
        Ok(sample)
    })
}

/// The share of the cancels in between that came before the timer's own thread had filed the timer.
fn unfiled(before: Counts, after: Counts) -> Option<f64> {
    let cancelled = after.cancelled - before.cancelled;
    let unfiled = after.cancelled_unfiled - before.cancelled_unfiled;
    (cancelled > 0).then(|| unfiled as f64 / cancelled as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_at_a_gate_that_is_gone() {
        let (gate, keeper) = Gate::new();
        drop(keeper);
        assert_eq!(gate.pass(), None);
    }

    #[test]
    fn the_share_is_that_of_the_span() {
        let counts = |cancelled, cancelled_unfiled| Counts { cancelled, cancelled_unfiled };
        assert_eq!(unfiled(counts(100, 100), counts(300, 150)), Some(0.25));
        assert_eq!(unfiled(counts(7, 7), counts(7, 7)), None);
    }
}
