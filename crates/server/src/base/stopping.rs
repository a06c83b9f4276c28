//! The one signal that ends everything that waits.

use tokio::sync::watch;

/// Gives the signal. Dropping it gives it, too: nobody waits for a server that is gone.
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
    /// Returns once the signal is given, at once if it was given before.
    pub(crate) async fn wait(&self) {
        // An error means that the sender is gone: a signal, as its doc says.
        let mut signal = self.0.clone();
        let _given = signal.wait_for(|given| *given).await;
    }

    pub(crate) fn is_given(&self) -> bool {
        // The sender is gone: a signal, too.
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}
