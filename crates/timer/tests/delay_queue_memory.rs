//! The memory of a delay queue after many pushes and removals. The test has a process of its own, because it
//! reads the resident memory.

#![cfg(not(tickwheel_shuttle))]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use tickwheel::{DelayQueue, ManualClock, Timer};

const HOUR: Duration = Duration::from_secs(3_600);
/// Some pages belong to the test's own threads.
const SLACK_BYTES: u64 = 1 << 20;

/// A leak of 8 bytes a pair would show.
#[test]
fn many_pairs_leave_resident_memory_flat() {
    let pairs_each = if tickwheel_testing::is_long() { 1_000_000 } else { 200_000 };
    let timer = Timer::builder().clock(ManualClock::new()).build().expect("a timer");
    let queue = DelayQueue::new(&timer);
    // Some elements stay, so that the pairs are pushed and removed among others.
    for value in 0..100 {
        queue.push(value, HOUR).expect("it is open");
    }
    let pairs: [(&str, &dyn Fn(u64)); 4] = [
        ("push and remove", &|pair| {
            let handle =
                queue.push(pair, Duration::from_nanos(pair * 7_919 % 10_000_000)).expect("it is open");
            assert_eq!(queue.remove(handle), Some(pair));
        }),
        ("push and take", &|pair| {
            queue.push(pair, Duration::ZERO).expect("it is open");
            assert_eq!(queue.try_take(), Some(pair));
        }),
        ("push, move and remove", &|pair| {
            let handle = queue.push(pair, HOUR).expect("it is open");
            queue.reschedule(handle, HOUR * 2);
            assert_eq!(queue.remove(handle), Some(pair));
        }),
        ("wait and give up", &|_| {
            let mut first = pin!(queue.wait_next());
            let mut second = pin!(queue.next());
            let mut context = Context::from_waker(Waker::noop());
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert!(second.as_mut().poll(&mut context).is_pending());
        }),
    ];
    for (what, pair) in pairs {
        let mut settled = None;
        for number in 0..pairs_each {
            pair(number);
            if number == pairs_each / 100 {
                settled = resident_bytes();
            }
        }
        assert_eq!((queue.len(), timer.pending()), (100, 0), "after {what}");
        // On systems other than Linux, only the counts are checked.
        if let (Some(before), Some(after)) = (settled, resident_bytes()) {
            assert!(after <= before + SLACK_BYTES, "{what}: from {before} to {after} bytes resident");
        }
    }
}

/// The memory of this process; `None` if the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}
