//! [`Reply`]: the way back to the caller of a call.

use oneshot::{Receiver, Sender, channel};

use crate::panics::Panics;

/// Sends one value to a caller. If it is dropped before, the caller learns that no value comes.
///
/// Both wake the caller, which runs the waker of the caller's executor on this thread. A waker may panic, so its panic is caught and counted.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    /// `None` once the value was sent.
    sender: Option<Sender<T>>,
    panics: Panics,
}

impl<T> Reply<T> {
    /// Makes the two ends of the way.
    pub(crate) fn new(panics: Panics) -> (Self, Receiver<T>) {
        let (sender, receiver) = channel();
        (Self { sender: Some(sender), panics }, receiver)
    }

    /// Sends the value. If the caller has gone, the value is dropped.
    pub(crate) fn send(mut self, value: T) {
        if let Some(sender) = self.sender.take() {
            self.panics.catch(|| drop(sender.send(value)));
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            self.panics.catch(|| drop(sender));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(PanicsAtDrop);
        }
    }

    struct PanicsAtDrop;

    impl Drop for PanicsAtDrop {
        fn drop(&mut self) {
            panic!("the payload is dropped");
        }
    }

    /// The story: a thread of a queue ended while two callers waited. The wakers of both panicked, the second one while the panic of the first
    /// one went on, which ends the process.
    #[test]
    fn a_waker_that_panics_stops_no_reply_after_it() {
        let panics = Panics::default();
        let waker = Waker::from(Arc::new(Panicking));
        let (mut replies, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (reply, receiver) = Reply::<u8>::new(panics.clone());
            let mut receiver = receiver.into_future();
            assert!(Pin::new(&mut receiver).poll(&mut Context::from_waker(&waker)).is_pending());
            replies.push(reply);
            receivers.push(receiver);
        }
        replies.pop().expect("a reply").send(7);
        drop(replies);
        assert_eq!(panics.count(), 3);
        let mut context = Context::from_waker(Waker::noop());
        let received = receivers.iter_mut().map(|receiver| Pin::new(receiver).poll(&mut context));
        let expected = [Err(oneshot::RecvError), Err(oneshot::RecvError), Ok(7)].map(Poll::Ready);
        assert!(received.eq(expected));
    }
}
