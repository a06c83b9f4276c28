//! [`Lookups`]: the questions to the store about single tasks, and the commands that wait for the answers.

use std::collections::{BTreeMap, VecDeque};

use super::Reads;
use super::identified::Identified;
use super::keyed::Keyed;
use super::token_calls::TokenCall;
use crate::calls::ImportTasks;
use crate::dispatch::{Dispatch, Fetch};
use crate::input::{CallId, Effect};
use crate::ledger::{Ledger, ROOM_MIN};
use crate::name::{Key, QueueName};
use crate::residence::Residence;
use crate::seam::{Request, RequestId, Wanted};

/// Why something is looked up.
#[derive(Debug)]
pub(crate) enum Purpose {
    Key(QueueName, Key),
    /// The tasks of some tokens of a call.
    Tokens(CallId, TokenCall),
    Head(Fetch),
    /// A task that a command names by its id.
    Id(CallId, Identified),
    /// The task of a stub that expired in this queue, or is to be forgotten (`None`).
    Overdue(u64, Option<QueueName>),
    /// The keys of an import, and its ids if tasks keep them.
    Import {
        call: CallId,
        import: ImportTasks,
        keeps_ids: bool,
    },
}

/// The look-ups under way, and the commands that wait for them.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Commands that are held back, by key, in the order in which they came.
    waiting: BTreeMap<(QueueName, Key), VecDeque<(CallId, Keyed)>>,
    /// The look-ups that go out at the end of the turn.
    wanted: Vec<Purpose>,
    /// The look-ups under way, each with the number of its questions.
    asked: BTreeMap<RequestId, (usize, Vec<Purpose>)>,
    /// How many records of expired or forgotten stubs are being fetched.
    overdue: usize,
}

impl Lookups {
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.asked.is_empty()
    }
}

impl Reads {
    /// Whether commands wait for this key. If so, later commands wait behind them.
    pub(crate) fn is_waited_for(&self, place: &(QueueName, Key)) -> bool {
        self.lookups.waiting.contains_key(place)
    }

    /// A command waits for its key, which is looked up.
    pub(crate) fn wait_for_key(&mut self, call: CallId, command: Keyed) {
        let place = command.place();
        if let Some(waiting) = self.lookups.waiting.get_mut(&place) {
            return waiting.push_back((call, command));
        }
        self.lookups.wanted.push(Purpose::Key(place.0.clone(), place.1.clone()));
        self.lookups.waiting.insert(place, VecDeque::from([(call, command)]));
    }

    /// The commands that have waited for this key, in the order they came.
    pub(crate) fn end_wait_for_key(&mut self, place: &(QueueName, Key)) -> VecDeque<(CallId, Keyed)> {
        self.lookups.waiting.remove(place).unwrap_or_default()
    }

    /// Something is looked up at the end of the turn.
    pub(crate) fn want(&mut self, purpose: Purpose) {
        self.lookups.wanted.push(purpose);
    }

    /// Sends out the look-ups that the turn has collected.
    pub(crate) fn look_up(
        &mut self,
        ledger: &mut Ledger,
        residence: &mut Residence,
        dispatch: &mut Dispatch,
        out: &mut Vec<Effect>,
    ) {
        self.lookups.wanted.extend(dispatch.prefetch(residence).into_iter().map(Purpose::Head));
        self.fetch_overdue(ledger, residence);
        if self.lookups.wanted.is_empty() {
            return;
        }
        let purposes = core::mem::take(&mut self.lookups.wanted);
        let mut wanted = Vec::with_capacity(purposes.len());
        purposes.iter().for_each(|purpose| purpose.want(&mut wanted));
        let questions = wanted.len();
        let request = ledger.request(Request::GetMany(wanted), out);
        residence.begin_read(request);
        self.lookups.asked.insert(request, (questions, purposes));
    }

    /// Asks for the records of stubs that expired or are to be forgotten, some at a time.
    fn fetch_overdue(&mut self, ledger: &Ledger, residence: &mut Residence) {
        if !ledger.takes_changes() {
            return residence.clear_overdue();
        }
        // The changes that these records lead to have to be written, too.
        while self.lookups.overdue < self.overdue_max
            && !ledger.has_backlog()
            && let Some((id, expired)) = residence.pop_overdue(ledger.room_left() >= ROOM_MIN)
        {
            self.lookups.overdue += 1;
            self.lookups.wanted.push(Purpose::Overdue(id, expired));
        }
    }

    /// The record of a stub that expired or is to be forgotten is here, or cannot be had.
    pub(crate) fn end_overdue(&mut self) {
        self.lookups.overdue -= 1;
    }

    /// Takes the look-ups of this request, because the store has answered it or failed to. Returns also how many questions they had; `None`:
    /// the request was no look-up.
    pub(crate) fn take_looked_up(&mut self, request: RequestId) -> Option<(usize, Vec<Purpose>)> {
        self.lookups.asked.remove(&request)
    }
}

impl Purpose {
    /// Adds the questions to `wanted`. The store answers each of them, in this order.
    fn want(&self, wanted: &mut Vec<Wanted>) {
        match self {
            Self::Key(queue, key) => wanted.push(Wanted::Key(queue.clone(), key.clone())),
            Self::Id(_, command) => wanted.push(Wanted::Id(command.id())),
            Self::Head(Fetch { id, .. }) | Self::Overdue(id, _) => wanted.push(Wanted::Id(*id)),
            Self::Tokens(_, pending) => {
                wanted.extend(pending.looked_up.iter().map(|&(_, id, _)| Wanted::Id(id)));
            }
            Self::Import { import: ImportTasks { tasks, .. }, keeps_ids, .. } => {
                wanted.extend(tasks.iter().map(|task| Wanted::Key(task.queue.clone(), task.key.clone())));
                wanted.extend(tasks.iter().filter(|_| *keeps_ids).map(|task| Wanted::Id(task.id)));
            }
        }
    }
}
