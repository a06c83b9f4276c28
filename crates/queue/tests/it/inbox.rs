//! Rows of a store's inbox become calls, under the same rules as other calls.

use std::convert::Infallible;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tickwheel_engine::{
    Reply, Request, RequestId, RowAct, ShardId, ShardStore, TakeRow, Timestamp, Validity,
};
use tickwheel_queue::{
    Body, Durability, Get, Key, Notice, OpenStore, OpenedStore, Options, Put, PutError, Queue, QueueName,
    QueueStore, Unavailable,
};
use tickwheel_store::{InboxRow, MemoryStore, RowEnd, Wake};

/// The inbox, between the test and the store.
#[derive(Clone, Default)]
struct Inbox(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    rows: Vec<InboxRow>,
    ended: Vec<(u64, RowEnd)>,
    validity: Option<Validity>,
    wake: Option<Wake>,
}

impl Inbox {
    fn change<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        let mut inside = self.0.lock().expect("no thread panics while it holds the inbox");
        let changed = change(&mut inside);
        inside.wake.iter().for_each(|wake| wake());
        changed
    }

    fn add(&self, row: InboxRow) {
        self.change(|inside| inside.rows.push(row));
    }

    /// Waits until this many rows have ended, and returns how.
    #[track_caller]
    fn ended(&self, count: usize) -> Vec<(u64, RowEnd)> {
        let begun = Instant::now();
        loop {
            let ended = self.change(|inside| inside.ended.clone());
            if ended.len() >= count {
                return ended;
            }
            assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "{ended:?}");
            std::thread::yield_now();
        }
    }
}

/// A memory store with an inbox.
struct InboxStore {
    store: MemoryStore,
    inbox: Inbox,
}

impl ShardStore for InboxStore {
    fn submit(&mut self, id: RequestId, request: Request) {
        self.store.submit(id, request);
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        self.store.poll(replies);
    }

    fn validity(&self) -> Validity {
        let inside = self.inbox.0.lock().expect("no thread panics while it holds the inbox");
        inside.validity.unwrap_or(Validity::Valid)
    }
}

impl QueueStore for InboxStore {
    fn take_rows(&mut self) -> Vec<InboxRow> {
        let mut inside = self.inbox.0.lock().expect("no thread panics while it holds the inbox");
        std::mem::take(&mut inside.rows)
    }

    fn row_ended(&mut self, row: u64, end: RowEnd) {
        let mut inside = self.inbox.0.lock().expect("no thread panics while it holds the inbox");
        inside.ended.push((row, end));
    }
}

struct Opener {
    shard: ShardId,
    inbox: Inbox,
}

impl OpenStore for Opener {
    type Store = InboxStore;
    type Error = Infallible;

    fn open(self, wake: Wake) -> Result<OpenedStore<InboxStore>, Infallible> {
        let Self { shard, inbox } = self;
        inbox.change(|inside| inside.wake = Some(wake));
        let store = MemoryStore::new([7; 16]).with_shard(shard);
        Ok(OpenedStore {
            store: InboxStore { store, inbox },
            last_wall: Timestamp::EPOCH,
            identity: "0123456789abcdef".to_owned(),
            durability: Durability::Memory,
            recovery: None,
            directory: None,
            shared: None,
        })
    }
}

fn open(options: Options, shards: u32) -> (Queue, Vec<Inbox>) {
    let inboxes: Vec<Inbox> = (0..shards).map(|_| Inbox::default()).collect();
    let openers = (0..shards).zip(&inboxes).map(|(number, inbox)| {
        let shard = ShardId::new(number, shards).expect("it is one");
        Opener { shard, inbox: inbox.clone() }
    });
    (options.open_shards(openers.collect()).expect("it opens"), inboxes)
}

fn queue_name() -> QueueName {
    QueueName::new("mail").expect("a name")
}

fn put_row(id: u64) -> InboxRow {
    let act = RowAct::Put { due_at: Timestamp::EPOCH, put_at: Timestamp::EPOCH, body: Body::default() };
    let key = Key::new(&format!("k{id}")).expect("a key");
    InboxRow { id, asked: Ok(TakeRow { row: id, queue: queue_name(), key, act }) }
}

fn has(queue: &Queue, id: u64) -> bool {
    queue.get(Get::new(&queue_name(), Key::new(&format!("k{id}")).expect("a key"))).wait().is_ok()
}

#[test]
fn a_row_is_taken_and_a_bad_one_is_refused_counted_and_told() {
    let (tell, told) = channel();
    let options = Queue::options().on_notice(move |notice| drop(tell.send(notice)));
    let (queue, inboxes) = open(options, 1);
    inboxes[0].add(put_row(1));
    inboxes[0].add(InboxRow { id: 2, asked: Err("it is bad".to_owned()) });
    let mut ended = inboxes[0].ended(2);
    ended.sort_by_key(|(row, _)| *row);
    assert_eq!(ended, [(1, RowEnd::Taken), (2, RowEnd::Refused { why: "it is bad".to_owned() })]);
    assert!(has(&queue, 1));
    let notice = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("it is told");
    assert_eq!(notice, Notice::RowRefused { row: 2, why: "it is bad".into() });
    // The answer to the look at the task came at the end of a later turn.
    assert_eq!(queue.health().rows_refused, 1);
}

/// The functions in the database compute the shard by the same rule, so only a row that was made by hand can be wrong.
#[test]
fn a_row_of_another_shard_is_refused() {
    let (queue, inboxes) = open(Queue::options(), 3);
    inboxes[0].add(put_row(1));
    let [(1, RowEnd::Refused { why })] = &inboxes[0].ended(1)[..] else { panic!("another end") };
    assert_eq!(why, "the queue belongs to shard 2 of 3, and the row names shard 0 of 3");
    inboxes[2].add(put_row(1));
    assert_eq!(inboxes[2].ended(1), [(1, RowEnd::Taken)]);
    assert!(has(&queue, 1));
}

#[test]
fn rows_wait_while_the_ownership_is_in_doubt() {
    let (queue, inboxes) = open(Queue::options(), 1);
    inboxes[0].change(|inside| inside.validity = Some(Validity::InDoubt));
    let put = || queue.put(Put::without_key(&queue_name())).wait();
    // A call that comes before the doubt is noticed waits for its end.
    let begun = Instant::now();
    while queue.health().ready {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "the doubt is noticed");
    }
    inboxes[0].add(put_row(1));
    // The second call is received after a turn that had the row before it.
    let unowned = Err(PutError::Unavailable(Unavailable::Unowned));
    let puts = [put(), put()];
    let rows = inboxes[0].change(|inside| (inside.rows.len(), inside.ended.len()));
    // A queue in doubt does not close, so the doubt ends before anything can fail.
    inboxes[0].change(|inside| inside.validity = None);
    assert_eq!((puts, rows), ([unowned.clone(), unowned], (1, 0)));
    assert_eq!(inboxes[0].ended(1), [(1, RowEnd::Taken)]);
    assert!(has(&queue, 1));
}

/// The queue forgets the rows of the lost ownership, and a row of the next one has its own end.
#[test]
fn a_shard_that_was_lost_takes_rows_again_once_it_is_back() {
    let (queue, inboxes) = open(Queue::options(), 1);
    inboxes[0].change(|inside| inside.validity = Some(Validity::Lost));
    let begun = Instant::now();
    while queue.health().ready {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "the loss is noticed");
    }
    inboxes[0].add(put_row(1));
    assert_eq!(inboxes[0].change(|inside| inside.ended.len()), 0);
    inboxes[0].change(|inside| inside.validity = None);
    assert_eq!(inboxes[0].ended(1), [(1, RowEnd::Taken)]);
    assert!(has(&queue, 1));
}
