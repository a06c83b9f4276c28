//! Code of the program on the threads of a queue: it may panic, close the queue, and ask it for the time.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_queue::{Key, Lease, OpenError, Options, Put, Queue, QueueName, StoreError, Stored};
use tickwheel_testing::HANG_TIME;

/// There is a notice after each turn, because no commit takes less than no time.
fn telling() -> Options {
    Queue::options().slow_commit(Duration::ZERO)
}

fn put(queue: &Queue, key: &str) -> Stored {
    let put = Put::new(&QueueName::new("q").expect("a name"), Key::new(key).expect("a key"));
    queue.put(put).wait().expect("the queue answers")
}

fn lease(wait: Duration) -> (Lease, Duration) {
    (Lease::new(&QueueName::new("q").expect("a name")), wait)
}

/// A waker that runs some code.
struct Runs<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Runs<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn waker(run: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Runs(run)))
}

/// Opens the directory again once it is free.
fn opened_again(directory: &std::path::Path) -> Queue {
    let begun = Instant::now();
    loop {
        match Queue::open(directory) {
            Err(OpenError::Store(StoreError::Locked { .. })) if begun.elapsed() < HANG_TIME => {
                thread::yield_now();
            }
            opened => return opened.expect("it is free"),
        }
    }
}

/// The story: the listener of the documentation wrote to the standard error, which was a full disk, and panicked. The queue was gone for all
/// callers.
#[test]
fn a_listener_that_panics_ends_nothing() {
    for shards in [1, 3] {
        let directory = tempfile::tempdir().expect("a directory");
        let (tell, told) = channel();
        let listen = move |notice| {
            drop(tell.send(notice));
            panic!("the standard error is full");
        };
        let queue = telling().shards(shards).on_notice(listen).open(directory.path()).expect("opened");
        put(&queue, "a");
        told.recv_timeout(HANG_TIME).expect("it is told");
        put(&queue, "b");
        told.recv_timeout(HANG_TIME).expect("it is told of the next notice, too");
        put(&queue, "c");
        assert!(queue.health().ready);
        queue.close();
        assert!(queue.health().panicked >= 2);
        let again = Queue::open(directory.path()).expect("it is free");
        assert!(!put(&again, "a").created);
    }
}

/// The story: one caller's executor panicked when a lease was answered, and the queue was gone for all callers.
#[test]
fn a_waker_that_panics_ends_nothing() {
    let queue = Queue::options().open_memory().expect("opened");
    let (tell, told) = channel();
    let waker = waker(move || {
        let _unheard = tell.send(());
        panic!("the executor has ended");
    });
    let mut context = Context::from_waker(&waker);
    let (call, wait) = lease(Duration::MAX);
    let mut first = pin!(queue.lease(call.clone(), wait));
    let mut second = pin!(queue.lease(call, wait));
    assert!(
        first.as_mut().poll(&mut context).is_pending() && second.as_mut().poll(&mut context).is_pending()
    );
    put(&queue, "a");
    put(&queue, "b");
    told.recv_timeout(HANG_TIME).expect("the first lease is answered");
    told.recv_timeout(HANG_TIME).expect("the second lease is answered");
    put(&queue, "c");
    for pending in [&mut first, &mut second] {
        let Poll::Ready(Ok(leased)) = pending.as_mut().poll(&mut context) else { panic!("it is answered") };
        assert_eq!(leased.len(), 1);
    }
    let health = queue.health();
    assert!(health.ready && health.panicked == 2, "{health:?}");
}

/// A stop answers the lease calls that wait, and drops what it cannot answer.
#[test]
fn a_waker_that_panics_at_the_stop_holds_nothing_up() {
    for shards in [1, 3] {
        let directory = tempfile::tempdir().expect("a directory");
        let queue = Queue::options().shards(shards).open(directory.path()).expect("opened");
        let waker = waker(|| panic!("the executor has ended"));
        let mut context = Context::from_waker(&waker);
        let mut waiting: Vec<_> = (0..4)
            .map(|number| {
                let name = QueueName::new(&format!("q{number}")).expect("a name");
                Box::pin(queue.lease(Lease::new(&name), Duration::MAX))
            })
            .collect();
        assert!(waiting.iter_mut().all(|lease| lease.as_mut().poll(&mut context).is_pending()));
        queue.close();
        assert_eq!(queue.health().panicked, 4);
        for mut lease in waiting {
            assert_eq!(lease.as_mut().poll(&mut context), Poll::Ready(Ok(Vec::new())));
        }
        Queue::open(directory.path()).expect("it is free");
    }
}

/// The story: a listener closed the queue after the store had failed. The thread waited for its own end.
#[test]
fn a_listener_closes_its_queue() {
    for shards in [1, 3] {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Arc::<Mutex<Option<Queue>>>::default();
        let (done, sign) = channel();
        let of_listener = Arc::clone(&place);
        let options = telling().shards(shards).on_notice(move |_| {
            if let Some(queue) = of_listener.lock().expect("no panic").take() {
                queue.close();
                let _unheard = done.send(());
            }
        });
        let queue = options.open(directory.path()).expect("opened");
        *place.lock().expect("no panic") = Some(queue.clone());
        // The listener may close the queue before this call is answered.
        let _unknown = queue.put(Put::without_key(&QueueName::new("q").expect("a name"))).wait();
        sign.recv_timeout(HANG_TIME).expect("the close returns");
        queue.close();
        assert_eq!(queue.health().panicked, 0);
        Queue::open(directory.path()).expect("a close outside waits for the end");
    }
}

/// The last handle may be the one that the listener drops.
#[test]
fn a_listener_drops_the_last_handle() {
    for shards in [1, 3] {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Arc::<Mutex<Option<Queue>>>::default();
        let (go, gone) = channel::<()>();
        let (done, sign) = channel();
        let (of_listener, gone) = (Arc::clone(&place), Mutex::new(gone));
        let options = telling().shards(shards).on_notice(move |_| {
            // The other handle is dropped when this sender is.
            let _dropped = gone.lock().expect("no panic").recv();
            let last = of_listener.lock().expect("no panic").take();
            if last.is_some() {
                drop(last);
                let _unheard = done.send(());
            }
        });
        let queue = options.open(directory.path()).expect("opened");
        *place.lock().expect("no panic") = Some(queue.clone());
        let name = QueueName::new("q").expect("a name");
        drop(queue.put(Put::without_key(&name)));
        drop((queue, go));
        sign.recv_timeout(HANG_TIME).expect("the drop returns");
        assert_eq!(sign.recv_timeout(HANG_TIME), Err(RecvTimeoutError::Disconnected), "the thread ends");
        opened_again(directory.path());
    }
}

/// An executor may drop a task when it is woken, and the task may have the last handle of the queue.
#[test]
fn a_waker_drops_the_last_handle() {
    let directory = tempfile::tempdir().expect("a directory");
    let queue = Queue::open(directory.path()).expect("opened");
    let place = Arc::new(Mutex::new(Some(queue.clone())));
    let (done, sign) = channel();
    let waker = waker(move || {
        drop(place.lock().expect("no panic").take());
        let _unheard = done.send(());
    });
    let (call, wait) = lease(Duration::MAX);
    let mut waiting = Box::pin(queue.lease(call, wait));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(queue);
    waiting.end_wait();
    sign.recv_timeout(HANG_TIME).expect("the drop returns");
    opened_again(directory.path());
}

/// The story: a task that awaited the virtual clock asked for the time when it was woken. The time was locked by the thread that woke it, and
/// both waited for ever.
#[test]
fn a_waker_asks_for_the_time() {
    let queue = Queue::options().virtual_clock().open_memory().expect("opened");
    // The waker of a lease holds the thread of the queue until the move is awaited.
    let ((entered, enters), (go, gone)) = (channel(), channel::<()>());
    let gone = Mutex::new(gone);
    let holding = waker(move || {
        let _unheard = entered.send(());
        let _dropped = gone.lock().expect("no panic").recv();
    });
    let (call, wait) = lease(Duration::MAX);
    let mut held = pin!(queue.lease(call, wait));
    assert!(held.as_mut().poll(&mut Context::from_waker(&holding)).is_pending());
    drop(queue.put(Put::without_key(&QueueName::new("q").expect("a name"))));
    enters.recv_timeout(HANG_TIME).expect("the lease is answered");

    let (tell, told) = channel();
    let (asked, begun) = (queue.clone(), queue.now());
    let asking = waker(move || {
        let _unheard = tell.send(asked.now());
    });
    let mut moving = queue.advance(Duration::from_secs(3_600)).into_future();
    assert!(moving.as_mut().poll(&mut Context::from_waker(&asking)).is_pending());
    drop(go);
    let now = told.recv_timeout(HANG_TIME).expect("the time is free");
    assert_eq!(now.ms_since(begun), 3_600_000);
}
