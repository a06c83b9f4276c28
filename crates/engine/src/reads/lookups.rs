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

/// The reason of a look-up, with the call or the task that needs the result.
#[derive(Debug)]
pub(crate) enum Purpose {
    Key(QueueName, Key),
    /// The tasks that lease tokens of a call name and that are not whole in memory.
    Tokens(CallId, TokenCall),
    Head(Fetch),
    /// A task that a command names by its id.
    Id(CallId, Identified),
    /// The record of a stub, by the id of its task. With a queue: the stub expired in this queue. `None`: the stub's dead task is to be
    /// forgotten.
    Overdue(u64, Option<QueueName>),
    /// The keys of all tasks of an import, and also their ids if the tasks keep their ids.
    Import {
        call: CallId,
        import: ImportTasks,
        keeps_ids: bool,
    },
}

/// The look-ups that are wanted or under way, and the commands that wait for the results.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Commands that wait for the look-up of their key, by key, in the order in which they came.
    waiting: BTreeMap<(QueueName, Key), VecDeque<(CallId, Keyed)>>,
    /// The look-ups that go out at the end of the turn.
    wanted: Vec<Purpose>,
    /// The requests that the store has not answered yet, each with the number of its questions and with its look-ups.
    asked: BTreeMap<RequestId, (usize, Vec<Purpose>)>,
    /// The number of records that are wanted or being fetched because their stubs expired or are to be forgotten.
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

    /// Lets a command wait for a look-up of its key. Asks for the look-up, unless an earlier command waits for the same key.
    pub(crate) fn wait_for_key(&mut self, place: (QueueName, Key), call: CallId, command: Keyed) {
        let waiting = self.lookups.waiting.entry(place).or_insert_with_key(|(queue, key)| {
            self.lookups.wanted.push(Purpose::Key(queue.clone(), key.clone()));
            VecDeque::new()
        });
        waiting.push_back((call, command));
    }

    /// Takes out the commands that waited for this key, in the order in which they came.
    pub(crate) fn end_wait_for_key(&mut self, place: &(QueueName, Key)) -> VecDeque<(CallId, Keyed)> {
        self.lookups.waiting.remove(place).unwrap_or_default()
    }

    /// Adds a look-up, which goes to the store at the end of the turn.
    pub(crate) fn want(&mut self, purpose: Purpose) {
        self.lookups.wanted.push(purpose);
    }

    /// Sends all look-ups of the turn to the store in one request, with the prefetch and the records of stubs that expired or are to be
    /// forgotten.
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

    /// Adds look-ups for stubs that expired or are to be forgotten, until `overdue_max` of their records are being fetched. If no change is
    /// taken any more, drops the list of these stubs.
    fn fetch_overdue(&mut self, ledger: &Ledger, residence: &mut Residence) {
        if !ledger.takes_changes() {
            return residence.clear_overdue();
        }
        // For each record, the engine makes a change, which has to be written. So no further record is asked for while more than one sealed
        // batch waits for its commit.
        while self.lookups.overdue < self.overdue_max
            && !ledger.has_backlog()
            && let Some((id, expired)) = residence.pop_overdue(ledger.room_left() >= ROOM_MIN)
        {
            self.lookups.overdue += 1;
            self.lookups.wanted.push(Purpose::Overdue(id, expired));
        }
    }

    /// Counts off the fetch of one record whose stub had expired or was to be forgotten: the store has answered or failed.
    pub(crate) fn end_overdue(&mut self) {
        self.lookups.overdue -= 1;
    }

    /// Takes out the look-ups of `request`, because the store has answered the request or failed to. Returns them and the number of their
    /// questions; `None`: the request was no look-up.
    pub(crate) fn take_looked_up(&mut self, request: RequestId) -> Option<(usize, Vec<Purpose>)> {
        self.lookups.asked.remove(&request)
    }
}

impl Purpose {
    /// Adds the questions of this look-up to `wanted`. The store answers the questions in the same order.
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
