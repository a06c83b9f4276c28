//! How late timers fire that fall due evenly, 100,000 in a second, scheduled in random order one to two seconds before.
//!
//! Beside them a thread of the same process sleeps from millisecond to millisecond: how late that one wakes is what the
//! machine did to everybody at the time.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tickwheel::{Clock, Monotonic};

use super::bare;
use super::scale::Scale;
use super::spread::Spread;
use super::stamps::{Epoch, Stamps};
use super::subject::{Service, Stamping};
use crate::random::Random;
use crate::sample::Sample;

/// A producer schedules so many and then sleeps until it is time for the next: some milliseconds.
const BATCH: usize = 256;

/// How long after the last one is due to wait for those that are still missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// When which timer is due, and when it is scheduled.
#[derive(Clone, Debug)]
struct Timetable {
    start: Monotonic,
    part: Duration,
    /// Timers of a part.
    timers: usize,
    parts: usize,
}

impl Timetable {
    fn new(start: Monotonic, scale: &Scale) -> Self {
        let timers = (scale.per_second as f64 * scale.part.as_secs_f64()) as usize;
        Self { start, part: scale.part, timers, parts: scale.parts as usize }
    }

    fn len(&self) -> usize {
        self.timers * self.parts
    }

    /// Timers are spread evenly from three parts after the start.
    fn due(&self, index: usize) -> Monotonic {
        self.time(3 * self.timers + index)
    }

    fn end(&self) -> Monotonic {
        self.due(self.len())
    }

    /// The n-th is scheduled here. Which one that is is random within its part: it comes two to four parts before it is due.
    fn time(&self, nth: usize) -> Monotonic {
        let nanos = self.part.as_nanos() * nth as u128 / self.timers as u128;
        self.start.saturating_add(Duration::from_nanos(nanos as u64))
    }

    /// The timers in the order in which they are scheduled.
    fn order(&self) -> Vec<u32> {
        let mut random = Random::new(8);
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        for part in order.chunks_mut(self.timers) {
            for left in (1..part.len()).rev() {
                part.swap(left, random.below(left as u64 + 1) as usize);
            }
        }
        order
    }
}

/// Measures all of them; no warm-up, for the first are few.
pub(crate) fn sample<S>(scale: &Scale) -> Sample
where
    S: Service,
    for<'a> S::Producer<'a>: Stamping,
{
    let epoch = Epoch::new();
    let service = S::start(Some(epoch.clock));
    let warm = Duration::from_millis(20);
    let table = Timetable::new(epoch.clock.now().saturating_add(warm), scale);
    let order = table.order();
    let stamps = Arc::new(Stamps::new(epoch, table.len()));
    let over = AtomicBool::new(false);
    let produce = |number: u32| {
        let mut producer = service.producer(number);
        let own = (number as usize..order.len()).step_by(scale.producers as usize);
        for (count, nth) in own.enumerate() {
            if count % BATCH == 0 {
                epoch.sleep_until(table.time(nth));
            }
            let index = order[nth] as usize;
            producer.stamp_at(table.due(index), &stamps, index);
        }
        // Claims live until here, for those whose timers die with them.
        wait_for_all(&stamps, &table, epoch);
    };
    let beside = std::thread::scope(|scope| {
        let beside = scope.spawn(|| bare::grid(epoch, || over.load(Ordering::Relaxed)));
        let produce = &produce;
        let producers: Vec<_> =
            (0..scale.producers).map(|number| scope.spawn(move || produce(number))).collect();
        let ended: Vec<_> = producers.into_iter().map(|producer| producer.join()).collect();
        over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.expect("it ends"));
        beside.join().expect("it ends")
    });
    figures(&stamps, &table, S::TICK_NANOS.and_then(NonZeroU64::new), beside)
}

fn wait_for_all(stamps: &Stamps, table: &Timetable, epoch: Epoch) {
    let mut until = table.end();
    let last = until.saturating_add(PATIENCE);
    loop {
        epoch.sleep_until(until);
        if stamps.fired() == table.len() as u64 || epoch.clock.now() > last {
            return;
        }
        until = epoch.clock.now().saturating_add(Duration::from_millis(10));
    }
}

fn figures(stamps: &Stamps, table: &Timetable, tick: Option<NonZeroU64>, beside: Vec<i64>) -> Sample {
    let mut sample = Sample { measured: stamps.fired(), ..Sample::default() };
    let late = Spread::new(stamps.lateness(|index| table.due(index)));
    late.figures(&mut sample, "");
    sample.figure("early", late.early() as f64);
    let beside = Spread::new(beside);
    beside.figures(&mut sample, "beside_");
    if let Some(tick) = tick {
        let begin = |index| Monotonic::from_tick(table.due(index).ceil_ticks(tick), tick);
        let late = Spread::new(stamps.lateness(begin));
        late.figures(&mut sample, "tick_");
        late.ratios(&beside, &mut sample, "tick_", "beside");
    }
    sample.check("fired", stamps.fired());
    sample.check("twice", stamps.twice());
    sample
}

#[cfg(test)]
mod tests {
    use super::super::scale::Load;
    use super::*;

    #[test]
    fn every_timer_is_scheduled_once_and_two_to_four_parts_before() {
        let start = Monotonic::from_nanos(5);
        let table = Timetable::new(start, &Load::QUICK.scale());
        let order = table.order();
        let parts = |count| start.saturating_add(table.part * count);
        assert_eq!((table.due(0), table.end()), (parts(3), parts(3 + table.parts as u32)));
        let (least, most) = (table.part * 2, table.part * 4);
        for (nth, &index) in order.iter().enumerate() {
            let ahead = table.due(index as usize).checked_since(table.time(nth)).expect("before it is due");
            assert!(ahead > least && ahead < most, "{index} is scheduled {ahead:?} before");
        }
        assert!(!order.is_sorted(), "no random order");
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..table.len() as u32), "not each of them once");
    }
}
