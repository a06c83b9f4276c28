//! A directory in memory that can be looked at after a store had it.

use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_store::{Disk, DiskError};

use crate::disk::Image;

/// One image for all its hands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Image>>);

impl Shared {
    pub(crate) fn of(image: Image) -> Self {
        Self(Arc::new(Mutex::new(image)))
    }

    pub(crate) fn image(&self) -> Image {
        self.get().clone()
    }

    fn get(&self) -> MutexGuard<'_, Image> {
        self.0.lock().expect("no test goes on after a panic")
    }
}

impl Disk for Shared {
    fn lock(&mut self) -> Result<(), DiskError> {
        self.get().lock()
    }
    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.get().list(dir)
    }
    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.get().create_dir(dir)
    }
    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.get().create(file)
    }
    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.get().open(file)
    }
    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.get().len(file)
    }
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.get().read(file, offset, into)
    }
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.get().write_at(file, offset, bytes)
    }
    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        self.get().sync_data(file)
    }
    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.get().set_len(file, bytes)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.get().rename(from, to)
    }
    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.get().remove(file)
    }
    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.get().sync_dir(dir)
    }
    fn close(&mut self, file: &str) {
        self.get().close(file);
    }
    fn another(&self) -> Self {
        self.clone()
    }
    fn free_bytes(&mut self) -> u64 {
        1 << 40
    }
}
