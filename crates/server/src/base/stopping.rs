//! The one signal that ends all waiting.

use tokio::sync::watch;

/// Gives the signal. Dropping it gives the signal, too, because a server that is gone serves no call.
pub(crate) struct Stop(watch::Sender<bool>);

/// Waits for the signal. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Stopping(watch::Receiver<bool>);

/// A signal and its receiver.
pub(crate) fn signal() -> (Stop, Stopping) {
    let (sender, receiver) = watch::channel(false);
    (Stop(sender), Stopping(receiver))
}

impl Stop {
    pub(crate) fn give(&self) {
        self.0.send_replace(true);
    }
}

impl Stopping {
    /// Waits until the signal is given; returns at once if it was given before.
    pub(crate) async fn wait(&self) {
        // An error means that the sender is gone, which counts as the signal.
        let mut signal = self.0.clone();
        let _given = signal.wait_for(|given| *given).await;
    }

    pub(crate) fn is_given(&self) -> bool {
        // A sender that is gone counts as the signal, too.
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}
