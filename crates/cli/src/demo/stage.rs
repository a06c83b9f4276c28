//! Runs the demo from beginning to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;
use tickwheel_client::blocking::Client;
use tickwheel_server::PORT_DEFAULT;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::ledger::Ledger;
use super::place::Place;
use super::plan::{CLOSE_AFTER, MINUTE, OPEN_FOR, ORDERS, orders};
use super::report;
use super::server::{Outage, Server, listen_near};
use super::shop;
use super::verdict::Verdict;
use super::workers;
use crate::output::say;

/// The number of clients that place and pay orders.
const CLIENTS: usize = 8;
const WORKERS: usize = 4;
/// The time of the kill, counted from the opening of the shop: orders are being placed, paid and closed then.
const KILL_AT: Duration = Duration::from_millis(4_500);
/// The longest wait for a moment at which calls are under way. The server is killed at such a moment, or after this wait.
const KILL_PATIENCE: Duration = Duration::from_millis(200);
/// The time of the last planned event, counted from the opening of the shop: the last order, its close, and a late payment for it.
const PLAN: Duration = Duration::from_millis(10_200);
/// The end of the demo, counted from the opening of the shop. The demo ends then even if an event is missing. The rest of the 20 s is
/// for the start and the report.
const END: Duration = Duration::from_millis(17_000);
/// The interval at which the stage checks the progress.
const LOOK: Duration = Duration::from_millis(20);

/// The longest time between a signal and its notice.
const SIGNAL_TIME_MAX: Duration = Duration::from_millis(500);

/// Runs the shop, kills its server, and reports the fate of the orders. True if every promise was kept. With `watch` the server stays until
/// a signal comes. `postgres`: the URL of a PostgreSQL that keeps the tasks.
///
/// # Errors
/// The server does not start or ends by itself, or a signal such as Ctrl-C came. In these cases, too, the server, the directory and the
/// database are removed.
pub(crate) fn play(watch: bool, postgres: Option<&str>) -> Result<bool> {
    let began = Instant::now();
    let stop = stop_on_signals()?;
    let root = TempDir::with_prefix("tickwheel-demo-").context("make a temporary directory")?;
    let listen = if watch { listen_near(PORT_DEFAULT) } else { "127.0.0.1:0".to_owned() };
    // The server is dropped first, because it uses the place.
    let place = Place::make(postgres)?;
    let mut server = Server::start(&place, root.path(), &listen)?;
    say(&format!(
        "A server runs on {}. The shop opens: {ORDERS} orders, closed after 30 minutes unless paid; a minute is {} ms.",
        server.address(),
        MINUTE.as_millis()
    ));
    if let Some(text) = place.introduction() {
        say(&text);
    }
    say(&format!("Watch it in a browser: {}", server.console()));

    let ledger = Arc::new(Ledger::new(ORDERS, place.clock()));
    let name = place.name();
    let opening = Instant::now();
    let clients = cast(&server, opening, &ledger)?;
    let progress = Progress::new();
    let mut outage = None;
    loop {
        thread::sleep(LOOK);
        if stop.load(Ordering::Relaxed) {
            ledger.end();
            progress.finish();
            drop(server);
            place.remove()?;
            bail!("interrupted; the server and its {name} are gone");
        }
        if let Some(status) = server.ended()? {
            bail!("the server ended by itself ({status}): {}", server.last_words());
        }
        if outage.is_none() && opening.elapsed() >= KILL_AT {
            let in_flight = moment_with_calls(&ledger);
            progress.say(&format!("Killing the server with SIGKILL, {in_flight} calls under way..."));
            let (next, made) = Outage::make(server, &place, root.path(), &ledger, in_flight)?;
            server = next;
            progress
                .say(&format!("A new one is ready on the same {name} after {} ms.", made.lasted.as_millis()));
            outage = Some(made);
        }
        progress.show(opening, &ledger);
        if is_over(opening, &clients, &ledger) {
            break;
        }
    }
    ledger.end();
    progress.finish();
    let outage = outage.context("the play ended before the kill; this is a mistake of tickwheel")?;
    let verdict = Verdict::of(&ledger.pages(), &outage);
    let account = || report::print(&verdict, &outage, began.elapsed().as_secs_f64());
    if watch {
        account()?;
        stay(&mut server, name, &stop)?;
    }
    drop(server);
    place.remove()?;
    root.close().context("remove the temporary directory")?;
    if !watch {
        account()?;
    }
    Ok(verdict.is_clean())
}

/// Keeps the server until a signal comes.
///
/// # Errors
/// The server ended by itself.
fn stay(server: &mut Server, place: &str, stop: &AtomicBool) -> Result<()> {
    say(&format!(
        "The server stays. Open {} in a browser. Ctrl-C ends the server and removes its {place}.",
        server.console()
    ));
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        // Ctrl-C in a terminal reaches the server, too, which may end before this process has noticed the signal.
        if let Some(status) = server.ended()? {
            thread::sleep(SIGNAL_TIME_MAX);
            if !stop.load(Ordering::Relaxed) {
                bail!("the server ended by itself ({status}): {}", server.last_words());
            }
        }
    }
    Ok(())
}

/// Starts clients and workers. The returned threads end when their orders are settled.
fn cast(server: &Server, opening: Instant, ledger: &Arc<Ledger>) -> Result<Vec<JoinHandle<()>>> {
    let client = Client::new(&server.url())?;
    for _ in 0..WORKERS {
        let (client, ledger) = (client.clone(), Arc::clone(ledger));
        thread::spawn(move || workers::run(&client, &ledger));
    }
    let orders = orders();
    let clients = (0..CLIENTS).map(|index| {
        let (client, ledger) = (client.clone(), Arc::clone(ledger));
        let orders: Vec<_> = orders.iter().copied().skip(index).step_by(CLIENTS).collect();
        thread::spawn(move || shop::run(&client, &orders, opening, &ledger))
    });
    Ok(clients.collect())
}

/// Waits until calls are under way, at most [`KILL_PATIENCE`], and returns their number.
fn moment_with_calls(ledger: &Ledger) -> usize {
    let waited = Instant::now();
    while ledger.in_flight() == 0 && waited.elapsed() < KILL_PATIENCE {
        thread::yield_now();
    }
    ledger.in_flight()
}

fn is_over(opening: Instant, clients: &[JoinHandle<()>], ledger: &Ledger) -> bool {
    // A cancelled or acked task must not come again. The workers stay for a while after the last order, so that they would notice it.
    let settled = || clients.iter().all(JoinHandle::is_finished) && ledger.counts().open == 0;
    opening.elapsed() >= END || (opening.elapsed() >= OPEN_FOR + CLOSE_AFTER + 2 * MINUTE && settled())
}

/// The flag that Ctrl-C and SIGTERM set.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().context("listen for signals")?;
    let listen = async || {
        Ok::<_, std::io::Error>((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    };
    let (mut interrupt, mut terminate) = runtime.block_on(listen()).context("listen for signals")?;
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        flag.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

/// A progress bar on a terminal, and a line each second elsewhere. Progress goes to stderr, because only the account is data.
struct Progress {
    bar: ProgressBar,
    last_line: std::cell::Cell<u64>,
}

impl Progress {
    fn new() -> Self {
        let bar = ProgressBar::new(u64::try_from(PLAN.as_millis()).expect("seconds"));
        let style = ProgressStyle::with_template("[{bar:40}] {msg}").expect("the template is ours");
        bar.set_style(style.progress_chars("=> "));
        Self { bar, last_line: std::cell::Cell::new(0) }
    }

    fn show(&self, opening: Instant, ledger: &Ledger) {
        let elapsed = opening.elapsed();
        let counts = ledger.counts();
        let minute = elapsed.as_millis() / MINUTE.as_millis();
        let text = format!(
            "shop minute {minute}: {} placed, {} paid in time, {} closed",
            counts.placed, counts.paid, counts.closed
        );
        if !self.bar.is_hidden() {
            self.bar.set_position(u64::try_from(elapsed.min(PLAN).as_millis()).expect("seconds"));
            self.bar.set_message(text);
        } else if elapsed.as_secs() > self.last_line.replace(elapsed.as_secs()) {
            say(&text);
        }
    }

    fn say(&self, text: &str) {
        if self.bar.is_hidden() { say(text) } else { self.bar.println(text) }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
