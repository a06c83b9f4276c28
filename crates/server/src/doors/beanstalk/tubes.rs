//! The tubes that connections use, watch and wait for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickwheel_queue::{InUse, QueueName, Timestamp};

use crate::service::caller::Caller;

/// The numbers of connections that use, watch and wait for a tube.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Users {
    pub(super) using: u64,
    pub(super) watching: u64,
    pub(super) waiting: u64,
}

/// The two ways in which a connection keeps a tube.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Interest {
    Use,
    Watch,
}

/// All tubes that are used or watched. They exist for that reason, with or without jobs.
pub(super) struct Tubes {
    caller: Caller,
    tubes: Mutex<BTreeMap<QueueName, Tube>>,
    /// The length (s) and the end of the pauses that clients asked for.
    pauses: Mutex<BTreeMap<QueueName, (u32, Timestamp)>>,
}

#[derive(Debug)]
struct Tube {
    users: Users,
    #[expect(dead_code, reason = "kept for its drop, not read")]
    in_use: Option<InUse>,
}

impl Tubes {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller, tubes: Mutex::default(), pauses: Mutex::default() }
    }

    fn tubes(&self) -> MutexGuard<'_, BTreeMap<QueueName, Tube>> {
        self.tubes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a connection uses or watches this tube.
    pub(super) fn keep(&self, name: &QueueName, interest: Interest) {
        let mut tubes = self.tubes();
        let tube = tubes
            .entry(name.clone())
            .or_insert_with(|| Tube { users: Users::default(), in_use: self.caller.use_queue(name).ok() });
        match interest {
            Interest::Use => tube.users.using += 1,
            Interest::Watch => tube.users.watching += 1,
        }
    }

    /// Notes that a connection no longer uses or watches this tube.
    pub(super) fn release(&self, name: &QueueName, interest: Interest) {
        let mut tubes = self.tubes();
        let Some(tube) = tubes.get_mut(name) else { return };
        match interest {
            Interest::Use => tube.users.using -= 1,
            Interest::Watch => tube.users.watching -= 1,
        }
        if tube.users == Users::default() {
            tubes.remove(name);
        }
    }

    /// Notes that a connection waits for jobs of these tubes, until the result is dropped.
    pub(super) fn wait<'a>(&'a self, names: &'a [QueueName]) -> Waits<'a> {
        self.change_waiting(names, 1);
        Waits { tubes: self, names }
    }

    fn change_waiting(&self, names: &[QueueName], by: i64) {
        let mut tubes = self.tubes();
        for name in names {
            if let Some(tube) = tubes.get_mut(name) {
                tube.users.waiting = tube.users.waiting.saturating_add_signed(by);
            }
        }
    }

    /// The numbers of connections at this tube.
    pub(super) fn users(&self, name: &QueueName) -> Users {
        self.tubes().get(name).map(|tube| tube.users).unwrap_or_default()
    }

    /// Notes that a client has paused the tube for `pause_s` seconds.
    pub(super) fn paused(&self, name: &QueueName, pause_s: u32, now: Timestamp) {
        let mut pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.retain(|_, (_, until)| now < *until);
        pauses.insert(name.clone(), (pause_s, now.saturating_plus_ms(u64::from(pause_s) * 1_000 + 1)));
    }

    /// The whole length of the pause that a client asked for (s); `None`: no client of this door did.
    pub(super) fn pause(&self, name: &QueueName) -> Option<u32> {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.get(name).map(|(pause_s, _)| *pause_s)
    }
}

/// A connection that waits, until this is dropped.
pub(super) struct Waits<'a> {
    tubes: &'a Tubes,
    names: &'a [QueueName],
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.tubes.change_waiting(self.names, -1);
    }
}
