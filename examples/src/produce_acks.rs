//! Writes that are answered when all in-sync replicas have them: what Kafka calls `acks=all`.
//!
//! A write goes to several partitions, each with a leader here and followers elsewhere. Followers report how far they have
//! copied. The write waits in the purgatory, on one key for each of its partitions, and whatever happens to a partition is
//! followed by a check of its key. Partitions get their answers one by one; the write is answered when all have one, or time is up.
//!
//! Ground rules:
//! - `partitions` is locked for moments, and never while the purgatory is called: it asks writes, and they lock it.
//! - `answers` of a write is changed by `try_complete`, `on_expire` and `on_complete` alone, which never run side by side.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, SubmitError, SubmitRefusal, Timer};

/// The result of a write to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All in-sync replicas have it, and there are enough of them. Its records end before this offset.
    Written {
        /// Where the next record goes.
        next: u64,
    },
    /// All in-sync replicas have it, but they have become too few for it to be safe.
    TooFewReplicas,
    /// The partition is led elsewhere now.
    NotLeader,
    /// There is no such partition, or not any more.
    Gone,
    /// The replicas did not have it in time.
    TimedOut,
}

/// The answers of a write, one for each partition.
pub type Answers = BTreeMap<u32, Answer>;

/// Leads partitions. Clones are the same broker.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    purgatory: Purgatory<u32, Write>,
    /// In-sync replicas that a write needs to be safe, with the leader.
    replicas_min: usize,
    partitions: Mutex<BTreeMap<u32, Partition>>,
    expired: Mutex<BTreeMap<u32, u64>>,
}

struct Partition {
    is_leader: bool,
    /// Where the next record goes.
    end: u64,
    /// How far each in-sync follower has copied.
    followers: BTreeMap<u32, u64>,
}

impl Partition {
    /// The answer to a write up to `next`; `None` if some in-sync replica does not have it yet.
    fn answer(&self, next: u64, replicas_min: usize) -> Option<Answer> {
        if !self.is_leader {
            return Some(Answer::NotLeader);
        }
        let copied = self.followers.values().all(|&copied| copied >= next);
        let enough = self.followers.len() + 1 >= replicas_min;
        copied.then_some(if enough { Answer::Written { next } } else { Answer::TooFewReplicas })
    }
}

/// A write on its way.
struct Write {
    broker: Arc<Inner>,
    /// Where the records end in each partition that took them.
    ends: BTreeMap<u32, u64>,
    answers: Mutex<Answers>,
    done: Mutex<Option<Done>>,
}

type Done = Box<dyn FnOnce(Answers) + Send>;

impl Operation for Write {
    /// Collects the answers that are certain by now. One that was given stays, whatever happens to its partition later.
    fn try_complete(&self) -> bool {
        let partitions = lock(&self.broker.partitions);
        let mut answers = lock(&self.answers);
        for (number, &next) in &self.ends {
            if answers.contains_key(number) {
                continue;
            }
            let answer = match partitions.get(number) {
                None => Some(Answer::Gone),
                Some(partition) => partition.answer(next, self.broker.replicas_min),
            };
            answers.extend(answer.map(|answer| (*number, answer)));
        }
        self.ends.keys().all(|number| answers.contains_key(number))
    }

    fn on_expire(&self) {
        let mut answers = lock(&self.answers);
        for &number in self.ends.keys() {
            answers.entry(number).or_insert_with(|| {
                *lock(&self.broker.expired).entry(number).or_default() += 1;
                Answer::TimedOut
            });
        }
    }

    fn on_complete(&self) {
        let answers = lock(&self.answers).clone();
        let done = lock(&self.done).take();
        if let Some(done) = done {
            done(answers);
        }
    }
}

impl Broker {
    /// No partitions yet. A write is safe on `replicas_min` in-sync replicas, the leader's among them.
    #[must_use]
    pub fn new(timer: &Timer, replicas_min: usize) -> Self {
        let inner = Inner {
            purgatory: Purgatory::new(timer),
            replicas_min,
            partitions: Mutex::default(),
            expired: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Leads a partition with these followers, all in sync and empty.
    pub fn lead(&self, partition: u32, followers: impl IntoIterator<Item = u32>) {
        let followers = followers.into_iter().map(|follower| (follower, 0)).collect();
        lock(&self.inner.partitions).insert(partition, Partition { is_leader: true, end: 0, followers });
    }

    /// Writes a number of records to each partition. `done` is called once, when each has its answer or `timeout` has passed.
    ///
    /// # Errors
    /// If there is nothing to write, or no purgatory that watches over the time. Then `done` is not called, and records that were taken are
    /// written without an answer.
    pub fn write(
        &self,
        records: impl IntoIterator<Item = (u32, u64)>,
        timeout: Duration,
        done: impl FnOnce(Answers) + Send + 'static,
    ) -> Result<(), SubmitRefusal> {
        let (mut ends, mut answers, mut keys) = (BTreeMap::new(), Answers::new(), Vec::new());
        for (number, count) in records {
            keys.push(number);
            match lock(&self.inner.partitions).get_mut(&number) {
                None => {
                    answers.insert(number, Answer::Gone);
                }
                Some(partition) if !partition.is_leader => {
                    answers.insert(number, Answer::NotLeader);
                }
                Some(partition) => {
                    partition.end += count;
                    ends.insert(number, partition.end);
                }
            }
        }
        let write = Write {
            broker: Arc::clone(&self.inner),
            ends,
            answers: Mutex::new(answers),
            done: Mutex::new(Some(Box::new(done))),
        };
        let submitted = self.inner.purgatory.submit(Arc::new(write), keys, timeout);
        submitted.map(drop).map_err(|SubmitError { why, .. }| why)
    }

    /// A follower has copied everything before an offset.
    pub fn copied(&self, partition: u32, follower: u32, before: u64) {
        self.change(partition, |partition| {
            if let Some(copied) = partition.followers.get_mut(&follower) {
                *copied = before.max(*copied);
            }
        });
    }

    /// A follower is too far behind, and no write waits for it any more.
    pub fn out_of_sync(&self, partition: u32, follower: u32) {
        self.change(partition, |partition| {
            partition.followers.remove(&follower);
        });
    }

    /// Another broker leads the partition now.
    pub fn resign(&self, partition: u32) {
        self.change(partition, |partition| partition.is_leader = false);
    }

    /// The partition is deleted.
    pub fn delete(&self, partition: u32) {
        lock(&self.inner.partitions).remove(&partition);
        self.inner.purgatory.check(&partition);
    }

    /// How many writes wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.purgatory.delayed()
    }

    /// How many writes a partition has let time out.
    #[must_use]
    pub fn expired(&self, partition: u32) -> u64 {
        lock(&self.inner.expired).get(&partition).copied().unwrap_or(0)
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

    const TIMEOUT: Duration = Duration::from_millis(500);

    /// Partitions 1, 2 and 3 with followers 7 and 8; two replicas are safe.
    fn world() -> (ManualClock, Timer, Broker) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let broker = Broker::new(&timer, 2);
        for partition in 1..=3 {
            broker.lead(partition, [7, 8]);
        }
        (clock, timer, broker)
    }

    /// Ten records to each partition.
    fn write(broker: &Broker, partitions: &[u32]) -> Receiver<Answers> {
        let (done, answers) = channel();
        let records: Vec<(u32, u64)> = partitions.iter().map(|&partition| (partition, 10)).collect();
        broker.write(records, TIMEOUT, move |all| done.send(all).expect("the test listens")).expect("room");
        answers
    }

    fn copy(broker: &Broker, partition: u32, before: u64) {
        for follower in [7, 8] {
            broker.copied(partition, follower, before);
        }
    }

    const WRITTEN: Answer = Answer::Written { next: 10 };

    #[test]
    fn g20_a_write_is_answered_when_every_partition_has_all_its_copies() {
        let (_clock, timer, broker) = world();
        let answers = write(&broker, &[1, 2]);
        broker.copied(1, 7, 10);
        broker.copied(1, 8, 9);
        copy(&broker, 2, 10);
        assert_eq!((answers.try_iter().count(), broker.waiting()), (0, 1), "one record is not copied yet");
        broker.copied(1, 8, 10);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Answers::from([(1, WRITTEN), (2, WRITTEN)])]);
        assert_eq!((broker.waiting(), timer.pending()), (0, 0));
    }

    #[test]
    fn g20_an_error_of_a_partition_is_its_answer() {
        let (_clock, _timer, broker) = world();
        let answers = write(&broker, &[1, 2, 3, 4]);
        broker.resign(1);
        broker.delete(2);
        assert_eq!(answers.try_iter().count(), 0, "3 is open");
        // A follower that lags is no longer waited for; when both are gone, the leader alone is not safe.
        broker.out_of_sync(3, 7);
        assert_eq!(answers.try_iter().count(), 0, "8 has not copied it");
        broker.out_of_sync(3, 8);
        let expected = Answers::from([
            (1, Answer::NotLeader),
            (2, Answer::Gone),
            (3, Answer::TooFewReplicas),
            (4, Answer::Gone),
        ]);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn g20_each_end_of_the_last_open_partition_is_answered_at_once() {
        type End = fn(&Broker);
        let ends: [(End, Answer); 3] = [
            (|broker| broker.delete(1), Answer::Gone),
            (|broker| broker.resign(1), Answer::NotLeader),
            (
                |broker| [7, 8].into_iter().for_each(|follower| broker.out_of_sync(1, follower)),
                Answer::TooFewReplicas,
            ),
        ];
        for (end, answer) in ends {
            let (_clock, timer, broker) = world();
            let answers = write(&broker, &[1, 2]);
            copy(&broker, 2, 10);
            end(&broker);
            assert_eq!(answers.try_iter().collect::<Vec<_>>(), [Answers::from([(1, answer), (2, WRITTEN)])]);
            assert_eq!((broker.waiting(), timer.pending()), (0, 0));
        }
    }

    #[test]
    fn g20_what_is_decided_already_is_answered_at_once() {
        let (_clock, timer, broker) = world();
        broker.resign(1);
        let answers = write(&broker, &[1, 9]);
        let expected = Answers::from([(1, Answer::NotLeader), (9, Answer::Gone)]);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [expected]);
        assert_eq!((broker.waiting(), timer.pending()), (0, 0));
    }

    #[test]
    fn g21_at_the_end_of_time_open_partitions_time_out_and_the_others_keep_their_answers() {
        let (clock, _timer, broker) = world();
        let answers = write(&broker, &[1, 2, 3]);
        copy(&broker, 2, 10);
        clock.advance(TIMEOUT - Duration::from_millis(1));
        // The record was written when it was asked about; what comes later is another matter.
        broker.delete(2);
        assert_eq!(answers.try_iter().count(), 0);
        clock.advance(Duration::from_millis(1));
        let expected = Answers::from([(1, Answer::TimedOut), (2, WRITTEN), (3, Answer::TimedOut)]);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [expected]);
        assert_eq!([1, 2, 3].map(|partition| broker.expired(partition)), [1, 0, 1]);
        // The copies arrive after all, and no caller is answered twice.
        copy(&broker, 1, 10);
        assert_eq!((answers.try_iter().count(), broker.expired(1)), (0, 1));
    }

    #[test]
    fn writes_that_follow_each_other_wait_for_their_own_end() {
        let (_clock, _timer, broker) = world();
        let (first, second) = (write(&broker, &[1]), write(&broker, &[1]));
        copy(&broker, 1, 19);
        assert_eq!(first.try_iter().collect::<Vec<_>>(), [Answers::from([(1, WRITTEN)])]);
        assert_eq!((second.try_iter().count(), broker.waiting()), (0, 1));
        copy(&broker, 1, 20);
        assert_eq!(
            second.try_iter().collect::<Vec<_>>(),
            [Answers::from([(1, Answer::Written { next: 20 })])]
        );
    }

    #[test]
    fn a_write_of_nothing_is_refused() {
        let (_clock, _timer, broker) = world();
        assert_eq!(broker.write([], TIMEOUT, |_| ()), Err(SubmitRefusal::NoKeys));
    }
}
