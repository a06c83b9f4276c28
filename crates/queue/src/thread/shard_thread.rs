//! [`ShardThread`]: the thread that drives some shards of a queue, one turn after the other.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use tickwheel_engine::{Input, NextWake, Unavailable};
use tickwheel_store::QueueStore;

use super::advance::{Advance, AdvanceError, Next};
use super::driver::Driver;
use super::mailbox::Message;
use crate::clock::time::Time;

/// The name of the threads that own the engines. A panic of the engine or the store ends the shards of the thread: calls
/// under way are answered with [`Indeterminate`](Unavailable::Indeterminate), later calls with [`Closed`](Unavailable::Closed). A server should
/// then end its whole process.
///
/// The thread runs code of the program, too: the listener to notices, and the wakers of those who await answers. A panic of such code is
/// caught, and [`Health::panicked`](crate::Health::panicked) counts it.
pub const SHARD_THREAD: &str = "tickwheel-shard";

/// Between two rounds of turns, the thread takes this many messages at most: enough for a full write batch. Tasks become ready and leases
/// end in each turn, so a flood of calls delays them by one round at most.
const MESSAGES_PER_ROUND: usize = 4_096;

/// Drives shards: waits for messages and for the next instant of a shard, and gives a turn to the shards that have something to do.
///
/// With a virtual clock, one thread drives all shards, because the clock moves on only while all shards are idle.
pub(crate) struct ShardThread<S> {
    drivers: Vec<Driver<S>>,
    time: Arc<Mutex<Time>>,
    inbox: Receiver<Message>,
    advance: Option<Advance>,
}

impl<S: QueueStore> ShardThread<S> {
    pub(crate) fn new(drivers: Vec<Driver<S>>, time: Arc<Mutex<Time>>, inbox: Receiver<Message>) -> Self {
        Self { drivers, time, inbox, advance: None }
    }

    /// Runs the shards until all of them have stopped. Called once, on a thread of its own.
    pub(crate) fn run(mut self) {
        wake_on_time();
        while !self.drivers.iter().all(Driver::is_over) {
            self.wait_for_messages();
            let now = Instant::now();
            for driver in &mut self.drivers {
                if driver.time_left(now).is_zero() && !driver.is_over() {
                    driver.turn();
                }
            }
            self.go_on_advancing();
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message);
        }
    }

    fn wait_for_messages(&mut self) {
        let now = Instant::now();
        let running = self.drivers.iter().filter(|driver| !driver.is_over());
        let first = running.map(|driver| driver.time_left(now)).min();
        let wait = first.filter(|_| !self.advance_can_go_on()).unwrap_or_default();
        let Ok(message) = self.inbox.recv_timeout(wait) else { return };
        self.take(message);
        for _ in 1..MESSAGES_PER_ROUND {
            let Ok(message) = self.inbox.try_recv() else { return };
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Call { place, call, command, wait, reply } => {
                self.drivers[place].call(call, command, wait, reply);
            }
            Message::Signal { place, signal } => {
                let driver = &mut self.drivers[place];
                driver.receive(signal);
                if driver.is_stopping()
                    && let Some(advance) = self.advance.take()
                {
                    advance.closed();
                }
            }
            Message::Advance(advance) => self.take_advance(advance),
        }
    }

    fn take_advance(&mut self, advance: Advance) {
        if self.drivers.iter().any(Driver::is_stopping) {
            advance.closed();
        } else if !self.drivers.iter().all(Driver::is_serving) {
            advance.refuse(AdvanceError::Unavailable(Unavailable::Unowned));
        } else if !self.lock_time().is_virtual() {
            advance.refuse(AdvanceError::NotVirtual);
        } else if self.advance.is_some() {
            advance.refuse(AdvanceError::Busy);
        } else {
            self.advance = Some(advance);
        }
    }

    fn advance_can_go_on(&self) -> bool {
        self.advance.is_some() && self.drivers.iter().all(Driver::is_idle)
    }

    /// Does the next step of a move of a virtual clock, if all shards are idle: moves the clock to the next wake of a shard, lets the engines
    /// write the time down, or tells the caller that the clock has arrived.
    fn go_on_advancing(&mut self) {
        if !self.advance_can_go_on() {
            return;
        }
        let Some(mut advance) = self.advance.take() else { return };
        let now = self.lock_time().now();
        let wake = self.drivers.iter().map(Driver::next_wake).fold(NextWake::default(), NextWake::earlier);
        let fired_total = self.drivers.iter().map(Driver::fired_total).sum();
        let input = match advance.next(now, wake, fired_total) {
            Next::Move(by) => {
                self.lock_time().advance(by);
                Input::Wake
            }
            Next::WriteDown => Input::NoteTime,
            // The answer runs the waker of the caller, so the time is not locked here: the waker may ask for the time.
            Next::Arrived => return advance.answer(Ok(now.wall)),
        };
        for driver in &mut self.drivers {
            driver.push(input.clone());
        }
        self.advance = Some(advance);
    }

    fn lock_time(&self) -> MutexGuard<'_, Time> {
        self.time.lock().expect("no thread panics while it holds the time")
    }
}

/// Lets this thread wake on time. By default the kernel may let a thread sleep 50 µs longer than it asked for, to wake several threads at
/// once. Callers wait for this thread, so it must not sleep longer.
fn wake_on_time() {
    // If the system refuses, the thread only wakes up to 50 µs later.
    #[cfg(target_os = "linux")]
    let _as_it_was = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
}
