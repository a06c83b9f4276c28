//! [`Pin`]: a backup asks the shard thread to pin the files that it copies.

use tickwheel_engine::Timestamp;
use tickwheel_store::{BackupPin, PinnedFiles};

/// A request of a backup to the thread that owns the store.
#[derive(Debug)]
pub(crate) enum Pin {
    /// Pin the files that a copy needs. The answer says which files these are, if the store has files, and since when they are pinned.
    Begin(oneshot::Sender<(Option<PinnedFiles>, Timestamp)>),
    /// Unpin the files. Tell the backup, if it still waits, that they were pinned until now.
    End(Option<oneshot::Sender<()>>),
}

impl Pin {
    /// Pins or unpins. The calling thread also sends the answers of the queue, so every answer before `now` came before the pin.
    pub(crate) fn carry_out(self, files: Option<&mut dyn BackupPin>, now: Timestamp) {
        match (self, files) {
            (Self::Begin(reply), Some(files)) => {
                if reply.send((Some(files.pin()), now)).is_err() {
                    // The backup has ended.
                    files.unpin();
                }
            }
            (Self::Begin(reply), None) => {
                let _gone = reply.send((None, now));
            }
            (Self::End(reply), files) => {
                if let Some(files) = files {
                    files.unpin();
                }
                if let Some(reply) = reply {
                    let _gone = reply.send(());
                }
            }
        }
    }
}
