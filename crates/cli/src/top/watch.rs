//! A watch: asks a server for its state, draws it, and handles keys.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::isatty;
use tickwheel_api::duration;
use tickwheel_client::blocking::Client;

use super::clock::{Clock, SystemClock};
use super::events::{Event, Signals, look_repeatedly, read_keys};
use super::look::Seen;
use super::order::Order;
use super::page::{Content, Size, picture, text};
use super::terminal::Terminal;
use super::view::{Step, View};
use crate::output::STDOUT;

/// The settings of a watch.
pub(crate) struct Plan {
    pub(crate) client: Client,
    /// The time between two requests to the server (ms).
    pub(crate) every_ms: u64,
    pub(crate) order: Order,
    /// End after this number of pictures with rates.
    pub(crate) times: Option<u64>,
}

impl Plan {
    fn every(&self) -> Duration {
        Duration::from_millis(self.every_ms)
    }
}

/// The time that a request may take before the figures count as old: 2 s. The client waits for 30 s before it gives a request up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches until a key, a signal or the plan ends it. Stdout is a terminal; if stdin is one too, keys are read.
///
/// # Errors
/// There is no server at the start, or the terminal is gone.
pub(crate) fn watch(plan: Plan) -> Result<ExitCode> {
    // The first request is made before the terminal is taken, so that an unreachable server is reported on the usual screen.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let first = Seen::look(&plan.client, &*clock)?;
    let (sender, events) = channel();
    look_repeatedly(plan.client.clone(), plan.every(), Arc::clone(&clock), sender.clone());
    let (terminal, has_keys) = take_terminal(sender).context("take the terminal")?;
    let mut watch = Watch::new(plan, first, clock, terminal, has_keys);
    match watch.run(&events)? {
        End::Asked(code) => Ok(code),
        End::Counted => watch.print_last().map(|()| ExitCode::SUCCESS),
    }
}

/// Takes the terminal, and its keys if stdin is a terminal.
fn take_terminal(events: Sender<Event>) -> io::Result<(Arc<Terminal>, bool)> {
    let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned();
    let output = copy(&io::stdout())?;
    if !isatty(io::stdin()) {
        return Ok((Arc::new(Terminal::take(None, output)?), false));
    }
    // Signals are taken before the terminal: a signal between the two steps would end the process without restoring the terminal.
    let signals = Signals::take()?;
    let (input, keys): (OwnedFd, OwnedFd) = (copy(&io::stdin())?, copy(&io::stdin())?);
    let terminal = Arc::new(Terminal::take(Some(input), output)?);
    terminal.give_back_in_a_panic();
    signals.tell(Arc::clone(&terminal), events.clone());
    read_keys(keys, events);
    Ok((terminal, true))
}

/// The reason why a watch ended.
enum End {
    /// A key or a signal ended it, with this exit code.
    Asked(ExitCode),
    /// The last picture of the plan was drawn.
    Counted,
}

struct Watch {
    plan: Plan,
    clock: Arc<dyn Clock>,
    terminal: Arc<Terminal>,
    has_keys: bool,
    view: View,
    /// The last state that the server answered with. Its queues are in the order of the view.
    seen: Seen,
    figures: Vec<String>,
    /// The error of the last request, if it failed.
    error: Option<String>,
    /// The number of pictures with rates that were drawn.
    count: u64,
}

impl Watch {
    fn new(plan: Plan, seen: Seen, clock: Arc<dyn Clock>, terminal: Arc<Terminal>, has_keys: bool) -> Self {
        let figures = match &seen.figures {
            Ok(figures) => figures.first_lines().to_vec(),
            Err(why) => vec![no_figures(why)],
        };
        let view = View::new(plan.order);
        let mut watch = Self { plan, clock, terminal, has_keys, view, seen, figures, error: None, count: 0 };
        watch.sort();
        watch
    }

    /// Draws until the watch ends, and restores the terminal also after an error. A drop would come too late, because the panic hook and
    /// the thread of the signals share the terminal until the process ends.
    fn run(&mut self, events: &Receiver<Event>) -> Result<End> {
        let end = self.draw().and_then(|()| match self.plan.times {
            Some(0) => Ok(End::Counted),
            _ => self.follow(events),
        });
        self.terminal.leave();
        end
    }

    /// Handles events one after the other, and draws once for all events that have arrived. While the server is silent it draws without
    /// events, too.
    fn follow(&mut self, events: &Receiver<Event>) -> Result<End> {
        loop {
            let mut next = match self.clock.next(events, self.grows_older_at()) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => bail!("every thread has ended"),
            };
            while let Some(event) = next {
                if let Some(end) = self.take(event)? {
                    return Ok(end);
                }
                next = events.try_recv().ok();
            }
            self.draw()?;
        }
    }

    fn take(&mut self, event: Event) -> Result<Option<End>> {
        match event {
            Event::Looked(newest) => match newest.take() {
                Some(Ok(seen)) => return self.looked(seen),
                // The watch goes on, because a person wants to see when the server answers again.
                Some(Err(error)) => self.error = Some(error.to_string()),
                None => {}
            },
            Event::Key(key) => {
                let extent = self.content(self.trouble().as_deref()).extent(self.size());
                match self.view.press(key, extent) {
                    Step::Draw => {}
                    Step::Sort => self.sort(),
                    Step::Clear => self.terminal.clear().context(STDOUT)?,
                    Step::Suspend => self.suspend()?,
                    Step::Leave => return Ok(Some(End::Asked(ExitCode::SUCCESS))),
                }
            }
            Event::Resized => self.terminal.clear().context(STDOUT)?,
            Event::Stopped(signal) => return Ok(Some(End::Asked(ExitCode::from(128 + signal)))),
            Event::Ended(what) => bail!("the thread that {what} has ended, or the terminal is gone"),
        }
        Ok(None)
    }

    fn looked(&mut self, seen: Seen) -> Result<Option<End>> {
        match (&seen.figures, seen.rates_since(&self.seen)) {
            (Ok(figures), Some(rates)) => self.figures = vec![rates.line(), figures.line(&rates)],
            (Ok(figures), None) => self.figures = figures.first_lines().to_vec(),
            (Err(why), _) => self.figures = vec![no_figures(why)],
        }
        (self.seen, self.error) = (seen, None);
        self.sort();
        self.count += 1;
        if self.plan.times.is_none_or(|times| self.count < times) {
            return Ok(None);
        }
        self.draw()?;
        Ok(Some(End::Counted))
    }

    fn sort(&mut self) {
        self.view.order.sort(&mut self.seen.queues);
    }

    /// Suspends the process as Ctrl-Z does by default, until a shell continues it. Without a shell that could continue it, the process goes
    /// on at once.
    fn suspend(&self) -> Result<()> {
        self.terminal.leave();
        kill_current_process_group(Signal::TSTP).context("suspend")?;
        self.terminal.enter().context(STDOUT)
    }

    fn size(&self) -> Size {
        let mut size = self.terminal.size();
        if !self.has_keys {
            // One row stays free below the picture: the shell's prompt appears there.
            size.rows = size.rows.saturating_sub(1).max(1);
        }
        size
    }

    /// The time since the last answer.
    fn age(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.seen.at)
    }

    /// The age at which the figures count as old, if no request fails before.
    fn old_age(&self) -> Duration {
        self.plan.every() + PATIENCE
    }

    /// The instant at which a picture without new events is another: the figures are old, or the time since the last answer has one
    /// second more.
    fn grows_older_at(&self) -> Instant {
        let next_second = Duration::from_secs(self.age().as_secs() + 1);
        let age = if self.error.is_some() { next_second } else { next_second.max(self.old_age()) };
        self.seen.at + age
    }

    /// The text of the first line while the server does not answer.
    fn trouble(&self) -> Option<String> {
        let age = self.age();
        if self.error.is_none() && age < self.old_age() {
            return None;
        }
        let reason = self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        Some(format!(
            "no answer for {}, the figures are old{reason}",
            duration::format(age.as_secs() * 1_000)
        ))
    }

    fn content<'a>(&'a self, trouble: Option<&'a str>) -> Content<'a> {
        Content {
            server: self.plan.client.address(),
            every_ms: self.plan.every_ms,
            has_keys: self.has_keys,
            trouble,
            figures: &self.figures,
            queues: &self.seen.queues,
        }
    }

    fn draw(&self) -> Result<()> {
        let (size, trouble) = (self.size(), self.trouble());
        let lines = self.content(trouble.as_deref()).lines(&self.view, size);
        self.terminal.show(&picture(&lines, self.terminal.size(), trouble.is_some())).context(STDOUT)
    }

    /// Leaves the last picture on the usual screen.
    fn print_last(&self) -> Result<()> {
        if !self.has_keys {
            // The last picture is on the usual screen already.
            return Ok(());
        }
        let size = self.size();
        let content = Content { has_keys: false, ..self.content(None) };
        let lines = content.lines(&View::new(self.view.order), size);
        io::stdout().lock().write_all(text(&lines, size.columns).as_bytes()).context(STDOUT)
    }
}

fn no_figures(why: &str) -> String {
    format!("no figures: {why}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::net::TcpListener;
    use std::sync::Mutex;

    use rustix::termios::tcgetattr;

    use super::*;
    use crate::top::order::Column;
    use crate::top::terminal::pseudo_terminal;

    type Script = Box<dyn FnMut(&Receiver<Event>) -> Step + Send>;

    /// A clock that runs on only if the script of the test says so.
    struct TestClock {
        now: Mutex<Instant>,
        script: Mutex<Script>,
    }

    /// The next step of the clock.
    enum Step {
        /// No event comes, and the time is the one that was waited for.
        Passes,
        Comes(Event),
    }

    impl Clock for TestClock {
        fn now(&self) -> Instant {
            *self.now.lock().expect("no panic")
        }

        fn next(&self, events: &Receiver<Event>, until: Instant) -> Result<Event, RecvTimeoutError> {
            match (self.script.lock().expect("no panic"))(events) {
                Step::Comes(event) => Ok(event),
                Step::Passes => {
                    *self.now.lock().expect("no panic") = until;
                    Err(RecvTimeoutError::Timeout)
                }
            }
        }
    }

    /// A server that answers a look at once, and each later look only after a message: it accepts the request and stays silent.
    fn silent_server() -> (String, Sender<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            let mut looks = 0;
            for caller in listener.incoming() {
                let mut caller = caller.expect("a connection");
                let mut lines = BufReader::new(caller.try_clone().expect("a copy")).lines();
                let is_metrics = lines.next().expect("a request").expect("UTF-8").contains("/metrics");
                while !lines.next().expect("its head").expect("UTF-8").is_empty() {}
                looks += u32::from(!is_metrics);
                if looks > 1 && !is_metrics && answers.recv().is_err() {
                    return;
                }
                let body = if is_metrics { "" } else { r#"{"queues":[]}"# };
                let kind = if is_metrics { "text/plain" } else { "application/json" };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                // A client that left needs no answer.
                let _gone = caller.write_all(format!("{head}{body}").as_bytes());
            }
        });
        (url, answer)
    }

    #[test]
    fn a_server_that_accepts_and_stays_silent_is_told_with_its_time_until_it_answers() {
        let (url, answer) = silent_server();
        let (sender, events) = channel();
        let mut step = 0;
        let script = move |events: &Receiver<Event>| {
            step += 1;
            match step {
                1..=3 => Step::Passes,
                4 => {
                    answer.send(()).expect("the server is there");
                    Step::Comes(events.recv().expect("the answer"))
                }
                5 => Step::Passes,
                _ => Step::Comes(Event::Stopped(15)),
            }
        };
        let clock =
            Arc::new(TestClock { now: Mutex::new(Instant::now()), script: Mutex::new(Box::new(script)) });
        let client = Client::new(&url).expect("a URL");
        let order = Order { column: Column::Name, reversed: false };
        let plan = Plan { client, every_ms: 0, order, times: None };
        let first = Seen::look(&plan.client, &*clock).expect("an answer");
        look_repeatedly(plan.client.clone(), plan.every(), Arc::clone(&clock) as _, sender);
        let (mut screen, output) = io::pipe().expect("a pipe");
        let terminal = Arc::new(Terminal::take(None, output.into()).expect("a terminal"));
        let mut watch = Watch::new(plan, first, clock, terminal, false);
        assert!(matches!(watch.run(&events).expect("it draws"), End::Asked(_)));
        drop(watch);
        let mut shown = String::new();
        screen.read_to_string(&mut shown).expect("UTF-8");
        // The first words of each picture, and whether it has dim letters.
        let told: Vec<(&str, bool)> = shown
            .split("\x1b[H\x1b[K")
            .skip(1)
            .map(|picture| (picture.split(',').next().expect("a part"), picture.contains("\x1b[2m")))
            .collect();
        let now = format!("tickwheel at {}", url.trim_start_matches("http://"));
        let fresh = (now.as_str(), false);
        let [two, three, four] =
            ["no answer for 2s", "no answer for 3s", "no answer for 4s"].map(|words| (words, true));
        assert_eq!(told, [fresh, two, three, four, fresh, two], "{shown:?}");
    }

    #[test]
    fn the_terminal_is_given_back_when_nothing_can_be_drawn() {
        let (_screen, program) = pseudo_terminal();
        let settings = || format!("{:?}", tcgetattr(&program).expect("it is a terminal"));
        let before = settings();
        let (reader, output) = io::pipe().expect("a pipe");
        let input = program.try_clone().expect("a copy");
        let terminal = Arc::new(Terminal::take(Some(input), output.into()).expect("a terminal"));
        assert_ne!(settings(), before);
        let client = Client::new("http://127.0.0.1:1").expect("a URL");
        let order = Order { column: Column::Name, reversed: false };
        let plan = Plan { client, every_ms: 1_000, order, times: None };
        let seen =
            Seen { at: Instant::now(), queues: Vec::new(), figures: Err("none are wanted".to_owned()) };
        let mut watch = Watch::new(plan, seen, Arc::new(SystemClock), Arc::clone(&terminal), true);
        // From here on every write to the output fails.
        drop(reader);
        let (_sender, events) = channel();
        assert!(watch.run(&events).is_err(), "nothing was drawn");
        drop(watch);
        // This copy in the test stands for the copies of the panic hook and of the signals' thread.
        assert_eq!(settings(), before);
        drop(terminal);
    }
}
