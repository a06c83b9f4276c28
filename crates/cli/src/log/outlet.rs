//! Writes the log to stderr in a thread of its own. If the reader of stderr stalls (for example, a pipe is full), only this thread
//! waits.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tickwheel_server::events;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::backlog::{Backlog, Batch, Importance, Lost};

/// The largest memory for lines that wait for the reader (bytes). The batch that is being written may take the same amount in addition.
pub(super) const WAITING_BYTES_MAX: usize = 1 << 20;

/// The state that logging threads share with the writing thread.
#[derive(Clone, Debug)]
pub(super) struct Outlet(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signals that there is something to write.
    came: Condvar,
    /// Signals that all is written.
    is_idle: Condvar,
}

#[derive(Debug)]
struct State {
    backlog: Backlog,
    is_writing: bool,
    writer: Option<ThreadId>,
}

impl State {
    fn is_idle(&self) -> bool {
        self.backlog.is_empty() && !self.is_writing
    }
}

impl Outlet {
    /// Starts the thread. At most `bytes_max` bytes wait for it.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(to: impl Write + Send + 'static, bytes_max: usize) -> io::Result<Self> {
        let state = State { backlog: Backlog::new(bytes_max), is_writing: false, writer: None };
        let shared = Shared { state: Mutex::new(state), came: Condvar::new(), is_idle: Condvar::new() };
        let outlet = Self(Arc::new(shared));
        let writes = outlet.clone();
        let _detached = thread::Builder::new().name("log".to_owned()).spawn(move || writes.write(to))?;
        Ok(outlet)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a text and does not wait.
    pub(super) fn push(&self, importance: Importance, text: Vec<u8>) {
        let mut state = self.state();
        if state.writer == Some(thread::current().id()) {
            // This line comes from the writing thread and reports lost lines, so it must not be left out.
            state.backlog.keep(importance, text);
        } else {
            state.backlog.push(importance, text);
        }
        drop(state);
        self.0.came.notify_one();
    }

    /// Waits until all lines are written, at most for `most`. True if all are written.
    pub(super) fn flush(&self, most: Duration) -> bool {
        let waited = self.0.is_idle.wait_timeout_while(self.state(), most, |state| !state.is_idle());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_idle()
    }

    /// Writes lines when they come, for ever.
    fn write(&self, mut to: impl Write) {
        self.state().writer = Some(thread::current().id());
        loop {
            let batch = self.next();
            let lost = match to.write_all(&batch.text).and_then(|()| to.flush()) {
                Ok(()) => batch.lost,
                // The next successful write reports the loss.
                Err(_) => {
                    let mut lost = batch.lost;
                    lost += batch.lines;
                    self.state().backlog.count_lost(lost);
                    Lost::default()
                }
            };
            tell(lost);
        }
    }

    /// Waits for lines to write.
    fn next(&self) -> Batch {
        let mut state = self.state();
        state.is_writing = false;
        while state.backlog.is_empty() {
            self.0.is_idle.notify_all();
            state = self.0.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_writing = true;
        state.backlog.take()
    }
}

/// Reports lines that were left out.
fn tell(lost: Lost) {
    if lost.is_none() {
        return;
    }
    let Lost { audit, others } = lost;
    if others > 0 {
        tracing::warn!(
            event = events::LINES_LOST,
            lines = others,
            "lines are missing here: stderr did not take them in time"
        );
    }
    if audit > 0 {
        tracing::warn!(target: events::AUDIT, event = events::LINES_LOST, lines = audit, "audit lines are missing here: stderr did not take them in time");
    }
}

/// Collects one line and hands it over.
#[derive(Debug)]
pub(super) struct Line {
    outlet: Outlet,
    importance: Importance,
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.outlet.push(self.importance, line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes lines printable, and hands them over.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) outlet: Outlet,
    pub(super) written: super::Written,
}

impl Lines {
    fn line(&self, importance: Importance) -> super::Log<Line> {
        super::Log { written: self.written, to: Line { outlet: self.outlet.clone(), importance } }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = super::Log<Line>;

    fn make_writer(&'a self) -> Self::Writer {
        self.line(Importance::Usual)
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        self.line(importance(metadata))
    }
}

fn importance(metadata: &Metadata<'_>) -> Importance {
    match metadata.target() {
        events::AUDIT => Importance::High,
        events::ACCESS => Importance::Low,
        _ if *metadata.level() > Level::INFO => Importance::Low,
        _ => Importance::Usual,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A time longer than any step of these tests.
    const LONG: Duration = Duration::from_secs(30);

    /// A reader that gets an order for each batch: take it, or fail. It waits for the order.
    struct Reader {
        is_here: Sender<String>,
        takes: Receiver<bool>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_here.send(String::from_utf8_lossy(bytes).into_owned()).map_err(io::Error::other)?;
            if self.takes.recv().map_err(io::Error::other)? {
                Ok(bytes.len())
            } else {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn outlet(bytes_max: usize) -> (Outlet, Receiver<String>, Sender<bool>) {
        let (is_here, came) = channel();
        let (take, takes) = channel();
        let outlet = Outlet::start(Reader { is_here, takes }, bytes_max).expect("a thread");
        (outlet, came, take)
    }

    #[test]
    fn a_reader_that_stands_still_holds_nobody_up() {
        let (outlet, came, take) = outlet(1_000);
        outlet.push(Importance::Usual, b"a\n".to_vec());
        assert_eq!(came.recv_timeout(LONG).as_deref(), Ok("a\n"));
        (0..1_000).for_each(|_| outlet.push(Importance::Low, b"call\n".to_vec()));
        outlet.push(Importance::High, b"act\n".to_vec());
        assert!(!outlet.flush(Duration::ZERO), "the end of the process does not wait for it either");
        take.send(true).expect("it waits");
        let rest = came.recv_timeout(LONG).expect("the rest");
        assert!(rest.ends_with("call\nact\n") && rest.len() < 1_000, "{rest}");
        take.send(true).expect("it waits");
        assert!(outlet.flush(LONG), "all is written");
    }

    #[test]
    fn failed_writes_are_counted_and_do_not_end_the_thread() {
        let (outlet, came, take) = outlet(1_000);
        outlet.push(Importance::High, b"a\n".to_vec());
        came.recv_timeout(LONG).expect("it is written");
        take.send(false).expect("it waits");
        assert!(outlet.flush(LONG));
        assert_eq!(outlet.state().backlog.take().lost, Lost { audit: 1, others: 0 });
        outlet.push(Importance::Usual, b"b\n".to_vec());
        assert_eq!(came.recv_timeout(LONG).as_deref(), Ok("b\n"));
    }
}
