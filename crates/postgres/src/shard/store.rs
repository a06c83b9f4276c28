//! [`PostgresStore`]: keeps the tasks of one shard in PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{
    Acquired, AcquiredCursor, AcquiredPage, Batch, DueHistogram, DueKey, Found, Ownership, Page, Reply,
    Request, RequestId, Seq, ShardId, ShardStore, Task, Timestamp, Validity, Wanted,
};
use tickwheel_store::records::{RecordError, RecordReader};
use tickwheel_store::{HistoryLimits, InboxRow, QueueStore, RowEnd};

use crate::database::{
    Acquire, Acquisition, Claim, Holder, InboxPage, Read, ReadResult, Refusal, Rows, Snapshot, TaskRow,
};
use crate::process::commit_worker::{Job, Outcome};
use crate::process::node::{Completions, Event, Node, ReadRequest};
use crate::shard::batch::encode;
use crate::shard::inbox_row::{self, PayloadCheck};
use crate::shard::known_keys::{KeyPage, KnownKeys};
use crate::shard::owned::{Committing, Owned, Paging, PendingRead};

/// Batches are rolled up once there are this many.
const ROLLUP_BATCHES: u64 = 1_000;
/// The entries in a page of the `Acquired` reply to a new owner, and the keys of one queue in a page of keys.
const ACQUIRED_PAGE: usize = 4_096;

/// Keeps the tasks of one shard in PostgreSQL, behind [`ShardStore`].
///
/// The tasks stay in the database. In memory are the numbers of tasks of each queue, the rules, and the ends that are remembered. Each commit
/// is a batch with a number; the commit worker of the shard sends it, and resends it if the answer was lost, so the engine never learns of an unknown
/// outcome. A look-up of a key that no task has mostly needs no question, because the store knows the keys of all tasks, as far as they have room
/// ([`Node::with_known_keys`]). A read is answered once all batches in its snapshot were answered, so that a reply never shows a commit that is answered later.
///
/// A store asks its [`Node`] whether the process may answer. If another process took the shard, commits and reads get
/// [`Reply::Fenced`], and the shard can be acquired again.
#[derive(Debug)]
pub struct PostgresStore {
    shard: ShardId,
    node: Arc<Node>,
    completions: Arc<Completions>,
    history: HistoryLimits,
    payload_check: PayloadCheck,
    page: usize,
    rollup_batches: u64,
    phase: Phase,
    /// The number of the next question to the readers. A number is never used again, so an earlier answer is recognised.
    next_read: u64,
    /// Questions under way.
    reads: BTreeMap<u64, Question>,
    replies: Vec<(RequestId, Reply)>,
    holder: Option<Holder>,
    /// The incarnation that last had the shard, unless it gave the shard back.
    last: Option<String>,
    /// Whether the last answer to an acquisition was [`Acquisition::TooSoon`].
    is_too_soon: bool,
    reader: RecordReader,
    /// Ends with the store.
    process: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

#[derive(Debug)]
enum Phase {
    Unowned,
    Acquiring { request: RequestId, incarnation: String },
    Owned(Box<Owned>),
    Releasing(RequestId),
}

/// A question under way.
#[derive(Debug)]
struct Question {
    asker: Asker,
    /// The number of the last batch that was answered before the question. A snapshot without it shows that batches were lost.
    last_no: i64,
}

#[derive(Debug)]
enum Asker {
    Engine(PendingRead),
    /// The store, which asks for the ends that are remembered.
    History,
    /// The store, which asks for a page of keys in the reading with this number.
    Keys(u64),
}

impl Asker {
    fn engine(self) -> Option<PendingRead> {
        if let Self::Engine(asked) = self { Some(asked) } else { None }
    }
}

impl PostgresStore {
    /// Returns the store of one shard. `completions` is what [`Node::register`] returned for the shard.
    #[must_use]
    pub fn new(shard: ShardId, node: Arc<Node>, completions: Arc<Completions>) -> Self {
        Self {
            shard,
            node,
            completions,
            history: HistoryLimits::default(),
            payload_check: |_, _| Ok(()),
            page: ACQUIRED_PAGE,
            rollup_batches: ROLLUP_BATCHES,
            phase: Phase::Unowned,
            next_read: 0,
            reads: BTreeMap::new(),
            replies: Vec::new(),
            holder: None,
            last: None,
            is_too_soon: false,
            reader: RecordReader::new(),
            process: None,
        }
    }

    /// Sets how many ended tasks are remembered, and for how long. Without this call, the store has the default [`HistoryLimits`].
    #[must_use]
    pub fn with_history(mut self, history: HistoryLimits) -> Self {
        self.history = history;
        self
    }

    /// Sets the check of each payload that comes by the inbox. Without this call, all are taken.
    #[must_use]
    pub fn with_payload_check(mut self, check: PayloadCheck) -> Self {
        self.payload_check = check;
        self
    }

    /// Sets how many entries a page of the `Acquired` reply has, and how many keys of one queue a page of keys. The default is 4,096.
    #[must_use]
    pub fn with_acquired_page(mut self, entries: usize) -> Self {
        self.page = entries;
        self
    }

    /// Sets after how many batches they are rolled up. The default is 1,000.
    #[must_use]
    pub fn with_rollup_batches(mut self, batches: u64) -> Self {
        self.rollup_batches = batches;
        self
    }

    /// Keeps the threads of the process until the store is dropped.
    #[must_use]
    pub(crate) fn kept_alive_by(mut self, process: Arc<impl std::any::Any + Send + Sync>) -> Self {
        self.process = Some(process);
        self
    }

    /// Returns the process that has the shard, if it was another one when this store last asked.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    fn acquire(&mut self, request: RequestId, shard: ShardId, wall: Timestamp) {
        if shard != self.shard {
            let why = format!("take {shard}: this store has {} only", self.shard);
            return self.reply(request, Reply::Failed { why });
        }
        self.forget();
        let Some(incarnation) = self.node.incarnation() else {
            return self.reply(request, Reply::Held);
        };
        if self.holder.as_ref().is_some_and(|holder| self.node.is_alive(holder)) {
            return self.reply(request, Reply::Held);
        }
        let take = Acquire {
            shard: shard.number(),
            incarnation: incarnation.clone(),
            wall: wall.as_ms(),
            after_loss: self.node.may_take_after_loss(self.last.as_deref()),
        };
        self.phase = Phase::Acquiring { request, incarnation };
        self.node.submit(self.shard.number(), Job::Acquire(take));
    }

    /// Forgets the state of an ownership that is over, and answers what was asked under it.
    fn forget(&mut self) {
        let fenced: Vec<RequestId> = match std::mem::replace(&mut self.phase, Phase::Unowned) {
            Phase::Owned(owned) => {
                self.node.inbox().end(owned.claim);
                self.last = Some(owned.incarnation.clone());
                owned.requests().collect()
            }
            Phase::Acquiring { .. } | Phase::Releasing(_) | Phase::Unowned => Vec::new(),
        };
        let questions = std::mem::take(&mut self.reads).into_values();
        let asked = questions.filter_map(|question| question.asker.engine()).map(|asked| asked.request);
        self.replies.extend(fenced.into_iter().chain(asked).map(|request| (request, Reply::Fenced)));
    }

    fn taken(&mut self, request: RequestId, incarnation: String, snapshot: Snapshot) {
        let keys = KnownKeys::unread(self.node.key_room(), self.page);
        match Owned::new(self.shard, incarnation, snapshot, self.history, keys, &mut self.reader) {
            Ok((mut owned, secret, last_wall)) => {
                (self.holder, self.is_too_soon) = (None, false);
                self.node.inbox().ask(owned.claim, true);
                let ownership =
                    Ownership { shard: self.shard, epoch: owned.epoch(), last_seq: owned.last_seq };
                let acquired = Acquired {
                    ownership,
                    last_wall,
                    state: owned.table.state(),
                    secret,
                    room: u64::MAX,
                    page: AcquiredPage::default(),
                };
                let (page, ids) = owned.table.facts(None, self.page, &owned.populations, &owned.leased);
                let acquired = Acquired { page, ..acquired };
                owned.paging = Some((request, Paging::First(Box::new(acquired))));
                self.phase = Phase::Owned(Box::new(owned));
                self.ask_for_history();
                self.read_page(ids);
            }
            Err(why) => {
                let why = format!("read {}: {why}", self.shard);
                self.reply(request, Reply::Failed { why });
            }
        }
    }

    /// Asks for the leased tasks of the page that is being read, and answers at once if it has none.
    fn read_page(&mut self, ids: Vec<u64>) {
        let Phase::Owned(owned) = &mut self.phase else { return };
        if ids.is_empty() {
            if let Some((request, paging)) = owned.paging.take() {
                self.reply(request, paging.reply());
            }
            return;
        }
        let Some((request, _)) = &owned.paging else { return };
        let request = *request;
        self.read(request, Read::Find(ids.into_iter().map(Wanted::Id).collect()));
    }

    fn next_page(&mut self, request: RequestId, after: &AcquiredCursor) {
        let page = self.page;
        let Some(owned) = self.owned() else { return self.reply(request, Reply::Fenced) };
        let (page, ids) = owned.table.facts(Some(after), page, &owned.populations, &owned.leased);
        owned.paging = Some((request, Paging::Next(page)));
        self.read_page(ids);
    }

    fn commit(&mut self, request: RequestId, ownership: Ownership, seq: Seq, wall: Timestamp, batch: Batch) {
        let claim = self.claim(ownership);
        let Some(owned) = self.owned().filter(|owned| Some(owned.claim) == claim) else {
            return self.reply(request, Reply::Fenced);
        };
        assert!(
            seq >= owned.last_seq,
            "a commit ends at change {seq}, and {} is committed already",
            owned.last_seq
        );
        if batch == Batch::default() && seq == owned.last_seq {
            // The engine asks for the room only. An empty batch that raises the number notes the time, which has to be durable.
            return self.reply(request, Reply::Done { room: u64::MAX });
        }
        match encode(owned.claim, owned.last_no + 1, seq, wall, &batch) {
            Ok(encoded) => {
                owned.committing = Some(Committing {
                    request,
                    seq,
                    wall,
                    batch,
                    counts: encoded.counts.clone(),
                    ended: encoded.ended.clone(),
                });
                self.node.submit(self.shard.number(), Job::Commit(encoded));
            }
            Err(error) => self.reply(request, Reply::Failed { why: error.to_string() }),
        }
    }

    fn read(&mut self, request: RequestId, read: Read) {
        self.ask(Asker::Engine(PendingRead { request, read: read.clone() }), read);
    }

    fn ask(&mut self, asker: Asker, read: Read) {
        let Some(last_no) = self.owned().map(|owned| owned.last_no) else { return };
        self.next_read += 1;
        self.reads.insert(self.next_read, Question { asker, last_no });
        self.node.ask(ReadRequest { shard: self.shard.number(), no: self.next_read, read });
    }

    /// Asks for the history, if that is not under way.
    fn ask_for_history(&mut self) {
        if !self.reads.values().any(|question| matches!(question.asker, Asker::History)) {
            self.ask(Asker::History, Read::History);
        }
    }

    /// Asks for the next page of keys, if one is wanted.
    fn ask_for_keys(&mut self) {
        let Some(owned) = self.owned() else { return };
        if let Some(KeyPage { reading, of, max }) = owned.keys.next_page(&owned.populations) {
            self.ask(Asker::Keys(reading), Read::Keys { of, max });
        }
    }

    /// Reads on behalf of the engine, if this process owns the shard.
    fn read_for_engine(&mut self, request: RequestId, read: Read) {
        if self.owned().is_some() {
            self.read(request, read);
        } else {
            self.reply(request, Reply::Fenced);
        }
    }

    fn find(&mut self, request: RequestId, wanted: Vec<Wanted>) {
        let is_find = |question: &Question| {
            matches!(&question.asker, Asker::Engine(PendingRead { read: Read::Find(_), .. }))
        };
        let waits = self.reads.values().any(is_find);
        match self.owned().filter(|_| !waits).and_then(|owned| owned.absent(&wanted)) {
            Some(found) => self.reply(request, Reply::Found(found)),
            None => self.read_for_engine(request, Read::Find(wanted)),
        }
    }

    fn release(&mut self, request: RequestId, ownership: Ownership) {
        let claim = self.claim(ownership);
        let Some(claim) = self.owned().map(|owned| owned.claim).filter(|owned| Some(*owned) == claim) else {
            return self.reply(request, Reply::Fenced);
        };
        self.forget();
        self.last = None;
        self.phase = Phase::Releasing(request);
        self.node.submit(self.shard.number(), Job::Release(claim));
    }

    fn claim(&self, ownership: Ownership) -> Option<Claim> {
        let Ownership { shard, epoch, last_seq: _ } = ownership;
        (shard == self.shard).then(|| Claim { shard: shard.number(), epoch: i64::from(epoch.0) })
    }

    fn owned(&mut self) -> Option<&mut Owned> {
        if let Phase::Owned(owned) = &mut self.phase { Some(owned) } else { None }
    }

    fn reply(&mut self, request: RequestId, reply: Reply) {
        self.replies.push((request, reply));
    }

    fn job_ended(&mut self, outcome: Outcome) {
        match (std::mem::replace(&mut self.phase, Phase::Unowned), outcome) {
            (
                Phase::Acquiring { request, incarnation },
                Outcome::Acquisition(Acquisition::Acquired(snapshot)),
            ) => {
                self.taken(request, incarnation, *snapshot);
            }
            (Phase::Acquiring { request, .. }, Outcome::Acquisition(Acquisition::Held(holder))) => {
                (self.holder, self.is_too_soon) = (Some(holder), false);
                self.reply(request, Reply::Held);
            }
            (Phase::Acquiring { request, .. }, Outcome::Acquisition(Acquisition::TooSoon)) => {
                (self.holder, self.is_too_soon) = (None, true);
                self.reply(request, Reply::Held);
            }
            (Phase::Acquiring { request, .. }, Outcome::Acquisition(Acquisition::Outdated)) => {
                self.is_too_soon = false;
                self.reply(request, Reply::Held)
            }
            (Phase::Acquiring { request, .. }, Outcome::Refused { why }) => {
                self.reply(request, Reply::Failed { why })
            }
            (Phase::Releasing(request), Outcome::Released) => self.reply(request, Reply::Released),
            (Phase::Releasing(request), Outcome::Refused { why }) => {
                self.reply(request, Reply::Failed { why })
            }
            (Phase::Owned(owned), outcome) => {
                self.phase = Phase::Owned(owned);
                self.owned_job_ended(outcome);
            }
            // The outcome of a job of an ownership that is over.
            (phase, _) => self.phase = phase,
        }
    }

    fn owned_job_ended(&mut self, outcome: Outcome) {
        let Some(owned) = self.owned() else { return };
        match outcome {
            Outcome::Committed { last } => {
                let Some(committing) = owned.committing.take() else { return };
                let request = committing.request;
                owned.committed(committing, last);
                self.reply(request, Reply::Done { room: u64::MAX });
                self.answer_early();
                self.roll_up();
            }
            Outcome::Uncommitted { why } => {
                if let Some(committing) = owned.committing.take() {
                    self.reply(committing.request, Reply::Failed { why });
                }
            }
            Outcome::Fenced => self.forget(),
            Outcome::RolledUp { done } => owned.was_rolled_up(done),
            // An acquisition that was asked for twice has ended the epoch of this ownership.
            Outcome::Acquisition(_) => self.forget(),
            Outcome::Refused { .. } | Outcome::Released => {}
        }
    }

    fn roll_up(&mut self) {
        let batches = self.rollup_batches;
        let Some(owned) = self.owned() else { return };
        if let Some(rollup) = owned.next_rollup(batches) {
            owned.keys.retry();
            self.node.submit(self.shard.number(), Job::Rollup(rollup));
        } else if owned.waits_for_history(batches) {
            // Without the history nothing is rolled up, and an earlier question may have failed.
            self.ask_for_history();
        }
    }

    /// Asks for the next rows of the inbox, if none are under way.
    fn ask_for_rows(&mut self) {
        let Phase::Owned(owned) = &self.phase else { return };
        if let Some(at_once) = owned.inbox.next_read() {
            self.node.inbox().ask(owned.claim, at_once);
        }
    }

    fn rows_came(&mut self, page: InboxPage) {
        let check = self.payload_check;
        let Some(owned) = self.owned().filter(|owned| owned.claim == page.claim) else { return };
        owned.inbox.come(page.entries.into_iter().map(|entry| inbox_row::read(entry, check)), page.more);
        self.ask_for_rows();
    }

    fn read_ended(&mut self, no: u64, seen: Result<ReadResult, String>) {
        let Some(Question { asker, last_no }) = self.reads.remove(&no) else { return };
        let Some(owned) = self.owned() else { return };
        let seen = match seen {
            // Another owner has the shard, or the database has lost batches that it had acknowledged.
            Ok(seen) if seen.epoch != owned.claim.epoch || seen.no < last_no => return self.fenced(asker),
            Ok(seen) => seen,
            Err(why) => return self.failed(asker, why),
        };
        match asker {
            Asker::History => self.history_came(seen.rows),
            Asker::Keys(reading) if seen.no > owned.last_no && owned.keys.is_reading(reading) => {
                owned.early_keys = Some((reading, seen));
            }
            Asker::Keys(reading) => self.keys_came(reading, seen.rows),
            Asker::Engine(asked) if seen.no > owned.last_no => owned.early.push((asked, seen)),
            Asker::Engine(asked) => self.answer(asked, seen.rows),
        }
    }

    fn fenced(&mut self, asker: Asker) {
        self.replies.extend(asker.engine().map(|asked| (asked.request, Reply::Fenced)));
        self.forget();
    }

    fn failed(&mut self, asker: Asker, why: String) {
        match asker {
            // The engine can go on without the answer to a list or a forecast.
            Asker::Engine(PendingRead { request, read }) if read.can_fail() => {
                self.reply(request, Reply::Unanswered { why });
            }
            Asker::Engine(asked) => self.read_failed(asked.request, why),
            Asker::History => {
                // Without the history, no look-up can say that a task has not been there.
                let waiting =
                    self.owned().map(|owned| std::mem::take(&mut owned.unanswered)).unwrap_or_default();
                for (asked, _) in waiting {
                    self.read_failed(asked.request, why.clone());
                }
            }
            // Each look-up asks the database then.
            Asker::Keys(reading) => {
                if let Some(owned) = self.owned().filter(|owned| owned.keys.is_reading(reading)) {
                    owned.keys.give_up();
                }
            }
        }
    }

    fn read_failed(&mut self, request: RequestId, why: String) {
        if let Some(owned) = self.owned() {
            owned.paging.take_if(|(paging, _)| *paging == request);
        }
        self.reply(request, Reply::Failed { why });
    }

    /// Answers the reads whose snapshots have only batches that were answered.
    fn answer_early(&mut self) {
        let Some(owned) = self.owned() else { return };
        let last_no = owned.last_no;
        if let Some((reading, seen)) = owned.early_keys.take_if(|(_, seen)| seen.no <= last_no) {
            self.keys_came(reading, seen.rows);
        }
        let Some(owned) = self.owned() else { return };
        for (asked, seen) in owned.early.extract_if(.., |(_, seen)| seen.no <= last_no).collect::<Vec<_>>() {
            self.answer(asked, seen.rows);
        }
    }

    fn history_came(&mut self, rows: Rows) {
        let Rows::History(rollups) = rows else { return };
        let Phase::Owned(owned) = &mut self.phase else { return };
        let read = rollups.iter().map(|(_, ended)| owned.remember(ended, &mut self.reader)).sum();
        match read {
            Ok(ends) => owned.rolled_up = ends,
            Err(error) => {
                let why = format!("read the history of {}: {error}", self.shard);
                return self.failed(Asker::History, why);
            }
        }
        owned.history_read = true;
        owned.table.forget_until(owned.last_wall);
        for (asked, rows) in std::mem::take(&mut owned.unanswered) {
            self.answer(asked, Rows::Found(rows));
        }
    }

    fn keys_came(&mut self, reading: u64, rows: Rows) {
        let (Rows::Keys(keys), Some(owned)) = (rows, self.owned()) else { return };
        if owned.keys.is_reading(reading) {
            owned.keys.page_came(&keys);
            self.ask_for_keys();
        }
    }

    fn answer(&mut self, asked: PendingRead, rows: Rows) {
        let Phase::Owned(owned) = &mut self.phase else { return };
        let mut reads_keys = false;
        let reply = match (&asked.read, rows) {
            (Read::Find(wanted), Rows::Found(rows)) => {
                if !owned.history_read && rows.contains(&None) && !owned.is_paging(asked.request) {
                    owned.unanswered.push((asked, rows));
                    // An earlier question may have failed.
                    return self.ask_for_history();
                }
                let is_missing = |(wanted, row): (&Wanted, &Option<TaskRow>)| {
                    row.is_none() && matches!(wanted, Wanted::Key(..))
                };
                if wanted.iter().zip(&rows).any(is_missing) {
                    reads_keys = owned.keys.begin(&owned.populations);
                }
                owned.found(wanted, rows, &mut self.reader).map(Reply::Found)
            }
            (Read::ScanDue { .. } | Read::ScanFilter { .. }, Rows::Page { tasks, more }) => {
                page(tasks, more, &mut self.reader).map(Reply::Page)
            }
            (Read::Count(histogram), Rows::Dues { dues, counted }) => {
                Ok(counts_of(histogram, &dues, counted))
            }
            (read, rows) => unreachable!("{read:?} was answered {rows:?}"),
        };
        match reply {
            Err(error) => self.read_failed(asked.request, format!("read {}: {error}", self.shard)),
            Ok(Reply::Found(found)) if owned.is_paging(asked.request) => {
                if let Some((request, mut paging)) = owned.paging.take() {
                    let live = |found| if let Found::Live(task) = found { Some(task) } else { None };
                    paging.page().leased = found.into_iter().filter_map(live).collect();
                    self.reply(request, paging.reply());
                }
            }
            Ok(reply) => self.reply(asked.request, reply),
        }
        if reads_keys {
            self.ask_for_keys();
        }
    }
}

impl ShardStore for PostgresStore {
    fn submit(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Acquire { shard, wall } => self.acquire(id, shard, wall),
            Request::AcquiredPage { after } => self.next_page(id, &after),
            Request::Commit { ownership, seq, wall, batch } => self.commit(id, ownership, seq, wall, batch),
            Request::GetMany(wanted) => self.find(id, wanted),
            Request::ScanDue { after, until, max } => {
                self.read_for_engine(id, Read::ScanDue { after, until, max });
            }
            Request::ScanFilter { filter, after, max } => {
                self.read_for_engine(id, Read::ScanFilter { filter, after, max });
            }
            Request::Count(histogram) => self.read_for_engine(id, Read::Count(histogram)),
            Request::Release { ownership } => self.release(id, ownership),
        }
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        for event in self.completions.take() {
            match event {
                Event::Job(outcome) => self.job_ended(outcome),
                Event::Read(no, seen) => self.read_ended(no, seen),
                Event::Inbox(page) => self.rows_came(page),
            }
        }
        replies.append(&mut self.replies);
    }

    fn validity(&self) -> Validity {
        match &self.phase {
            Phase::Owned(owned) => self.node.validity(&owned.incarnation),
            // If an engine still runs, it does not know yet that the shard was lost.
            Phase::Unowned => Validity::Lost,
            // The last answers of the engine have left.
            Phase::Acquiring { .. } | Phase::Releasing(_) => Validity::Valid,
        }
    }
}

impl QueueStore for PostgresStore {
    fn waits_for(&self) -> Option<String> {
        let held = self.holder.as_ref().filter(|_| !matches!(self.phase, Phase::Owned(_))).map(|holder| {
            let Holder { incarnation: _, name, address } = holder;
            if address.is_empty() {
                format!("`{name}` has the shard")
            } else {
                format!("`{name}` at {address} has the shard")
            }
        });
        let too_soon = self
            .is_too_soon
            .then(|| "the database may have lost who had the shard, so it is taken after a lease".to_owned());
        self.node.trouble().or_else(|| self.node.silence()).or(held).or(too_soon)
    }

    fn adoptions(&self) -> u64 {
        self.node.adoptions()
    }

    fn can_stall(&self) -> bool {
        true
    }

    fn take_rows(&mut self) -> Vec<InboxRow> {
        self.owned().map_or_else(Vec::new, |owned| owned.inbox.take())
    }

    fn row_ended(&mut self, row: u64, end: RowEnd) {
        let Phase::Owned(owned) = &mut self.phase else { return };
        match end {
            RowEnd::Taken => owned.inbox.ended(row),
            RowEnd::Later => owned.inbox.later(row),
            RowEnd::Refused { why } => {
                // Before the next question, so that the next read leaves the row out.
                self.node.inbox().refuse([Refusal { claim: owned.claim, row: row.cast_signed(), why }]);
                owned.inbox.ended(row);
            }
        }
        self.ask_for_rows();
    }
}

fn page(rows: Vec<TaskRow>, more: bool, reader: &mut RecordReader) -> Result<Page, RecordError> {
    let read = |row: TaskRow| reader.task(&row.record, &row.body).map(Arc::new);
    let tasks: Vec<Arc<Task>> = rows.into_iter().map(read).collect::<Result<_, _>>()?;
    let next = tasks.last().filter(|_| more).map(|task| DueKey::of(task));
    Ok(Page { tasks, next })
}

fn counts_of(histogram: &DueHistogram, dues: &[(i64, u64)], counted: Option<i64>) -> Reply {
    let mut counts = vec![0; histogram.grid.buckets()];
    for (due_at, tasks) in dues {
        let bucket = Timestamp::from_ms(*due_at).and_then(|due_at| histogram.bucket(due_at));
        if let Some(bucket) = bucket {
            counts[bucket] += tasks;
        }
    }
    Reply::Counts { counts, counted: counted.and_then(Timestamp::from_ms) }
}
