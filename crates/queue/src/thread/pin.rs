//! [`Pin`]: the request of a backup to the shard thread to pin, or to unpin, the files of the store.

use tickwheel_engine::Timestamp;
use tickwheel_store::{BackupPin, PinnedFiles};

/// A request of a backup to the thread that owns the store.
#[derive(Debug)]
pub(crate) enum Pin {
    /// Pin the files that a copy needs. The answer has the list of pinned files (`None`: the store has no files), and the instant of the
    /// pin.
    Begin(oneshot::Sender<(Option<PinnedFiles>, Timestamp)>),
    /// Unpin the files. There is a sender if a backup waits for the answer, which proves that the files were pinned until this request.
    End(Option<oneshot::Sender<()>>),
}

impl Pin {
    /// Pins or unpins `files`, and answers the backup if it waits. The calling thread also sends the answers of the queue, so every answer
    /// that was sent before `now` was sent before the pin.
    pub(crate) fn carry_out(self, files: Option<&mut dyn BackupPin>, now: Timestamp) {
        match (self, files) {
            (Self::Begin(reply), Some(files)) => {
                if reply.send((Some(files.pin()), now)).is_err() {
                    // The backup has ended, and does not copy the files.
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
