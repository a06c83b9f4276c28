//! The quota of a token: how much its bearer may do and have.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::{Problem, RateBody, duration};
use tickwheel_queue::{Due, Put, Timestamp};
use tokio::time::Instant;

use crate::access::refusal::Refusal;

/// A count of tasks is used for at most 1 s. Tasks that are put meanwhile are added to it.
const COUNT_TIME_MAX: Duration = Duration::from_secs(1);

/// The limits that a line of the token file sets. A limit that is not named does not apply.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Allowed {
    /// Calls per time; each line of a batch is a call.
    pub(crate) rate: Option<RateBody>,
    /// Bytes of request bodies per time.
    pub(crate) bytes: Option<RateBody>,
    /// Tasks, live and dead, in the queues of the token's scope.
    pub(crate) tasks: Option<u64>,
    /// How far ahead the due time of a put may be (ms).
    pub(crate) max_delay_ms: Option<u64>,
}

/// The limits of a token, and how much of them is used.
#[derive(Debug)]
pub(crate) struct Quota {
    allowed: Allowed,
    since: Instant,
    used: Mutex<Used>,
}

#[derive(Debug)]
struct Used {
    calls: Option<Bucket>,
    bytes: Option<Bucket>,
    /// The instant of the last count, and its result plus the tasks put since.
    tasks: Option<(Instant, u64)>,
}

/// A token bucket that may go into debt. A caller with any tokens left may take more than that, and then waits
/// longer. So a body is charged when its length is known.
#[derive(Debug)]
struct Bucket {
    rate: RateBody,
    /// The instant at which the debt is paid back (nanoseconds times `rate.tasks`). With this unit, one call costs a
    /// whole number.
    owed: u128,
}

impl Bucket {
    fn new(rate: RateBody) -> Self {
        Self { rate, owed: 0 }
    }

    fn one(&self) -> u128 {
        Duration::from_millis(self.rate.per_ms).as_nanos()
    }

    fn at(&self, now: Duration) -> u128 {
        now.as_nanos() * u128::from(self.rate.tasks)
    }

    /// Whether at least one unit is left.
    ///
    /// # Errors
    /// The wait until one is left.
    fn check(&self, now: Duration) -> Result<(), Duration> {
        let room = self.one() * u128::from(self.rate.tasks - 1);
        let over = self.owed.saturating_sub(self.at(now)).saturating_sub(room);
        if over == 0 {
            return Ok(());
        }
        let ns = over.div_ceil(u128::from(self.rate.tasks));
        Err(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    fn charge(&mut self, count: u64, now: Duration) {
        self.owed = self.owed.max(self.at(now)).saturating_add(self.one().saturating_mul(count.into()));
    }
}

impl Quota {
    pub(crate) fn new(allowed: Allowed) -> Self {
        let used =
            Used { calls: allowed.rate.map(Bucket::new), bytes: allowed.bytes.map(Bucket::new), tasks: None };
        Self { allowed, since: Instant::now(), used: Mutex::new(used) }
    }

    /// The limits.
    pub(crate) fn allowed(&self) -> Allowed {
        self.allowed
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one call.
    ///
    /// # Errors
    /// 429 if the rate is used up.
    pub(crate) fn call(&self) -> Result<(), Refusal> {
        let (now, Some(rate)) = (self.since.elapsed(), self.allowed.rate) else { return Ok(()) };
        let mut used = self.used();
        let calls = used.calls.as_mut().expect("there is a rate");
        calls.check(now).map_err(|wait| over(&format!("{rate} calls"), wait))?;
        calls.charge(1, now);
        Ok(())
    }

    /// Whether a body may come now.
    ///
    /// # Errors
    /// 429 if the bytes are used up.
    pub(crate) fn body(&self) -> Result<(), Refusal> {
        let (now, Some(rate)) = (self.since.elapsed(), self.allowed.bytes) else { return Ok(()) };
        let checked = self.used().bytes.as_ref().map_or(Ok(()), |bytes| bytes.check(now));
        checked.map_err(|wait| over(&format!("{rate} bytes of bodies"), wait))
    }

    /// Counts a body that arrived, and the calls in it. Each line of a batch is a call.
    pub(crate) fn came(&self, bytes: usize, calls: u64) {
        let (now, mut used) = (self.since.elapsed(), self.used());
        if let Some(bucket) = &mut used.bytes {
            bucket.charge(u64::try_from(bytes).unwrap_or(u64::MAX), now);
        }
        if let Some(bucket) = &mut used.calls {
            bucket.charge(calls, now);
        }
    }

    /// Whether the tasks must be counted again before more are put.
    pub(crate) fn has_to_count(&self) -> bool {
        let stale = |(at, _): (Instant, u64)| at.elapsed() >= COUNT_TIME_MAX;
        self.allowed.tasks.is_some() && self.used().tasks.is_none_or(stale)
    }

    /// Notes the result of a count.
    pub(crate) fn counted(&self, tasks: u64) {
        self.used().tasks = Some((Instant::now(), tasks));
    }

    /// Counts one put. If the token has all its tasks, the put may only change a task that is there.
    ///
    /// # Errors
    /// 400 if its due time is too far ahead.
    pub(crate) fn put(&self, put: &mut Put, now: Timestamp) -> Result<(), Refusal> {
        self.due(put.due, put.body.timeline.last().map(|moment| moment.at), now)?;
        let (Some(max), Some((_, tasks))) = (self.allowed.tasks, &mut self.used().tasks) else {
            return Ok(());
        };
        put.may_add = *tasks < max;
        *tasks = tasks.saturating_add(u64::from(put.may_add));
        Ok(())
    }

    /// The latest due time that is allowed now.
    pub(crate) fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        self.allowed.max_delay_ms.map(|max_ms| now.saturating_plus_ms(max_ms))
    }

    /// Checks a due time and the last instant of a timeline.
    ///
    /// # Errors
    /// 400 if it is too far ahead.
    pub(crate) fn due(&self, due: Due, last: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
        let Some(max_ms) = self.allowed.max_delay_ms else { return Ok(()) };
        let until = |at: Timestamp| u64::try_from(at.as_ms().saturating_sub(now.as_ms())).unwrap_or(0);
        let ms = match due {
            Due::Now => 0,
            Due::After { ms } => ms,
            Due::At(at) => until(at),
        };
        if ms.max(last.map_or(0, until)) > max_ms {
            let hint = format!("the token allows puts up to {} ahead", duration::format(max_ms));
            return Err(Problem::too_far(max_ms).with_hint(hint).into());
        }
        Ok(())
    }
}

impl PartialEq for Quota {
    /// Two quotas are equal if their limits are.
    fn eq(&self, other: &Self) -> bool {
        self.allowed == other.allowed
    }
}

impl Eq for Quota {}

fn over(what: &str, wait: Duration) -> Refusal {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    let problem = Problem::busy(
        format!("the token has {what}, and they are used up"),
        u32::try_from(seconds).unwrap_or(u32::MAX),
    );
    Refusal::token_limit(problem.with_hint("send more slowly, or ask the operator of the server for more"))
}

#[cfg(test)]
mod tests {
    use tickwheel_queue::{Key, QueueName};

    use super::*;

    fn rate(text: &str) -> Option<RateBody> {
        Some(text.parse().expect("a rate"))
    }

    fn wait(result: Result<(), Refusal>) -> Option<u32> {
        result.err().map(|refusal| {
            let problem = refusal.problem();
            assert_eq!(problem.status, 429, "{problem}");
            problem.retry_after_s.expect("it says how long")
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_kept_and_the_wait_is_told() {
        let quota = Quota::new(Allowed { rate: rate("3/m"), ..Allowed::default() });
        for _ in 0..3 {
            assert_eq!(wait(quota.call()), None);
        }
        assert_eq!(wait(quota.call()), Some(20));
        tokio::time::sleep(Duration::from_millis(19_999)).await;
        assert_eq!(wait(quota.call()), Some(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(wait(quota.call()), None);
        assert_eq!(wait(quota.call()), Some(20));
        quota.came(0, 3);
        assert_eq!(wait(quota.call()), Some(80), "the lines of a batch are calls");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        for _ in 0..3 {
            assert_eq!(wait(quota.call()), None, "nothing beyond the rate is saved up");
        }
        assert_eq!(wait(quota.call()), Some(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_longer_than_what_is_left_is_taken_and_paid_back() {
        let quota = Quota::new(Allowed { bytes: rate("1000/s"), ..Allowed::default() });
        assert_eq!(wait(quota.body()), None);
        quota.came(10_000, 0);
        assert_eq!(wait(quota.body()), Some(10));
        assert_eq!(wait(quota.call()), None, "a call without a body is free");
        tokio::time::sleep(Duration::from_secs(9) + Duration::from_millis(1)).await;
        assert_eq!(wait(quota.body()), None, "there is a byte left");
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_are_counted_once_a_second_and_puts_added() {
        let quota = Quota::new(Allowed { tasks: Some(10), ..Allowed::default() });
        let mut put = Put::new(&QueueName::new("q").expect("a name"), Key::new("k").expect("a key"));
        let now = Timestamp::from_ms(5).expect("not negative");
        assert!(quota.has_to_count());
        quota.counted(8);
        assert!(!quota.has_to_count());
        let puts = [(); 4].map(|()| {
            assert_eq!(wait(quota.put(&mut put, now)), None);
            put.may_add
        });
        assert_eq!(puts, [true, true, false, false]);
        tokio::time::sleep(COUNT_TIME_MAX).await;
        assert!(quota.has_to_count());
        assert!(!Quota::new(Allowed::default()).has_to_count());
    }

    #[tokio::test]
    async fn what_is_due_too_late_is_refused() {
        let quota = Quota::new(Allowed { max_delay_ms: Some(1_000), ..Allowed::default() });
        let at = |ms| Timestamp::from_ms(ms).expect("not negative");
        let status =
            |due, last| quota.due(due, last, at(5_000)).err().map(|refusal| refusal.problem().status);
        assert_eq!(status(Due::Now, None), None);
        assert_eq!(status(Due::After { ms: 1_000 }, None), None);
        assert_eq!(status(Due::At(at(6_000)), None), None);
        assert_eq!(status(Due::At(at(1)), Some(at(6_000))), None);
        assert_eq!(status(Due::After { ms: 1_001 }, None), Some(400));
        assert_eq!(status(Due::At(at(6_001)), None), Some(400));
        assert_eq!(status(Due::At(at(1)), Some(at(6_001))), Some(400));
    }
}
