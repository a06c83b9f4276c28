//! Time in async code.

use std::cell::RefCell;
use std::future::{Ready, pending, ready};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tickwheel::{
    BuildError, Interval, Job, Metrics, Missed, Monotonic, Operation, Purgatory, Refusal, Sleep, SleepError,
    SubmitError, Timeout, TimeoutError, Timer, Waiting,
};

use super::stage::{Stage, at_ms, ms};

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn poll<F: Future + Unpin>(future: &mut F, bell: &Arc<Bell>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(bell));
    Pin::new(future).poll(&mut Context::from_waker(&waker))
}

/// The result of a poll of a sleep that ended before its time.
fn refused<T>(why: Refusal) -> Poll<Result<T, Refusal>> {
    Poll::Ready(Err(why))
}

fn why<T>(polled: Poll<Result<T, SleepError>>) -> Poll<Result<T, Refusal>> {
    polled.map_err(|error| error.why)
}

#[test]
fn a_sleep_is_ready_at_its_deadline_and_wakes_whoever_polled_last() {
    let stage = Stage::new();
    let (first, last) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let mut sleep = stage.timer.sleep(ms(10));
    assert_eq!(stage.timer.pending(), 0, "it enters when it is polled");
    assert_eq!(poll(&mut sleep, &first), Poll::Pending);
    assert_eq!(poll(&mut sleep, &last), Poll::Pending);
    assert_eq!(stage.timer.pending(), 1);
    stage.advance(9);
    assert_eq!((last.rung(), poll(&mut sleep, &last)), (0, Poll::Pending));
    stage.advance(1);
    assert_eq!((first.rung(), last.rung()), (0, 1));
    assert_eq!(poll(&mut sleep, &last), Poll::Ready(Ok(())));
    assert_eq!(stage.timer.pending(), 0);
    // A late first poll is ready at once.
    let mut sleep = stage.timer.sleep(ms(10));
    stage.advance(10);
    assert_eq!(poll(&mut sleep, &first), Poll::Ready(Ok(())));
    // One that is dropped has left.
    let mut sleep = stage.timer.sleep(ms(10));
    assert_eq!(poll(&mut sleep, &first), Poll::Pending);
    drop(sleep);
    assert_eq!(stage.timer.pending(), 0);
    stage.advance(10);
    assert_eq!(first.rung(), 0);
}

#[test]
fn t7_a_sleep_that_is_moved_is_ready_at_its_last_deadline() {
    for (to, polled_before) in [(200, false), (200, true), (80, false), (80, true)] {
        let stage = Stage::new();
        let bell = Arc::new(Bell::default());
        let mut sleep = stage.timer.sleep(ms(100));
        if polled_before {
            assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
            stage.advance(1);
        }
        sleep.reset_at(at_ms(to));
        assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
        stage.advance(to - 1 - u64::from(polled_before));
        assert_eq!((bell.rung(), poll(&mut sleep, &bell)), (0, Poll::Pending), "to {to}");
        stage.advance(1);
        assert_eq!((bell.rung(), poll(&mut sleep, &bell)), (1, Poll::Ready(Ok(()))), "to {to}");
        // Armed again, after it was ready.
        sleep.reset(ms(50));
        assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
        stage.advance(49);
        assert_eq!(bell.rung(), 1);
        stage.advance(1);
        assert_eq!((bell.rung(), poll(&mut sleep, &bell)), (2, Poll::Ready(Ok(()))));
        // To the past, unpolled and pending.
        sleep.reset_at(at_ms(1));
        assert_eq!(poll(&mut sleep, &bell), Poll::Ready(Ok(())));
        sleep.reset(ms(50));
        assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
        sleep.reset_at(at_ms(1));
        assert_eq!(poll(&mut sleep, &bell), Poll::Ready(Ok(())));
    }
}

/// The story: a sleep that waits is moved to the past between two ticks, as at the end of a drain. It was pending until the next tick, which
/// may be an hour away, though its page says that it is ready at the next poll. A sleep that is not polled is still woken at that tick.
#[test]
fn t7_a_sleep_that_is_moved_to_the_past_between_two_ticks_is_ready_at_the_next_poll() {
    type Move = fn(&mut Sleep, Monotonic);
    let moves: [Move; 3] = [
        |sleep, now| sleep.reset_at(Monotonic::from_nanos(now.as_nanos() - 1)),
        |sleep, now| sleep.reset_at(now),
        |sleep, _| sleep.reset(Duration::ZERO),
    ];
    for (number, to_the_past) in moves.into_iter().enumerate() {
        for filed in [false, true] {
            let stage = Stage::starting_at(0, |builder| builder.tick(Duration::from_secs(3_600)));
            let bell = Arc::new(Bell::default());
            let now = stage.clock.advance(Duration::from_nanos(1_500_001));
            let mut sleep = stage.timer.sleep(Duration::from_secs(7_200));
            assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
            if filed {
                // The question for the next stop files what waits.
                stage.clock.advance_through(Duration::ZERO);
                assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
            }
            to_the_past(&mut sleep, now);
            assert_eq!(poll(&mut sleep, &bell), Poll::Ready(Ok(())), "move {number}, filed {filed}");
            assert_eq!((stage.timer.pending(), bell.rung()), (0, 0));
            // Armed again, moved, and not polled before its tick.
            sleep.reset(Duration::from_secs(7_200));
            assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
            to_the_past(&mut sleep, now);
            stage.clock.advance(Duration::from_secs(3_600));
            assert_eq!((bell.rung(), poll(&mut sleep, &bell)), (1, Poll::Ready(Ok(()))), "move {number}");
            // Armed again, moved to the past and away from it.
            sleep.reset(Duration::from_secs(7_200));
            assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
            to_the_past(&mut sleep, now);
            sleep.reset(Duration::from_secs(7_200));
            assert_eq!(poll(&mut sleep, &bell), Poll::Pending, "move {number}");
        }
    }
}

/// The story: the interval sleeps in the middle of a tick, and its next tick is moved to now.
#[test]
fn pt13_a_tick_that_is_moved_to_now_between_two_ticks_of_the_timer_is_ready() {
    type Reset = fn(&mut Interval, Monotonic);
    let resets: [Reset; 3] = [
        |interval, _| interval.reset_immediately(),
        |interval, _| interval.reset_after(Duration::ZERO),
        Interval::reset_at,
    ];
    for (number, reset) in resets.into_iter().enumerate() {
        let stage = Stage::new();
        let bell = Arc::new(Bell::default());
        let mut interval = stage.timer.interval(ms(300));
        assert_eq!(ready_ticks(&mut interval, &bell), [0]);
        let now = stage.clock.advance(Duration::from_nanos(1_500_001));
        assert_eq!(ready_ticks(&mut interval, &bell), []);
        reset(&mut interval, now);
        let waker = Waker::from(Arc::clone(&bell));
        let tick = interval.poll_tick(&mut Context::from_waker(&waker));
        assert_eq!(tick, Poll::Ready(Ok(now)), "reset {number}");
    }
}

/// A task that wakes itself at once, for ever, on one thread. The timer's driver is a separate thread.
#[test]
fn t11_a_busy_task_still_sees_its_sleep_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let timer = Timer::new().unwrap();
    let polls = runtime.block_on(async {
        let mut sleep = timer.sleep(Duration::from_secs(3_600));
        let mut polls = 0_u64;
        std::future::poll_fn(|context| {
            polls += 1;
            if polls == 1_000 {
                sleep.reset(ms(1));
            }
            context.waker().wake_by_ref();
            Pin::new(&mut sleep).poll(context)
        })
        .await
        .unwrap();
        polls
    });
    assert!(polls >= 1_000);
}

#[test]
fn t12_a_value_that_is_ready_in_time_or_with_the_deadline_wins() {
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    // The value and the limit are both ready at the first poll, long after the deadline.
    let mut both = pin!(stage.timer.timeout(ms(5), ready(7)));
    stage.advance(100);
    assert_eq!(poll(&mut both, &bell), Poll::Ready(Ok(7)));
    // The value and the limit become ready in the same step.
    let value: Mutex<Option<u32>> = Mutex::new(None);
    let waits = std::future::poll_fn(|_| match *value.lock().unwrap() {
        Some(value) => Poll::Ready(value),
        None => Poll::Pending,
    });
    let mut together = pin!(stage.timer.timeout(ms(5), waits));
    assert_eq!(poll(&mut together, &bell), Poll::Pending);
    *value.lock().unwrap() = Some(8);
    stage.advance(5);
    assert_eq!(poll(&mut together, &bell), Poll::Ready(Ok(8)));
    // No value.
    let mut never = pin!(stage.timer.timeout(ms(5), pending::<()>()));
    assert_eq!(poll(&mut never, &bell), Poll::Pending);
    stage.advance(4);
    assert_eq!(poll(&mut never, &bell), Poll::Pending);
    stage.advance(1);
    assert_eq!(poll(&mut never, &bell), Poll::Ready(Err(TimeoutError::Elapsed)));
    // The time is counted from the call, not from the first poll.
    let mut late = pin!(stage.timer.timeout(ms(5), pending::<()>()));
    stage.advance(5);
    assert_eq!(poll(&mut late, &bell), Poll::Ready(Err(TimeoutError::Elapsed)));
    assert_eq!(stage.timer.pending(), 0);
}

#[test]
fn t13_the_longest_timeout_lasts_ten_years_and_more() {
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    let value: Arc<Mutex<Option<u32>>> = Arc::default();
    let given = Arc::clone(&value);
    let waits = std::future::poll_fn(move |_| match *given.lock().unwrap() {
        Some(value) => Poll::Ready(value),
        None => Poll::Pending,
    });
    let mut future = pin!(stage.timer.timeout(Duration::MAX, waits));
    for _ in 0..10 {
        assert_eq!(poll(&mut future, &bell), Poll::Pending);
        stage.clock.advance(Duration::from_secs(365 * 86_400));
    }
    assert_eq!((bell.rung(), poll(&mut future, &bell)), (0, Poll::Pending));
    *value.lock().unwrap() = Some(1);
    assert_eq!(poll(&mut future, &bell), Poll::Ready(Ok(1)));
}

/// A waker that drops a hundred sleeps of the same timer, some of them due in this very turn, and moves another sleep to now.
#[test]
fn t14_a_wake_up_may_drop_and_move_sleeps() {
    struct Drops {
        sleeps: Mutex<Vec<Sleep>>,
        moved: Mutex<Option<Sleep>>,
    }
    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            let sleeps = std::mem::take(&mut *self.sleeps.lock().unwrap());
            drop(sleeps);
            if let Some(sleep) = &mut *self.moved.lock().unwrap() {
                sleep.reset(Duration::ZERO);
            }
        }
    }
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    let enter = |delay| {
        let mut sleep = stage.timer.sleep(ms(delay));
        assert_eq!(poll(&mut sleep, &bell), Poll::Pending);
        sleep
    };
    let drops = Arc::new(Drops {
        sleeps: Mutex::new((0..100).map(|number| enter(10 + number % 3)).collect()),
        moved: Mutex::new(Some(enter(50))),
    });
    let waker = Waker::from(Arc::clone(&drops));
    let mut first = stage.timer.sleep(ms(9));
    assert_eq!(Pin::new(&mut first).poll(&mut Context::from_waker(&waker)), Poll::Pending);
    assert_eq!(stage.timer.pending(), 102);
    stage.advance(20);
    stage.clock.advance(Duration::ZERO);
    let mut moved = drops.moved.lock().unwrap().take().unwrap();
    assert_eq!(poll(&mut moved, &bell), Poll::Ready(Ok(())));
    assert_eq!(stage.timer.pending(), 0);
}

#[test]
fn t29_whoever_waits_is_told_that_the_timer_ended() {
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    let mut sleep = stage.timer.sleep(ms(10));
    let mut limit = pin!(stage.timer.timeout(ms(10), pending::<()>()));
    let mut interval = stage.timer.interval(ms(10));
    assert!(poll(&mut sleep, &bell).is_pending() && poll(&mut limit, &bell).is_pending());
    {
        let mut tick = pin!(interval.tick());
        assert_eq!(poll(&mut tick, &bell), Poll::Ready(Ok(at_ms(0))));
    }
    let mut tick = pin!(interval.tick());
    assert_eq!(poll(&mut tick, &bell), Poll::Pending);
    assert!(stage.timer.shutdown().is_empty(), "a sleep is no task");
    assert_eq!(bell.rung(), 3);
    assert_eq!(why(poll(&mut sleep, &bell)), refused(Refusal::ShutDown));
    assert_eq!(poll(&mut limit, &bell), Poll::Ready(Err(TimeoutError::Refused(Refusal::ShutDown))));
    assert_eq!(why(poll(&mut tick, &bell)), refused(Refusal::ShutDown));
    // A sleep that starts later is refused, too.
    assert_eq!(why(poll(&mut stage.timer.sleep(ms(1)), &bell)), refused(Refusal::ShutDown));
    assert_eq!(stage.timer.metrics().pending, 0);
}

#[test]
fn a_sleep_beyond_the_limit_is_refused() {
    let stage = Stage::with(|builder| builder.max_pending(1));
    let bell = Arc::new(Bell::default());
    let mut first = stage.timer.sleep(ms(10));
    assert_eq!(poll(&mut first, &bell), Poll::Pending);
    let mut second = stage.timer.sleep(ms(10));
    assert_eq!(why(poll(&mut second, &bell)), refused(Refusal::Full));
    drop(first);
    assert_eq!(poll(&mut second, &bell), Poll::Pending);
}

/// Polls the interval every ms, except during a stall from 301 to 950. Returns when it got each tick.
fn ticks(missed: Missed) -> Vec<(u64, u64)> {
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    let mut interval = stage.timer.interval(ms(300)).missed(missed);
    let got = RefCell::new(Vec::new());
    let mut ask = || {
        let waker = Waker::from(Arc::clone(&bell));
        let mut context = Context::from_waker(&waker);
        while let Poll::Ready(tick) = interval.poll_tick(&mut context) {
            let now = stage.timer.now().as_nanos() / 1_000_000;
            got.borrow_mut().push((now, tick.unwrap().as_nanos() / 1_000_000));
        }
    };
    ask();
    for now in 1..=1_850 {
        stage.advance(1);
        if !(301..950).contains(&now) {
            ask();
        }
    }
    got.into_inner()
}

#[test]
fn pt4_the_first_tick_is_at_once() {
    assert_eq!(ticks(Missed::Skip)[0], (0, 0));
}

#[test]
fn pt5_an_interval_bursts() {
    let expected =
        [(0, 0), (300, 300), (950, 600), (950, 900), (1_200, 1_200), (1_500, 1_500), (1_800, 1_800)];
    assert_eq!(ticks(Missed::Burst), expected);
}

#[test]
fn pt6_an_interval_delays() {
    let expected = [(0, 0), (300, 300), (950, 600), (1_250, 1_250), (1_550, 1_550), (1_850, 1_850)];
    assert_eq!(ticks(Missed::Delay), expected);
}

#[test]
fn pt7_an_interval_skips() {
    let expected = [(0, 0), (300, 300), (950, 600), (1_200, 1_200), (1_500, 1_500), (1_800, 1_800)];
    assert_eq!(ticks(Missed::Skip), expected);
}

/// The ticks that are there now.
fn ready_ticks(interval: &mut Interval, bell: &Arc<Bell>) -> Vec<u64> {
    let waker = Waker::from(Arc::clone(bell));
    let mut context = Context::from_waker(&waker);
    let mut ticks = Vec::new();
    while let Poll::Ready(tick) = interval.poll_tick(&mut context) {
        ticks.push(tick.unwrap().as_nanos() / 1_000_000);
    }
    ticks
}

/// The story: as for a task, an interval of 1 ns.
#[test]
fn pt16_an_interval_below_the_tick_ticks_once_in_a_tick() {
    for missed in [Missed::Burst, Missed::Delay, Missed::Skip] {
        let stage = Stage::new();
        let bell = Arc::new(Bell::default());
        let mut interval = stage.timer.interval(Duration::from_nanos(1)).missed(missed);
        assert_eq!(ready_ticks(&mut interval, &bell), [0]);
        for tick in 1..10 {
            stage.clock.advance(Duration::from_micros(500));
            assert_eq!(ready_ticks(&mut interval, &bell), []);
            stage.clock.advance(Duration::from_micros(500));
            assert_eq!(ready_ticks(&mut interval, &bell), [tick], "{missed:?}");
        }
    }
}

#[test]
fn pt13_a_reset_moves_the_next_tick_and_the_grid_with_it() {
    type Reset = fn(&mut Interval);
    let resets: [(Reset, u64); 6] = [
        (Interval::reset, 450),
        (Interval::reset_immediately, 150),
        (|interval| interval.reset_after(ms(20)), 170),
        (|interval| interval.reset_after(Duration::ZERO), 150),
        (|interval| interval.reset_at(at_ms(1_000)), 1_000),
        (|interval| interval.reset_at(at_ms(200)), 200),
    ];
    for (number, (reset, next)) in resets.into_iter().enumerate() {
        let stage = Stage::new();
        let bell = Arc::new(Bell::default());
        let mut interval = stage.timer.interval(ms(300));
        assert_eq!(ready_ticks(&mut interval, &bell), [0]);
        stage.advance(150);
        // The interval waits for the tick of 300, and is moved meanwhile.
        assert_eq!(ready_ticks(&mut interval, &bell), []);
        reset(&mut interval);
        stage.advance(0);
        let mut got = ready_ticks(&mut interval, &bell);
        for _ in 150..next + 300 {
            stage.advance(1);
            got.extend(ready_ticks(&mut interval, &bell));
        }
        assert_eq!(got, [next, next + 300], "reset {number}");
        assert!(bell.rung() > 0, "reset {number}");
    }
}

#[test]
fn pt13_a_reset_leaves_out_a_tick_that_nobody_asked_for() {
    let stage = Stage::new();
    let bell = Arc::new(Bell::default());
    let mut interval = stage.timer.interval(ms(300)).missed(Missed::Burst);
    assert_eq!(ready_ticks(&mut interval, &bell), [0]);
    stage.advance(700);
    interval.reset();
    assert_eq!(ready_ticks(&mut interval, &bell), []);
    stage.advance(300);
    assert_eq!(ready_ticks(&mut interval, &bell), [1_000]);
}

#[test]
fn pt13_after_a_reset_into_the_past_the_policy_decides() {
    let after = |missed| {
        let stage = Stage::starting_at(950, |builder| builder);
        let bell = Arc::new(Bell::default());
        let mut interval = stage.timer.interval(ms(300)).missed(missed);
        interval.reset_at(at_ms(0));
        let at_once = ready_ticks(&mut interval, &bell);
        stage.advance(300);
        (at_once, ready_ticks(&mut interval, &bell))
    };
    assert_eq!(after(Missed::Burst), (vec![0, 300, 600, 900], vec![1_200]));
    assert_eq!(after(Missed::Delay), (vec![0], vec![1_250]));
    assert_eq!(after(Missed::Skip), (vec![0], vec![1_200]));
}

#[test]
#[should_panic(expected = "no next tick")]
fn pt1_an_interval_of_zero_is_a_mistake() {
    let _ = Stage::new().timer.interval(Duration::ZERO);
}

#[test]
fn a_future_that_is_ready_needs_no_timer() {
    let stage = Stage::new();
    let _ = stage.timer.shutdown();
    let bell = Arc::new(Bell::default());
    let future: Ready<u32> = ready(3);
    assert_eq!(poll(&mut pin!(stage.timer.timeout(ms(1), future)), &bell), Poll::Ready(Ok(3)));
}

/// Many sleeps at once, on a runtime of several threads and the system's clock.
#[test]
fn sleeps_work_on_a_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let timer = Timer::new().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..200_u64)
            .map(|number| {
                let timer = timer.clone();
                tokio::spawn(async move {
                    let begun = timer.now();
                    let delay = Duration::from_micros(number * 37);
                    timer.sleep(delay).await.unwrap();
                    timer.now().saturating_since(begun) >= delay
                })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap(), "a sleep ended early");
        }
    });
    assert_eq!(timer.pending(), 0);
}

/// Polls a sleep when it is woken, and leaves a waker in it. That waker ends its timer when it is dropped.
struct PollsAtOnce {
    sleep: Mutex<Option<Sleep>>,
    nosy: Mutex<Option<Waker>>,
}

impl Wake for PollsAtOnce {
    fn wake(self: Arc<Self>) {
        let nosy = self.nosy.lock().unwrap().take().unwrap();
        let mut sleep = self.sleep.lock().unwrap().take().unwrap();
        assert_eq!(Pin::new(&mut sleep).poll(&mut Context::from_waker(&nosy)), Poll::Ready(Ok(())));
    }
}

/// The drop of a waker is user code and may end the timer, so it must not happen in the middle of a turn. In this test, the last
/// reference to a ready sleep is a second entry, which the next turn looks at.
#[test]
fn t14_a_sleep_that_was_ready_keeps_no_waker() {
    struct Ends(Timer, mpsc::Sender<()>);
    impl Wake for Ends {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Ends {
        fn drop(&mut self) {
            drop(self.0.shutdown());
            let _ = self.1.send(());
        }
    }
    let timer = Timer::new().unwrap();
    let hour = Duration::from_secs(3_600);
    // The driver has filed this task when the other one runs. After that it leaves later tasks in their inbox.
    timer.schedule(hour, || ()).unwrap();
    let (filed, files) = mpsc::channel();
    timer.schedule(Duration::ZERO, move || filed.send(()).unwrap()).unwrap();
    files.recv().unwrap();
    let (sender, receiver) = mpsc::channel();
    let polls = Arc::new(PollsAtOnce {
        sleep: Mutex::new(Some(timer.sleep(2 * hour))),
        nosy: Mutex::new(Some(Waker::from(Arc::new(Ends(timer.clone(), sender))))),
    });
    let waker = Waker::from(Arc::clone(&polls));
    let with = |act: &dyn Fn(&mut Sleep)| act(polls.sleep.lock().unwrap().as_mut().unwrap());
    with(&|sleep| assert!(Pin::new(sleep).poll(&mut Context::from_waker(&waker)).is_pending()));
    // The test schedules more tasks than the driver files in one turn, and then the sleep once more.
    for _ in 0..4_100 {
        timer.schedule(2 * hour, || ()).unwrap();
    }
    with(&|sleep| sleep.reset_at(Monotonic::ZERO));
    receiver.recv_timeout(tickwheel_testing::HANG_TIME).expect("it does not wait for itself");
}

/// Handles, futures and errors may be sent to other threads.
#[test]
fn what_a_timer_gives_out_may_go_to_another_thread() {
    fn shared<T: Send + Sync + 'static>() {}
    fn sent<T: Send>(_: T) {}
    shared::<Timer>();
    shared::<Timeout>();
    shared::<Sleep>();
    shared::<Interval>();
    shared::<Job>();
    shared::<Metrics>();
    shared::<BuildError>();
    shared::<Purgatory<String, Nothing>>();
    shared::<Waiting<Nothing>>();
    shared::<SubmitError<Nothing>>();
    let stage = Stage::new();
    sent(stage.timer.timeout(ms(1), ready(1)));
    sent(stage.timer.interval(ms(1)).tick());
    sent(stage.timer.shutdown());
}

struct Nothing;

impl Operation for Nothing {
    fn try_complete(&self) -> bool {
        false
    }
    fn on_complete(&self) {}
}
