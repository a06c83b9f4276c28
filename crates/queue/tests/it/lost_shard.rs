//! A queue over a store that loses its shard and gets it back: the thread that owns the shard goes on.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tickwheel_engine::{Reply, Request, RequestId, ShardStore, Validity};
use tickwheel_queue::{
    Key, ListQueues, OpenError, OpenStore, OpenedStore, Put, PutError, Queue, QueueName, QueueStore,
    Timestamp, Unavailable, WhichQueues,
};
use tickwheel_store::{Durability, MemoryStore, Wake};

/// The part of the store that the test holds in its hands.
struct Control {
    store: MemoryStore,
    replies: Vec<(RequestId, Reply)>,
    validity: Validity,
    is_free: bool,
    acquired: u32,
    /// Whether the store is a database, which an administrator can mend.
    can_stall: bool,
    /// Whether commits fail.
    fails: bool,
    /// Why commits get no reply; `None`: they get one.
    silent: Option<String>,
    wake: Option<Wake>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Control>>);

impl Shared {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Control {
            store: MemoryStore::new([7; 16]),
            replies: Vec::new(),
            validity: Validity::Lost,
            is_free: true,
            acquired: 0,
            can_stall: false,
            fails: false,
            silent: None,
            wake: None,
        })))
    }

    /// Changes the store, and wakes the thread that polls it.
    fn change(&self, change: impl FnOnce(&mut Control)) {
        let mut control = self.0.lock().expect("no test panics with it");
        change(&mut control);
        control.wake.as_ref().expect("it is open")();
    }

    fn acquired(&self) -> u32 {
        self.0.lock().expect("no test panics with it").acquired
    }
}

impl OpenStore for Shared {
    type Store = Self;
    type Error = OpenError;

    fn open(self, wake: Wake) -> Result<OpenedStore<Self>, OpenError> {
        self.0.lock().expect("no test panics with it").wake = Some(wake);
        Ok(OpenedStore {
            store: self,
            last_wall: Timestamp::EPOCH,
            identity: "0123456789abcdef".to_owned(),
            durability: Durability::Memory,
            recovery: None,
            directory: None,
            shared: None,
        })
    }
}

impl ShardStore for Shared {
    fn submit(&mut self, id: RequestId, request: Request) {
        let mut control = self.0.lock().expect("no test panics with it");
        if matches!(request, Request::Acquire { .. }) {
            if !control.is_free {
                return control.replies.push((id, Reply::Held));
            }
            control.acquired += 1;
            control.validity = Validity::Valid;
        }
        if control.fails && matches!(request, Request::Commit { .. }) {
            return control.replies.push((id, Reply::Failed { why: "the tables are gone".to_owned() }));
        }
        if control.silent.is_some() && matches!(request, Request::Commit { .. }) {
            return;
        }
        let Control { store, replies, .. } = &mut *control;
        store.submit(id, request);
        store.poll(replies);
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        replies.append(&mut self.0.lock().expect("no test panics with it").replies);
    }

    fn validity(&self) -> Validity {
        self.0.lock().expect("no test panics with it").validity
    }
}

impl QueueStore for Shared {
    fn can_stall(&self) -> bool {
        self.0.lock().expect("no test panics with it").can_stall
    }

    fn waits_for(&self) -> Option<String> {
        self.0.lock().expect("no test panics with it").silent.clone()
    }
}

fn put(queue: &Queue, key: &str) -> Result<bool, PutError> {
    let name = QueueName::new("q").expect("a name");
    let stored = queue.put(Put::new(&name, Key::new(key).expect("a key"))).wait()?;
    Ok(stored.created)
}

/// Waits until `is_so`, for at most 20 s.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "{what} did not come");
        std::thread::yield_now();
    }
}

#[test]
fn a_queue_goes_on_when_its_shard_comes_back() {
    let store = Shared::new();
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    let tube = QueueName::new("tube").expect("a name");
    let _in_use = queue.use_queue(&tube);
    assert_eq!(put(&queue, "a"), Ok(true));

    store.change(|control| {
        (control.validity, control.is_free) = (Validity::Lost, false);
    });
    until("a refusal", || match put(&queue, "b") {
        Err(PutError::Unavailable(Unavailable::Unowned)) => true,
        // The put was on its way when the shard was lost.
        Err(PutError::Unavailable(Unavailable::Indeterminate { .. })) | Ok(_) => false,
        Err(other) => panic!("a put was refused with {other}"),
    });
    assert!(!queue.health().ready);

    store.change(|control| control.is_free = true);
    until("the shard", || put(&queue, "c").is_ok());
    assert_eq!(store.acquired(), 2);
    assert!(queue.health().ready);
    assert_eq!(put(&queue, "a"), Ok(false), "what was acknowledged is there");
    let queues = queue
        .queues(ListQueues { which: WhichQueues::InUse, ..ListQueues::default() })
        .wait()
        .expect("they are listed");
    assert!(queues.queues.iter().any(|counts| counts.queue == tube), "a queue in use is there again");
    queue.close();
}

/// A monitoring system takes a count that falls for a restart, and counts its whole value again.
#[test]
fn counts_of_events_go_on_when_the_shard_comes_back() {
    let store = Shared::new();
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    let stats = || queue.stats(ListQueues::default()).wait().expect("the queue answers");
    assert_eq!((put(&queue, "a"), put(&queue, "b")), (Ok(true), Ok(true)));
    let before = stats();
    assert_eq!((before.scheduled_total, before.page.queues[0].figures.put), (2, 2));

    store.change(|control| control.validity = Validity::Lost);
    until("the shard", || store.acquired() == 2 && queue.health().ready);
    assert_eq!(put(&queue, "c"), Ok(true));
    let after = stats();
    assert_eq!((after.scheduled_total, after.forgotten.put), (3, 2), "earlier engines have their figures");
    let counts = &after.page.queues[0];
    assert_eq!(counts.figures.put, 1);
    assert!(counts.appeared > before.queues_appeared, "it is another queue of that name");
    queue.close();
}

#[test]
fn a_database_that_failed_is_tried_again_and_a_disk_is_not() {
    for is_database in [false, true] {
        let store = Shared::new();
        store.0.lock().expect("no test panics with it").can_stall = is_database;
        let queue = Queue::options().open_store(store.clone()).expect("it opens");
        assert_eq!(put(&queue, "a"), Ok(true));
        store.change(|control| control.fails = true);
        let refused = put(&queue, "b").expect_err("the commit fails");
        assert!(refused.to_string().contains("the tables are gone"), "{refused}");
        store.change(|control| control.fails = false);
        if is_database {
            until("the database is tried again", || put(&queue, "c").is_ok());
            assert_eq!((store.acquired(), queue.health().read_only), (2, None));
        } else {
            let refused = put(&queue, "c");
            let is_read_only = matches!(refused, Err(PutError::Unavailable(Unavailable::ReadOnly { .. })));
            assert!(is_read_only && queue.health().read_only.is_some(), "{refused:?}");
            assert_eq!(store.acquired(), 1);
        }
        queue.close();
    }
}

/// The story: a database had failed, and then another server took the shards. `/readyz` still told of the failure, and counted the shards as served.
#[test]
fn a_shard_that_is_lost_is_not_read_only() {
    let store = Shared::new();
    store.0.lock().expect("no test panics with it").can_stall = true;
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    assert_eq!(put(&queue, "a"), Ok(true));
    store.change(|control| (control.fails, control.is_free) = (true, false));
    put(&queue, "b").expect_err("the commit fails");
    until("the loss", || put(&queue, "c") == Err(PutError::Unavailable(Unavailable::Unowned)));
    // The turn that loses the shard answers its calls first, and then writes the health.
    until("the health tells of the loss and of no failure", || {
        let health = queue.health();
        (health.ready, health.read_only) == (false, None)
    });
    queue.close();
}

/// The caller of a put learns why its outcome is unknown: the store knows for what it waits.
#[test]
fn a_call_whose_store_is_silent_is_told_what_the_store_waits_for() {
    let store = Shared::new();
    store.0.lock().expect("no test panics with it").can_stall = true;
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    assert_eq!(put(&queue, "a"), Ok(true));
    store.change(|control| control.silent = Some("the database does not answer".to_owned()));
    let (tell, told) = std::sync::mpsc::channel();
    let caller = queue.clone();
    std::thread::spawn(move || tell.send(put(&caller, "b")));
    let ended = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("the put ends");
    let Err(PutError::Unavailable(Unavailable::Indeterminate { why })) = ended else {
        panic!("the put ended with {ended:?}")
    };
    assert_eq!(&*why, "the store did not confirm the call within 5 s (the database does not answer)");
    queue.close();
}

#[test]
fn a_wait_ends_when_the_shard_is_lost_and_a_close_does_not_hang() {
    let store = Shared::new();
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    let name = QueueName::new("q").expect("a name");
    let waiting = queue.lease(tickwheel_queue::Lease::new(&name), Duration::MAX);
    store.change(|control| {
        (control.validity, control.is_free) = (Validity::Lost, false);
    });
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(waiting.wait()));
    let ended = told.recv_timeout(tickwheel_testing::HANG_TIME).expect("the wait ends");
    match ended {
        Err(Unavailable::Unowned) => {}
        Err(Unavailable::Indeterminate { why }) => {
            assert_eq!(&*why, "this process lost the shard of the queue before it answered the call");
        }
        other => panic!("the wait ended with {other:?}"),
    }
    queue.close();
}

#[test]
fn calls_are_refused_while_the_ownership_is_in_doubt() {
    let store = Shared::new();
    let queue = Queue::options().open_store(store.clone()).expect("it opens");
    store.change(|control| control.validity = Validity::InDoubt);
    until("the doubt", || !queue.health().ready);
    assert_eq!(put(&queue, "a"), Err(PutError::Unavailable(Unavailable::Unowned)));
    store.change(|control| control.validity = Validity::Valid);
    until("the renewal", || queue.health().ready);
    assert_eq!(put(&queue, "a"), Ok(true));
    assert_eq!(store.acquired(), 1, "it was owned all the time");
}

#[test]
fn a_queue_over_a_store_without_files_has_no_backup() {
    let queue = Queue::options().open_store(Shared::new()).expect("it opens");
    let target = tempfile::tempdir().expect("a directory");
    let refused = queue.backup(target.path().join("copy"));
    assert!(matches!(refused, Err(tickwheel_queue::BackupError::InMemory)), "{refused:?}");
}
