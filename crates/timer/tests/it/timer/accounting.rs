//! Threads make all calls at once. No task is lost, and none runs twice.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use tickwheel::{Clock, ManualClock, Metrics, SystemClock, Timeout, TimeoutState, Timer};

use super::stage::{Dice, ms};

const THREADS: usize = 8;

/// Each kind of round, with either clock, with a shutdown and without one, is played at least once, however slow the machine is.
const ROUNDS_MIN: u64 = 6;

/// The results of a round, as the threads saw them.
#[derive(Default)]
struct Tally {
    accepted: AtomicUsize,
    cancelled: AtomicUsize,
    ran: AtomicUsize,
    twice: AtomicUsize,
}

fn span() -> Duration {
    if tickwheel_testing::is_long() { Duration::from_secs(60) } else { Duration::from_secs(2) }
}

/// Eight threads make random schedules, cancels, moves and steps of the clock on shared handles. Every few rounds there is also a
/// shutdown in the middle.
#[test]
fn t17_every_task_has_exactly_one_end() {
    let clock = SystemClock::new();
    let end = clock.now().saturating_add(span());
    let mut round = 0;
    while round < ROUNDS_MIN || clock.now() < end {
        round += 1;
        let by_hand = round % 2 == 0;
        let shuts = round % 3 == 0;
        let manual = ManualClock::new();
        let builder = Timer::builder();
        let timer = if by_hand { builder.clock(manual.clone()) } else { builder }.build().unwrap();
        play(&timer, by_hand.then_some(&manual), shuts, round);
    }
}

fn play(timer: &Timer, manual: Option<&ManualClock>, shuts: bool, round: u64) {
    let tally = Arc::new(Tally::default());
    let handles: Mutex<Vec<Timeout>> = Mutex::default();
    let returned = AtomicUsize::new(0);
    let quiet = Barrier::new(THREADS);
    // The error is not asserted where it is found, because the other threads would wait for that thread for ever.
    let wrong: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tally, handles, returned, quiet, wrong) = (&tally, &handles, &returned, &quiet, &wrong);
            scope.spawn(move || {
                let mut dice = Dice(round << 8 | thread as u64);
                for phase in 0..3 {
                    for _ in 0..300 {
                        act(timer, manual, tally, handles, &mut dice);
                    }
                    if shuts && phase == 1 && thread == 0 {
                        returned.fetch_add(timer.shutdown().len(), Ordering::SeqCst);
                    }
                    // No thread is in a call now. Only bodies run, and they only change tasks from pending to fired.
                    if quiet.wait().is_leader() {
                        let found = check(timer, tally, handles, returned.load(Ordering::SeqCst));
                        wrong.lock().unwrap().extend(found);
                    }
                    quiet.wait();
                }
            });
        }
    });
    assert_eq!(*wrong.lock().unwrap(), [""; 0], "round {round}");
    returned.fetch_add(timer.shutdown().len(), Ordering::SeqCst);
    // A body that began before the end may still run, or may not be counted yet.
    let metrics = settled(timer, |metrics| metrics.pending == 0);
    while (tally.ran.load(Ordering::SeqCst) as u64) < metrics.fired {
        std::thread::yield_now();
    }
    assert_eq!(metrics.pending, 0, "round {round}");
    let ended = tally.ran.load(Ordering::SeqCst)
        + tally.cancelled.load(Ordering::SeqCst)
        + returned.load(Ordering::SeqCst);
    assert_eq!(tally.accepted.load(Ordering::SeqCst), ended, "round {round}");
    assert_eq!(tally.twice.load(Ordering::SeqCst), 0, "round {round}: a body ran twice");
}

fn act(
    timer: &Timer,
    manual: Option<&ManualClock>,
    tally: &Arc<Tally>,
    handles: &Mutex<Vec<Timeout>>,
    dice: &mut Dice,
) {
    let delay = Duration::from_micros(dice.below(4_000));
    let pick = |dice: &mut Dice| {
        let handles = handles.lock().unwrap();
        let index = dice.below(handles.len().max(1) as u64) as usize;
        handles.get(index).cloned()
    };
    match dice.below(8) {
        0..=3 => {
            let runs = AtomicU8::new(0);
            let counted = Arc::clone(tally);
            let body = move || {
                let before = runs.fetch_add(1, Ordering::SeqCst);
                counted.twice.fetch_add(usize::from(before), Ordering::SeqCst);
                counted.ran.fetch_add(1, Ordering::SeqCst);
            };
            if let Ok(timeout) = timer.schedule(delay, body) {
                tally.accepted.fetch_add(1, Ordering::SeqCst);
                handles.lock().unwrap().push(timeout);
            }
        }
        4 | 5 => {
            if pick(dice).is_some_and(|timeout| timeout.cancel()) {
                tally.cancelled.fetch_add(1, Ordering::SeqCst);
            }
        }
        6 => {
            if let Some(timeout) = pick(dice) {
                timeout.reschedule(delay);
            }
        }
        _ => {
            if let Some(manual) = manual {
                manual.advance(Duration::from_micros(dice.below(500)));
            }
        }
    }
}

/// The counters of a timer, as soon as `right` is true for them. If that takes longer than a hang, the counters of that moment.
fn settled(timer: &Timer, right: impl Fn(&Metrics) -> bool) -> Metrics {
    let clock = SystemClock::new();
    let end = clock.now().saturating_add(tickwheel_testing::HANG_TIME);
    loop {
        let metrics = timer.metrics();
        if right(&metrics) || clock.now() > end {
            return metrics;
        }
        std::thread::yield_now();
    }
}

/// Differences between the counters and the results that the threads and the handles saw.
fn check(timer: &Timer, tally: &Tally, handles: &Mutex<Vec<Timeout>>, returned: usize) -> Vec<String> {
    let handles = handles.lock().unwrap();
    let scan = || handles.iter().filter(|timeout| timeout.state() == TimeoutState::Pending).count() as u64;
    let (before, ran) = (scan(), tally.ran.load(Ordering::SeqCst));
    let metrics = settled(timer, |metrics| metrics.pending <= before);
    let after = scan();
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, law: &str| {
        if !holds {
            wrong.push(format!("{law}: {metrics:?}, {before} and {after} handles are pending"));
        }
    };
    expect(after <= metrics.pending && metrics.pending <= before, "pending is what the handles say");
    expect(metrics.accepted as usize == tally.accepted.load(Ordering::SeqCst), "accepted");
    expect(metrics.cancelled as usize == tally.cancelled.load(Ordering::SeqCst), "cancelled");
    expect(metrics.returned as usize == returned, "returned");
    expect(metrics.fired as usize >= ran, "fired");
    wrong
}

/// Many threads have handles of one task. Of all threads that cancel it, and of the body, exactly one wins.
#[test]
fn t16_of_many_who_cancel_one_is_told_yes() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    for round in 0..2_000 {
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let timeout = timer
            .schedule(ms(1), move || {
                counted.fetch_add(1, Ordering::SeqCst);
            })
            .unwrap();
        let said: usize = std::thread::scope(|scope| {
            let cancels: Vec<_> = (0..3).map(|_| scope.spawn(|| usize::from(timeout.cancel()))).collect();
            clock.advance(ms(1));
            cancels.into_iter().map(|cancel| cancel.join().unwrap()).sum()
        });
        while timeout.state() == TimeoutState::Firing || said == 0 && ran.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(said + ran.load(Ordering::SeqCst), 1, "round {round}");
    }
}
