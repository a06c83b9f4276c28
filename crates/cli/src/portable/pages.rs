//! [`Pages`]: the lines of a data directory, as an export writes them, for an import.

use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use tickwheel_api::ExportQuery;
use tickwheel_queue::Queue;
use tickwheel_server::transfer::Exporter;

use super::directory;

/// Reads the lines of a directory. A thread of its own exports them, because the import runs in a runtime already.
///
/// Memory: two pages of an export.
#[derive(Debug)]
pub(crate) struct Pages {
    pages: Option<Receiver<io::Result<Vec<u8>>>>,
    page: Vec<u8>,
    /// The bytes of the page that were read.
    read: usize,
    thread: Option<JoinHandle<()>>,
}

impl Pages {
    /// Opens a data directory. It is locked until the value is dropped.
    ///
    /// # Errors
    /// The path is no data directory, or cannot be opened.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let queue = directory::open(directory)?;
        let (sender, pages) = sync_channel(0);
        let thread = std::thread::Builder::new().name("export".to_owned()).spawn(move || {
            let exported = directory::wait_for(export(&queue, &sender));
            if let Ok(Err(error)) | Err(error) = exported {
                // The reader may have ended before.
                let _unread = sender.send(Err(io::Error::other(error)));
            }
            queue.close();
        });
        let thread = thread.context("failed to start")?;
        Ok(Self { pages: Some(pages), page: Vec::new(), read: 0, thread: Some(thread) })
    }
}

async fn export(queue: &Queue, pages: &SyncSender<io::Result<Vec<u8>>>) -> Result<()> {
    let told = |problem: Box<tickwheel_api::Problem>| anyhow::anyhow!(problem.detail);
    let all = ExportQuery { queue: None, cursor: None };
    let mut exporter = Exporter::new(queue.clone(), &all).map_err(told)?;
    while let Some(lines) = exporter.next().await.map_err(told)? {
        if pages.send(Ok(lines)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

impl Read for Pages {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.page.len() {
            let next = self.pages.as_ref().and_then(|pages| pages.recv().ok());
            let Some(page) = next else { return Ok(0) };
            (self.page, self.read) = (page?, 0);
        }
        let count = into.len().min(self.page.len() - self.read);
        into[..count].copy_from_slice(&self.page[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // The thread ends at its next page, and then closes the directory.
        self.pages = None;
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
