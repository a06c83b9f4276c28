//! The two stores that this crate opens by itself: a directory and memory.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_engine::{ShardId, Timestamp};
use tickwheel_store::{
    DiskStore, Durability, FsDisk, MemoryStore, OpenError, OpenStore, OpenedStore, StoreOptions, ThreadIo,
    Wake,
};

use crate::backup::{Manifest, identity};

/// How many times an opening tries again to lock a directory that is in use. A `doctor` locks the directory for a moment only.
const TRIES: u32 = 10;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A data directory.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The directory that has the identity of the data: this one, or the root of several shards.
    pub(crate) root: PathBuf,
    pub(crate) options: StoreOptions,
}

impl OpenStore for Directory {
    type Store = DiskStore<FsDisk, ThreadIo>;
    type Error = OpenError;

    fn open(self, wake: Wake) -> Result<OpenedStore<Self::Store>, OpenError> {
        let Self { path, root, options } = self;
        let durability = Durability::from(options.ack_level);
        let wake: Arc<dyn Fn() + Send + Sync> = wake.into();
        let mut tries = 0;
        let store = loop {
            let wake = Arc::clone(&wake);
            match DiskStore::open_dir(&path, options.clone(), Box::new(move || wake())) {
                Err(OpenError::Locked { .. }) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(TRY_AGAIN_AFTER);
                }
                opened => break opened?,
            }
        };
        // A directory that was opened is no longer a backup, because it changes from now on. So the manifest of the backup is removed. If
        // it cannot be removed, `doctor` reports that the directory differs from the manifest.
        let _absent = std::fs::remove_file(path.join(Manifest::FILE));
        Ok(OpenedStore {
            last_wall: store.last_wall(),
            identity: identity(&root)?.unwrap_or_default(),
            durability,
            recovery: Some(store.recovery_report().clone()),
            // The path is made absolute, because the process may change its working directory.
            directory: Some(std::path::absolute(&path).unwrap_or(path)),
            store,
            shared: None,
        })
    }
}

/// The store in memory. Its tasks are gone when the queue ends.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) secret: [u8; 16],
    pub(crate) identity: u128,
    pub(crate) shard: ShardId,
}

impl OpenStore for Memory {
    type Store = MemoryStore;
    type Error = Infallible;

    fn open(self, _wake: Wake) -> Result<OpenedStore<MemoryStore>, Infallible> {
        Ok(OpenedStore {
            store: MemoryStore::new(self.secret).with_shard(self.shard),
            last_wall: Timestamp::EPOCH,
            identity: format!("{:016x}", self.identity >> 64),
            durability: Durability::Memory,
            recovery: None,
            directory: None,
            shared: None,
        })
    }
}
