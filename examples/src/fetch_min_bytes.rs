//! Reads that wait until there is enough to read: Kafka's fetch with `min.bytes` and `max.wait`.
//!
//! A fetch names partitions and where to read in each. It waits in the purgatory, on one key for each partition, until all of them
//! together have the bytes it asks for, until one of them answers with an error, or until its time is up: then it takes what
//! there is, which may be nothing.
//!
//! Ground rule: `partitions` is locked for moments, and never while the purgatory is called: it asks fetches, and they lock it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, SubmitError, SubmitRefusal, Timer};

/// The part of a partition that is read.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The leader's epoch, as the reader knows it.
    pub epoch: u32,
    /// The first byte to read.
    pub from: u64,
    /// The most bytes to read.
    pub bytes_max: u64,
}

/// Why nothing can be read in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// There was another leader since the reader looked.
    FencedEpoch,
    /// The partition is led elsewhere.
    NotLeader,
    /// There is no such partition.
    Gone,
}

/// How many bytes there are to read in each partition, or why none.
pub type Answers = BTreeMap<u32, Result<u64, FetchError>>;

/// Has partitions to read from. Clones are the same broker.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    purgatory: Purgatory<u32, Fetch>,
    partitions: Mutex<BTreeMap<u32, Partition>>,
}

struct Partition {
    epoch: u32,
    is_leader: bool,
    is_throttled: bool,
    bytes: u64,
}

impl Partition {
    fn readable(&self, place: Place) -> Result<u64, FetchError> {
        if !self.is_leader {
            return Err(FetchError::NotLeader);
        }
        if self.epoch != place.epoch {
            return Err(FetchError::FencedEpoch);
        }
        Ok(self.bytes.saturating_sub(place.from).min(place.bytes_max))
    }
}

/// A fetch that waits.
struct Fetch {
    broker: Arc<Inner>,
    places: BTreeMap<u32, Place>,
    bytes_min: u64,
    done: Mutex<Option<Done>>,
}

type Done = Box<dyn FnOnce(Answers) + Send>;

impl Operation for Fetch {
    fn try_complete(&self) -> bool {
        let partitions = lock(&self.broker.partitions);
        let mut sum = 0_u64;
        for (number, &place) in &self.places {
            let Some(partition) = partitions.get(number) else { return true };
            match partition.readable(place) {
                // Who reads more than its share is not woken by what it may not have yet.
                Ok(_) if partition.is_throttled => {}
                Ok(bytes) => sum = sum.saturating_add(bytes),
                Err(_) => return true,
            }
        }
        sum >= self.bytes_min
    }

    /// Whether there was enough, or an error, or time was up: the answer is what there is.
    fn on_complete(&self) {
        let answers = {
            let partitions = lock(&self.broker.partitions);
            let answer = |(&number, &place): (&u32, &Place)| {
                let partition = partitions.get(&number).ok_or(FetchError::Gone);
                let readable = partition.and_then(|partition| {
                    partition.readable(place).map(|bytes| if partition.is_throttled { 0 } else { bytes })
                });
                (number, readable)
            };
            self.places.iter().map(answer).collect()
        };
        let done = lock(&self.done).take();
        if let Some(done) = done {
            done(answers);
        }
    }
}

impl Broker {
    /// No partitions yet.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { inner: Arc::new(Inner { purgatory: Purgatory::new(timer), partitions: Mutex::default() }) }
    }

    /// Leads an empty partition, in this epoch.
    pub fn lead(&self, partition: u32, epoch: u32) {
        let led = Partition { epoch, is_leader: true, is_throttled: false, bytes: 0 };
        lock(&self.inner.partitions).insert(partition, led);
        self.inner.purgatory.check(&partition);
    }

    /// Reads from `places` when they have `bytes_min` together, and after `wait` whatever there is. `done` is called once.
    ///
    /// # Errors
    /// If there is no place, or no purgatory that watches over the time. Then `done` is not called.
    pub fn fetch(
        &self,
        places: impl IntoIterator<Item = (u32, Place)>,
        bytes_min: u64,
        wait: Duration,
        done: impl FnOnce(Answers) + Send + 'static,
    ) -> Result<(), SubmitRefusal> {
        let places: BTreeMap<u32, Place> = places.into_iter().collect();
        let keys: Vec<u32> = places.keys().copied().collect();
        let fetch = Fetch {
            broker: Arc::clone(&self.inner),
            places,
            bytes_min,
            done: Mutex::new(Some(Box::new(done))),
        };
        let submitted = self.inner.purgatory.submit(Arc::new(fetch), keys, wait);
        submitted.map(drop).map_err(|SubmitError { why, .. }| why)
    }

    /// Bytes were written to a partition.
    pub fn append(&self, partition: u32, bytes: u64) {
        self.change(partition, |partition| partition.bytes += bytes);
    }

    /// From now on readers of the partition do, or do not, have to wait for their share.
    pub fn throttle(&self, partition: u32, is_throttled: bool) {
        self.change(partition, |partition| partition.is_throttled = is_throttled);
    }

    /// Another broker leads the partition now.
    pub fn resign(&self, partition: u32) {
        self.change(partition, |partition| partition.is_leader = false);
    }

    /// This broker leads the partition again, in a new epoch.
    pub fn lead_again(&self, partition: u32, epoch: u32) {
        self.change(partition, |partition| (partition.is_leader, partition.epoch) = (true, epoch));
    }

    /// How many fetches wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.purgatory.delayed()
    }

    /// Change, then check.
    fn change(&self, number: u32, change: impl FnOnce(&mut Partition)) {
        if let Some(partition) = lock(&self.inner.partitions).get_mut(&number) {
            change(partition);
        }
        self.inner.purgatory.check(&number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tickwheel::{Job, ManualClock};

    use super::*;

    const WAIT: Duration = Duration::from_millis(500);

    /// Partitions 1 and 2, both empty and in epoch 5.
    fn world() -> (ManualClock, Timer, Broker) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let broker = Broker::new(&timer);
        broker.lead(1, 5);
        broker.lead(2, 5);
        (clock, timer, broker)
    }

    /// From the beginning of both, at most 60 bytes of each, at least 100 in all.
    fn fetch(broker: &Broker) -> Receiver<Answers> {
        let (done, answers) = channel();
        let place = Place { epoch: 5, from: 0, bytes_max: 60 };
        let done = move |all| done.send(all).expect("the test listens");
        broker.fetch([(1, place), (2, place)], 100, WAIT, done).expect("room");
        answers
    }

    fn read(one: u64, two: u64) -> Vec<Answers> {
        vec![Answers::from([(1, Ok(one)), (2, Ok(two))])]
    }

    #[test]
    fn g22_a_fetch_is_answered_when_the_sum_is_enough() {
        let (_clock, timer, broker) = world();
        let answers = fetch(&broker);
        broker.append(1, 55);
        broker.append(2, 44);
        assert_eq!((answers.try_iter().count(), broker.waiting()), (0, 1), "a byte is missing");
        broker.append(2, 1);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), read(55, 45));
        assert_eq!((broker.waiting(), timer.pending()), (0, 0));
    }

    #[test]
    fn g22_a_partition_counts_for_no_more_than_its_maximum() {
        let (_clock, _timer, broker) = world();
        let answers = fetch(&broker);
        broker.append(1, 1_000);
        assert_eq!(answers.try_iter().count(), 0, "60 of them count");
        broker.append(2, 40);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), read(60, 40));
    }

    #[test]
    fn g22_a_throttled_partition_counts_for_nothing() {
        let (_clock, _timer, broker) = world();
        broker.throttle(1, true);
        let answers = fetch(&broker);
        broker.append(1, 60);
        broker.append(2, 60);
        assert_eq!(answers.try_iter().count(), 0);
        broker.throttle(1, false);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), read(60, 60));
    }

    #[test]
    fn g22_what_is_there_already_is_read_at_once() {
        let (_clock, timer, broker) = world();
        broker.append(1, 60);
        broker.append(2, 60);
        assert_eq!(fetch(&broker).try_iter().collect::<Vec<_>>(), read(60, 60));
        assert_eq!((broker.waiting(), timer.pending()), (0, 0));
    }

    #[test]
    fn g23_an_error_is_answered_at_once_beside_what_there_is() {
        for (change, error) in [
            ((|broker| broker.resign(2)) as fn(&Broker), FetchError::NotLeader),
            (|broker| broker.lead_again(2, 6), FetchError::FencedEpoch),
        ] {
            let (_clock, timer, broker) = world();
            broker.append(1, 7);
            let answers = fetch(&broker);
            change(&broker);
            // One that comes later does not wait, either.
            let later = fetch(&broker);
            let expected = Answers::from([(1, Ok(7)), (2, Err(error))]);
            for answers in [answers, later] {
                assert_eq!(answers.try_iter().collect::<Vec<_>>(), std::slice::from_ref(&expected));
            }
            assert_eq!((broker.waiting(), timer.pending()), (0, 0));
        }
        let (_clock, _timer, broker) = world();
        let (done, answers) = channel();
        let place = Place { epoch: 5, from: 0, bytes_max: 60 };
        let done = move |all| done.send(all).expect("the test listens");
        broker.fetch([(9, place)], 100, WAIT, done).expect("room");
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Answers::from([(9, Err(FetchError::Gone))])]);
    }

    #[test]
    fn when_time_is_up_the_answer_is_what_there_is() {
        let (clock, _timer, broker) = world();
        let answers = fetch(&broker);
        broker.append(2, 99);
        clock.advance(WAIT - Duration::from_millis(1));
        assert_eq!(answers.try_iter().count(), 0);
        clock.advance(Duration::from_millis(1));
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), read(0, 60));
        assert_eq!(broker.waiting(), 0);
    }
}
