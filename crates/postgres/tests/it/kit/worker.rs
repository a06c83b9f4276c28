//! [`Work`]: calls without end, and a line for each answer.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwheel_queue::{
    Ack, Cancel, CancelError, Cancelled, Get, GetError, Lease, Queue, TokenAnswer, Unavailable,
};

use super::node::{key, name, node, put};
use super::process::say;
use super::random::Random;
use super::until::pause;

pub(super) const WORK: &str = "TICKWHEEL_TEST_WORK";
pub(super) const URL: &str = "TICKWHEEL_TEST_URL";
pub(super) const NAME: &str = "TICKWHEEL_TEST_NAME";

/// The work of a process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Puts, gets and leases. Lines: `answered BEGIN` (ns) for each call that was answered by the shard, and `waits REASON` if another
    /// process has it.
    Check,
    /// Puts, cancels, leases and acks. The lines are those of the [`Judge`](super::Judge).
    Load,
}

impl Work {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Load => "load",
        }
    }

    /// Does the work that the environment asks for, until the input ends. Without such a wish, nothing is done.
    #[allow(clippy::disallowed_methods, reason = "the settings come from the test that started this process")]
    pub(crate) fn run() {
        let set = |name: &str| std::env::var(name).expect("the test sets it");
        let Ok(work) = std::env::var(WORK) else { return };
        let own = set(NAME);
        let queue = node(&set(URL), &own);
        say("opened");
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            match work.as_str() {
                "check" => drop(scope.spawn(|| check(&queue, &own, &over))),
                "load" => {
                    for nth in 0..2 {
                        let (own, queue, over) = (format!("{own}-{nth}"), &queue, &over);
                        scope.spawn(move || fill(queue, &own, nth, over));
                    }
                    scope.spawn(|| deliver(&queue, &over));
                }
                other => panic!("{other} is no work"),
            }
            let _end = std::io::stdin().read(&mut [0]);
            over.store(true, Ordering::Relaxed);
        });
        queue.close();
        say("closed");
    }
}

/// The clock that all processes of this machine share (ns).
fn clock_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[allow(clippy::disallowed_methods, reason = "the database of the test has the clock of this machine")]
fn wall_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis()
}

/// Calls the shard with no more than a pause between the calls.
fn check(queue: &Queue, own: &str, over: &AtomicBool) {
    let day = Duration::from_secs(86_400);
    let mut waits = None;
    for n in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let begin = clock_ns();
        let is_answered = match n % 3 {
            0 => queue.put(put(own, day)).wait().is_ok(),
            1 => {
                let got = queue.get(Get::new(&name(), key(own))).wait();
                matches!(got, Ok(_) | Err(GetError::NotFound | GetError::Done))
            }
            _ => queue.lease(Lease::new(&name()), Duration::ZERO).wait().is_ok(),
        };
        if is_answered {
            say(&format!("answered {begin}"));
        } else {
            say("refused");
        }
        let now = queue.health().waits_for;
        if now != waits {
            say(&format!("waits {}", now.as_deref().unwrap_or("for nothing")));
            waits = now;
        }
        pause();
    }
}

/// Puts tasks that are due soon, and tasks that are due in a day and are cancelled at once.
fn fill(queue: &Queue, own: &str, seed: u64, over: &AtomicBool) {
    let mut random = Random::new(seed);
    for n in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("{own}-{n}");
        let is_far = random.below(4) == 0;
        let after =
            if is_far { Duration::from_secs(86_400) } else { Duration::from_millis(random.below(600)) };
        say(&format!("try {text}"));
        match queue.put(put(&text, after)).wait() {
            Ok(stored) => say(&format!("put {text} {}", stored.task.due_at.as_ms())),
            Err(error) => {
                say(&format!("unknown {text} {error}"));
                pause();
                continue;
            }
        }
        if !is_far {
            continue;
        }
        say(&format!("cancelling {text}"));
        match queue.cancel(Cancel::new(&name(), key(&text))).wait() {
            Ok(Cancelled::Cancelled | Cancelled::Revoked) => say(&format!("cancel {text} {}", clock_ns())),
            Err(CancelError::Unavailable(_)) => pause(),
            Err(error) => say(&format!("lost {text} {error}")),
        }
    }
}

/// Leases what is due and acks it.
fn deliver(queue: &Queue, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if drain(queue, Duration::from_millis(100)).is_err() {
            pause();
        }
    }
}

/// Leases and acks once. Returns how many tasks were leased.
pub(super) fn drain(queue: &Queue, wait: Duration) -> Result<usize, Unavailable> {
    let begin = clock_ns();
    let leased = queue.lease(Lease::new(&name()).max(50), wait).wait()?;
    for task in &leased {
        say(&format!("got {} {begin} {} {}", task.key.as_str(), task.due_at.as_ms(), wall_ms()));
    }
    if leased.is_empty() {
        return Ok(0);
    }
    let answers = queue.ack(Ack::new(&name(), leased.iter().map(|task| task.token))).wait()?;
    let end = clock_ns();
    for (task, answer) in leased.iter().zip(answers) {
        if answer == TokenAnswer::Acked {
            say(&format!("ack {} {end}", task.key.as_str()));
        }
    }
    Ok(leased.len())
}
