//! A cache whose entries have a time to live, counted from the last write.
//!
//! Two things are kept apart. What is *read* is decided by the deadline beside the value: an expired value is never served, not
//! even in the moment before its timeout runs. What is *kept* is decided by the timeout, which takes the entry out, so that
//! values that no caller asks for do not stay.
//!
//! Ground rules:
//! - `entries` is locked for moments: never while something is scheduled or moved, nor while a value of the user's is dropped.
//! - An entry is in the map as long as it has a timeout that will run. A timeout that finds its entry with a later deadline, for
//!   a write was faster, is scheduled again.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Monotonic, Refusal, Timeout, Timer};

/// Keeps values for a while. Clones are the same cache.
#[derive(Clone)]
pub struct Cache<K, V> {
    inner: Arc<Inner<K, V>>,
}

struct Inner<K, V> {
    timer: Timer,
    entries: Mutex<HashMap<K, Entry<V>>>,
}

struct Entry<V> {
    value: V,
    deadline: Monotonic,
    /// `None` for the moment before it is scheduled.
    timeout: Option<Timeout>,
}

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
{
    /// An empty cache. Its time is the timer's.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        Self { inner: Arc::new(Inner { timer: timer.clone(), entries: Mutex::default() }) }
    }

    /// Keeps `value` for `ttl` from now, in place of what was there.
    ///
    /// # Errors
    /// If the timer has no room to watch over a new key: then nothing is kept.
    pub fn put(&self, key: K, value: V, ttl: Duration) -> Result<(), Refusal> {
        let deadline = self.inner.timer.now().saturating_add(ttl);
        let mut entries = self.inner.lock();
        if let Some(entry) = entries.get_mut(&key) {
            let before = std::mem::replace(&mut entry.value, value);
            entry.deadline = deadline;
            let timeout = entry.timeout.clone();
            drop(entries);
            drop(before);
            if let Some(timeout) = timeout {
                // False if its body has begun: it will see the new deadline.
                timeout.reschedule_at(deadline);
            }
            return Ok(());
        }
        entries.insert(key.clone(), Entry { value, deadline, timeout: None });
        drop(entries);
        self.inner.arm(key, deadline)
    }

    /// The value, unless it has expired.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        let now = self.inner.timer.now();
        self.inner.lock().get(key).filter(|entry| now < entry.deadline).map(|entry| entry.value.clone())
    }

    /// Takes a value out; `None` if it has expired, or was never there.
    pub fn remove(&self, key: &K) -> Option<V> {
        let entry = self.inner.lock().remove(key)?;
        if let Some(timeout) = entry.timeout {
            timeout.cancel();
        }
        (self.inner.timer.now() < entry.deadline).then_some(entry.value)
    }

    /// How many values are kept. Expired ones are among them for up to a tick of the timer.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.inner.lock().len()
    }
}

impl<K, V> Inner<K, V>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + 'static,
{
    /// Has the entry looked at when its time is up.
    fn arm(self: &Arc<Self>, key: K, deadline: Monotonic) -> Result<(), Refusal> {
        let cache = Arc::downgrade(self);
        let watched = key.clone();
        let look = move || {
            if let Some(cache) = cache.upgrade() {
                cache.look(key);
            }
        };
        match self.timer.schedule_at(deadline, look) {
            Ok(timeout) => {
                if let Some(entry) = self.lock().get_mut(&watched) {
                    entry.timeout = Some(timeout);
                }
                Ok(())
            }
            Err(refused) => {
                let entry = self.lock().remove(&watched);
                drop(entry);
                Err(refused.why)
            }
        }
    }

    /// Takes the entry out if it has expired; otherwise a write was faster, and it is looked at later.
    fn look(self: &Arc<Self>, key: K) {
        let mut entries = self.lock();
        let Some(entry) = entries.get(&key) else { return };
        let deadline = entry.deadline;
        if self.timer.now() < deadline {
            drop(entries);
            // Without room in the timer the entry is gone now: a cache may forget.
            let _ = self.arm(key, deadline);
            return;
        }
        let expired = entries.remove(&key);
        drop(entries);
        drop(expired);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tickwheel::{Job, ManualClock};

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn world(tick: Duration) -> (ManualClock, Timer, Cache<&'static str, u32>) {
        let clock = ManualClock::new();
        let builder = Timer::builder().tick(tick).clock(clock.clone()).executor(Job::run);
        let timer = builder.build().expect("a timer");
        let cache = Cache::new(&timer);
        (clock, timer, cache)
    }

    #[test]
    fn a_value_lives_for_its_time_and_leaves_with_it() {
        let (clock, timer, cache) = world(ms(1));
        cache.put("a", 1, ms(100)).expect("there is room");
        clock.advance(ms(99));
        assert_eq!(cache.get(&"a"), Some(1));
        clock.advance(ms(1));
        assert_eq!((cache.get(&"a"), cache.kept(), timer.pending()), (None, 0, 0));
    }

    #[test]
    fn an_expired_value_is_not_served_while_it_is_still_kept() {
        // A tick of 10 ms: the timeout of 101 runs at 110.
        let (clock, _timer, cache) = world(ms(10));
        cache.put("a", 1, ms(101)).expect("there is room");
        for now in 1..=120 {
            clock.advance(ms(1));
            let expected = (now < 101).then_some(1);
            assert_eq!(cache.get(&"a"), expected, "at {now}");
            assert_eq!(cache.kept(), usize::from(now < 110), "at {now}");
        }
        cache.put("b", 2, ms(5)).expect("there is room");
        clock.advance(ms(5));
        assert_eq!((cache.kept(), cache.remove(&"b")), (1, None), "nor is it given out by a removal");
    }

    #[test]
    fn a_write_begins_the_time_anew_longer_or_shorter() {
        let (clock, timer, cache) = world(ms(1));
        cache.put("a", 1, ms(100)).expect("there is room");
        clock.advance(ms(60));
        cache.put("a", 2, ms(100)).expect("there is room");
        clock.advance(ms(99));
        assert_eq!(cache.get(&"a"), Some(2));
        cache.put("a", 3, ms(10)).expect("there is room");
        clock.advance(ms(9));
        assert_eq!(cache.get(&"a"), Some(3));
        clock.advance(ms(1));
        assert_eq!((cache.get(&"a"), cache.kept()), (None, 0));
        assert_eq!(timer.metrics().accepted, 1, "one timeout did it all");
    }

    #[test]
    fn a_removed_value_is_given_out_once_and_its_key_is_free() {
        let (clock, timer, cache) = world(ms(1));
        cache.put("a", 1, ms(100)).expect("there is room");
        assert_eq!((cache.remove(&"a"), cache.remove(&"a")), (Some(1), None));
        assert_eq!(timer.pending(), 0);
        cache.put("a", 2, ms(200)).expect("there is room");
        clock.advance(ms(150));
        assert_eq!(cache.get(&"a"), Some(2), "the timeout of the first does not end the second");
    }

    #[test]
    fn a_timeout_that_a_write_has_overtaken_comes_again() {
        // The body has begun when the write comes: bodies are held up here.
        let clock = ManualClock::new();
        let (held, jobs) = std::sync::mpsc::channel::<Job>();
        let held = Mutex::new(held);
        let hold = move |job: Job| held.lock().expect("no panic").send(job).expect("the test listens");
        let timer = Timer::builder().clock(clock.clone()).executor(hold).build().expect("a timer");
        let cache = Cache::new(&timer);
        cache.put("a", 1, ms(100)).expect("there is room");
        // A write of another thread, after it changed the entry and before it moved the timeout.
        cache.inner.lock().get_mut(&"a").expect("it is there").deadline = Monotonic::from_nanos(300_000_000);
        clock.advance(ms(100));
        jobs.try_recv().expect("it is due").run();
        assert_eq!((cache.get(&"a"), timer.pending()), (Some(1), 1));
        clock.advance(ms(200));
        jobs.try_recv().expect("it is due again").run();
        assert_eq!(cache.kept(), 0);
    }

    #[test]
    fn a_value_without_time_or_without_a_timeout_is_not_kept() {
        let (_clock, timer, cache) = world(ms(1));
        cache.put("a", 1, Duration::ZERO).expect("there is room");
        assert_eq!((cache.get(&"a"), cache.kept()), (None, 0));
        drop(timer.shutdown());
        assert_eq!(cache.put("b", 2, ms(100)), Err(Refusal::ShutDown));
        assert_eq!((cache.get(&"b"), cache.kept()), (None, 0));
    }
}
