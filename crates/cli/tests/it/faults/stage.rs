//! A directory with a server's home, and a history of all calls to its servers.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::faults::caller::{Caller, Leased};
use crate::faults::history::{History, Key};
use crate::faults::judge::Ledger;
use crate::faults::load::{LARGE, Load};
use crate::faults::needs::number;
use crate::faults::readback::read_back;
use crate::faults::server::{Home, Server};

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// A key of the first queue.
pub(crate) fn key(name: &str) -> Key {
    format!("0:{name}").into()
}

/// A home, with the calls to its servers.
pub(crate) struct Stage {
    directory: tempfile::TempDir,
    pub(crate) home: Home,
    pub(crate) history: History,
    pub(crate) ledger: Ledger,
    pub(crate) kept: Mutex<Vec<Leased>>,
    pub(crate) round: u64,
    /// The percentage of large calls.
    pub(crate) large: u64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::below(directory.path());
        let (history, ledger, kept) = (History::default(), Ledger::default(), Mutex::default());
        Self { directory, home, history, ledger, kept, round: 0, large: LARGE }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs load until the server takes no more or is gone, for at most `life`.
    pub(crate) fn load(&mut self, server: &Server, life: Duration) {
        self.round += 1;
        let stop = AtomicBool::new(false);
        let seed = number("TICKWHEEL_FAULT_SEED", 1);
        let load =
            Load { seed, round: self.round, large: self.large, live: &[], stop: &stop, kept: &self.kept };
        load.run(&Caller::new(&server.url, &self.history), |has_ended| {
            let begun = Instant::now();
            while begun.elapsed() < life && !has_ended() {
                thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
    }

    /// Checks that a new server without faults has everything, and kills it.
    pub(crate) fn restart_and_judge(&mut self, about: &str) {
        let server = self.home.start();
        self.judge(&server, about);
        server.kill();
        self.ledger.crash();
    }

    /// Checks that this server, which has just started, has everything.
    pub(crate) fn judge(&mut self, server: &Server, about: &str) {
        let caller = Caller::new(&server.url, &self.history);
        let kept = self.kept.get_mut().expect("no panic");
        let found = read_back(&caller, &mut self.ledger, self.history.take(), kept);
        assert!(found.broken.is_empty(), "{about}:\n{}", found.broken.join("\n"));
    }
}
