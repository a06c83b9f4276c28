//! Events of a watch: keys, signals, and answers of the server. Each source has its own thread.

use std::io;
use std::os::fd::OwnedFd;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tickwheel_client::blocking::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::clock::Clock;
use super::key::{Decoder, Key};
use super::look::{Newest, Seen};
use super::terminal::Terminal;

/// An event of a watch.
pub(crate) enum Event {
    /// A request for the state of the server ended. The slot holds the newest result.
    Looked(Newest),
    /// A key was pressed.
    Key(Key),
    /// The screen changed its size.
    Resized,
    /// A signal with this number asks the program to end.
    Stopped(u8),
    /// The thread with this name ended, so it sends no more events.
    Ended(&'static str),
}

/// The time after an ESC within which the rest of its sequence must come: 50 ms. Terminals send the whole sequence at once, and a person
/// does not press two keys within this time.
const ESCAPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The time from a signal to the forced end of the process: 1 s. The drawing thread can block for ever on a terminal that takes no output.
const STOP_WAIT: Duration = Duration::from_secs(1);

/// Reports the end of a thread, even if it is a panic.
struct Ending(Sender<Event>, &'static str);

impl Drop for Ending {
    fn drop(&mut self) {
        let _nobody_waits = self.0.send(Event::Ended(self.1));
    }
}

/// Asks the server repeatedly. The first request comes after `every`.
pub(crate) fn look_repeatedly(client: Client, every: Duration, clock: Arc<dyn Clock>, events: Sender<Event>) {
    thread::spawn(move || {
        let _ending = Ending(events.clone(), "asks the server");
        let newest = Newest::default();
        loop {
            thread::sleep(every);
            if tell_look(Seen::look(&client, &*clock), &newest, &events).is_err() {
                return;
            }
        }
    });
}

/// Reports the result of a request. If several results come before the event is taken, they share one event.
fn tell_look(look: Result<Seen>, newest: &Newest, events: &Sender<Event>) -> Result<(), SendError<Event>> {
    if newest.put(look) { events.send(Event::Looked(newest.clone())) } else { Ok(()) }
}

/// Reads keys until the terminal is gone.
pub(crate) fn read_keys(input: OwnedFd, events: Sender<Event>) {
    thread::spawn(move || {
        let _ending = Ending(events.clone(), "reads keys");
        let mut decoder = Decoder::default();
        while let Ok(keys) = next_keys(&input, &mut decoder) {
            for key in keys {
                if events.send(Event::Key(key)).is_err() {
                    return;
                }
            }
        }
    });
}

/// Waits for keys. The result is empty if the wait was interrupted, or if only a part of an escape sequence came.
///
/// # Errors
/// The terminal is gone.
fn next_keys(input: &OwnedFd, decoder: &mut Decoder) -> Result<Vec<Key>, Errno> {
    let wait = decoder.is_open().then_some(&ESCAPE_WAIT);
    match poll(&mut [PollFd::new(input, PollFlags::IN)], wait) {
        Ok(0) => return Ok(decoder.end().into_iter().collect()),
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let mut bytes = [0; 256];
    match rustix::io::read(input, &mut bytes) {
        Ok(0) => Err(Errno::IO),
        Ok(count) => Ok(decoder.take(&bytes[..count])),
        Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The signals that concern a terminal.
pub(crate) struct Signals {
    runtime: Runtime,
    ends: Vec<(u8, Signal)>,
    resized: Signal,
}

impl Signals {
    /// Takes over the signals: from now on they do not end the process by themselves.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn take() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (ends, resized) = {
            let _inside = runtime.enter();
            // SIGHUP, SIGINT, SIGQUIT, SIGTERM: the numbers are the same on every system.
            let ends = [1_u8, 2, 3, 15]
                .map(|number| Ok((number, signal(SignalKind::from_raw(number.into()))?)))
                .into_iter()
                .collect::<io::Result<_>>()?;
            (ends, signal(SignalKind::window_change())?)
        };
        Ok(Self { runtime, ends, resized })
    }

    /// Reports the signals until the process ends. After a signal that asks for the end, the process ends within
    /// [`STOP_WAIT`] in any case.
    pub(crate) fn tell(self, terminal: Arc<Terminal>, events: Sender<Event>) {
        let Self { runtime, ends, mut resized } = self;
        thread::spawn(move || {
            let _ending = Ending(events.clone(), "waits for signals");
            runtime.block_on(async {
                for (number, mut signal) in ends {
                    let (terminal, events) = (Arc::clone(&terminal), events.clone());
                    tokio::spawn(async move {
                        signal.recv().await;
                        let _nobody_waits = events.send(Event::Stopped(number));
                        tokio::time::sleep(STOP_WAIT).await;
                        terminal.give_settings_back();
                        process::exit(128 + i32::from(number));
                    });
                }
                while resized.recv().await.is_some() {
                    if events.send(Event::Resized).is_err() {
                        return;
                    }
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_the_newest_look_waits_to_be_taken() {
        let (newest, (sender, events)) = (Newest::default(), channel());
        let tell = |figures: &str| {
            let seen = Seen { at: Instant::now(), queues: Vec::new(), figures: Err(figures.to_owned()) };
            tell_look(Ok(seen), &newest, &sender).expect("the test waits for it");
        };
        for (looks, last) in [(["1", "2", "3"], "3"), (["4", "5", "6"], "6")] {
            looks.into_iter().for_each(tell);
            let Ok(Event::Looked(taken)) = events.try_recv() else { panic!("no look was told") };
            let seen = taken.take().expect("a look").expect("an answer");
            assert_eq!(seen.figures.err().as_deref(), Some(last));
            assert!(taken.take().is_none() && events.try_recv().is_err(), "more than one was kept");
        }
    }
}
