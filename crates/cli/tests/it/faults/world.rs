//! The possible states of a key, and the effect of each answer on them. It has a dozen lines for each verb, and no
//! code of the product.

use crate::faults::history::{Answer, Call, Delivery};

/// One possible state of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum World {
    /// The task never existed, or was cancelled.
    Absent,
    /// The task was acked.
    Done,
    Live(Live),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Live {
    pub(crate) due_ms: i64,
    pub(crate) number: u32,
    /// `None` if no answer has shown it yet.
    pub(crate) version: Option<u64>,
    pub(crate) held: Held,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Held {
    No,
    /// Leased by the worker that got the delivery with this serial.
    By(u64),
    /// Leased by an unknown worker: the answer of a lease was lost.
    Unseen,
}

impl World {
    /// The state of the key after an answered call; `None` if this answer is impossible in this world.
    pub(crate) fn after(self, call: Call, answer: Answer) -> Option<Self> {
        let free = |live: Live| live.held == Held::No;
        match (call, answer, self) {
            (_, Answer::Refused, _) => Some(self),
            (Call::Put { due_ms, number }, Answer::Created { version }, Self::Absent | Self::Done) => {
                Some(Self::live(due_ms, number, version))
            }
            (Call::Put { due_ms, number }, Answer::Changed { version }, Self::Live(live))
                if free(live) && live.version.is_none_or(|before| before < version) =>
            {
                Some(Self::live(due_ms, number, version))
            }
            (Call::Patch { due_ms }, Answer::Changed { version }, Self::Live(live))
                if free(live) && live.version.is_none_or(|before| before < version) =>
            {
                Some(Self::live(due_ms, live.number, version))
            }
            (Call::Cancel, Answer::Cancelled, Self::Live(live)) if free(live) => Some(Self::Absent),
            (Call::Put { .. } | Call::Patch { .. } | Call::Cancel, Answer::Leased, Self::Live(live))
                if !free(live) =>
            {
                Some(self)
            }
            // The server remembers an end only for some time.
            (Call::Patch { .. } | Call::Cancel | Call::Get, Answer::NotFound, Self::Absent | Self::Done) => {
                Some(self)
            }
            (Call::Patch { .. } | Call::Cancel | Call::Get, Answer::Done, Self::Done) => Some(self),
            (Call::Ack(delivery), Answer::Acked, Self::Live(live)) if live.is_of(delivery) => {
                Some(Self::Done)
            }
            (Call::Ack(delivery), Answer::Expired, Self::Live(live)) => {
                (live.held != Held::By(delivery.serial)).then_some(self)
            }
            (Call::Ack(_), Answer::Expired, Self::Absent | Self::Done) => Some(self),
            (Call::Get, Answer::Live { due_ms, number, version }, Self::Live(live)) => {
                let same = (due_ms, number) == (live.due_ms, live.number);
                let same = same && live.version.is_none_or(|known| known == version);
                same.then_some(Self::Live(Live { version: Some(version), ..live }))
            }
            (Call::Lease, Answer::Delivered(delivery), Self::Live(live)) => {
                let same = (delivery.due_ms, delivery.number) == (live.due_ms, live.number);
                let held = Held::By(delivery.serial);
                (same && free(live)).then_some(Self::Live(Live { held, ..live }))
            }
            _ => None,
        }
    }

    /// The state of the key if a call without an answer took effect; `None` if it could have no effect.
    pub(crate) fn after_unanswered(self, call: Call) -> Option<Self> {
        let live = |due_ms, number| Self::Live(Live { due_ms, number, version: None, held: Held::No });
        match (call, self) {
            (Call::Put { due_ms, number }, Self::Absent | Self::Done) => Some(live(due_ms, number)),
            (Call::Put { due_ms, number }, Self::Live(Live { held: Held::No, .. })) => {
                Some(live(due_ms, number))
            }
            (Call::Patch { due_ms }, Self::Live(Live { held: Held::No, number, .. })) => {
                Some(live(due_ms, number))
            }
            (Call::Cancel, Self::Live(Live { held: Held::No, .. })) => Some(Self::Absent),
            (Call::Ack(delivery), Self::Live(live)) if live.is_of(delivery) => Some(Self::Done),
            (Call::Lease, Self::Live(live)) if live.held == Held::No => {
                Some(Self::Live(Live { held: Held::Unseen, ..live }))
            }
            _ => None,
        }
    }

    /// The state of the key after the server died. Its lease has ended.
    pub(crate) fn after_crash(self) -> Self {
        match self {
            Self::Live(live) => Self::Live(Live { held: Held::No, ..live }),
            other => other,
        }
    }

    fn live(due_ms: i64, number: u32, version: u64) -> Self {
        Self::Live(Live { due_ms, number, version: Some(version), held: Held::No })
    }
}

impl Live {
    /// Whether the token of this delivery is valid for the task. It is valid while its lease runs, or if a crash
    /// ended the lease and no other worker has the task.
    fn is_of(self, delivery: Delivery) -> bool {
        let same = (delivery.due_ms, delivery.number) == (self.due_ms, self.number);
        same && (self.held == Held::No || self.held == Held::By(delivery.serial))
    }
}
