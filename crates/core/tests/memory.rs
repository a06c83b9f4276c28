//! The memory of the wheel: small if the wheel is empty, and constant under churn. Resident memory
//! is best measured with one test per process, so only one test here reads it.

use tickwheel_core::{TimerQueue, Wheel};

/// WH17: a million pairs of insert and cancel, ten minutes ahead, with a clock that stands still and
/// one that moves, and a million reschedules; in a long run ten million of each. After them the
/// resident memory is as before.
#[test]
fn millions_of_pairs_and_reschedules_leave_resident_memory_flat() {
    const TEN_MINUTES: u64 = 600_000;
    // Some pages belong to the test's own threads.
    const SLACK_BYTES: u64 = 1 << 20;

    let pairs = if tickwheel_testing::is_long() { 10_000_000 } else { 1_000_000 };
    for step in [0, 1] {
        let mut wheel = Wheel::new(0);
        let mut settled = None;
        for pair in 0..pairs {
            let now = pair * step;
            wheel.advance_with(now, |_, _: u64| panic!("everything was cancelled"));
            let handle = wheel.insert(now + TEN_MINUTES, pair).expect("it is ahead");
            assert_eq!(wheel.cancel(handle), Some(pair));
            if pair == pairs / 100 {
                settled = resident_bytes();
            }
        }
        assert_eq!(wheel.len(), 0);
        assert_flat("pairs", settled, SLACK_BYTES);
        assert!(wheel.heap_bytes() <= 8 << 10, "{} bytes", wheel.heap_bytes());

        let mut wheel = Wheel::new(0);
        let mut handle = wheel.insert(TEN_MINUTES, 0_u64).expect("it is ahead");
        for round in 1..=pairs {
            let now = round * step;
            wheel.advance_with(now, |_, _| panic!("it is always moved in time"));
            // The deadlines are later and earlier, by up to a level.
            let ahead = TEN_MINUTES + (round * 7_919) % 300_000 - 150_000;
            handle = wheel.reschedule(handle, now + ahead).expect("it is pending");
            if round == pairs / 100 {
                settled = resident_bytes();
            }
        }
        assert_eq!(wheel.len(), 1);
        assert_flat("reschedules", settled, SLACK_BYTES);
        assert!(wheel.heap_bytes() <= 8 << 10, "{} bytes", wheel.heap_bytes());
    }
}

fn assert_flat(what: &str, before: Option<u64>, slack_bytes: u64) {
    // On systems other than Linux, only `heap_bytes` is checked.
    if let (Some(before), Some(after)) = (before, resident_bytes()) {
        assert!(after <= before + slack_bytes, "{what}: from {before} to {after} bytes resident");
    }
}

/// The memory of this process; `None` if the system does not say.
#[expect(
    clippy::disallowed_methods,
    reason = "the system is asked about the process, from outside the wheel"
)]
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1_024)
}

#[test]
fn a_new_wheel_holds_nothing_and_a_sparse_one_little() {
    let mut wheel = Wheel::new(0);
    assert_eq!(wheel.heap_bytes(), 0);
    // 1,000 entries over 30 days (in ticks of a millisecond).
    for entry in 1..=1_000_u64 {
        wheel.insert(entry * 2_592_000, entry).expect("it is ahead");
    }
    let bytes = wheel.heap_bytes();
    assert!(bytes <= 64 << 10, "1,000 entries hold {bytes} bytes");
}

#[test]
fn the_capacity_that_was_asked_for_is_there_and_is_no_limit() {
    let mut wheel = Wheel::with_capacity(0, 1_000);
    let before = wheel.heap_bytes();
    assert_eq!(before, 16 * (64 * 12 + 20), "16 chunks, in which an entry with a u32 is 12 bytes");
    for entry in 0..1_024_u64 {
        wheel.insert(1_000 + entry, entry as u32).expect("it is ahead");
    }
    // No entry has moved. The other memory is a fan of slots, and the records of slots with few
    // entries.
    assert!(wheel.heap_bytes() <= before + (28 << 10), "{} bytes", wheel.heap_bytes());
    wheel.insert(1, 1_024).expect("the wheel grows");
    assert_eq!(wheel.len(), 1_025);
}
