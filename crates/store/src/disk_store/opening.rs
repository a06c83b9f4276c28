//! The opening of a directory as a store.

use std::path::Path;

use super::closing::Closing;
use super::log_writer::LogWriter;
use super::maintenance::Maintenance;
use super::reader::Reader;
use super::setup::Setup;
use super::store::{DiskStore, Outside};
use crate::checksum::Seeds;
use crate::clock_note::ClockNote;
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::io::{Io, ThreadIo, ZEROES_MAX};
use crate::layout::{META, SHARD};
use crate::log::{Files, HEAD_BYTES, Progress, Sizes, Spare, frame_bytes};
use crate::meta::{self, Meta};
use crate::newest;
use crate::options::StoreOptions;
use crate::recovery::{Recovered, recover};
use crate::report::RecoveryReport;
use crate::stamp::Stamps;

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Locks the directory `disk`, makes a store of it if it has none, and reads the latest checkpoint and the log after it. The opening
    /// runs on the thread of the caller. At the end, `io` takes the disk over.
    ///
    /// An unfinished frame at the end of the log is left out, see [`recovery_report`](Self::recovery_report). A crash during an opening
    /// loses nothing, however often it happens: an opening keeps the files that the next opening needs, and the next frame goes to another
    /// file.
    ///
    /// # Errors
    /// [`OpenError`]. Unless the error is an [`OpenError::Io`], nothing in the directory was changed, but the lock file may be new.
    pub fn open(mut disk: D, mut io: I, options: StoreOptions) -> Result<Self, OpenError> {
        let options = options.in_range();
        meta::check_place(&mut disk)?;
        disk.lock().map_err(|error| match error.source.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::Locked { place: error.file },
            _ => OpenError::Io(error),
        })?;
        let (meta, created) = match meta::read(&mut disk, &options)? {
            Some(meta) => (meta, false),
            None => (meta::create(&mut disk, &options)?, true),
        };
        let seeds = Seeds::new(meta.secret);
        let recovered = recover(&mut disk, &meta, options.history, &options.bounds)?;
        if meta.has_log && recovered.kept.is_empty() && recovered.spares.is_empty() {
            return Err(OpenError::corrupt(SHARD, 0, "it has no log file, and it had one"));
        }
        // The root of several shards compares and renews the stamps of all of them.
        let is_only = options.shard.count() == 1;
        let stamps = is_only.then(|| Stamps::find(&mut disk, options.secret, vec![SHARD.to_owned()]));
        let mut stamps = stamps.transpose()?;
        // The name of a new file is synced with those of the files that are made ready.
        let clock = ClockNote::take(&mut disk)?;
        let files = make_ready(&mut disk, &recovered, seeds, &options)?;
        let meta = if meta.has_log { meta } else { meta::write(&mut disk, Meta { has_log: true, ..meta })? };
        stamps.as_mut().map_or(Ok(()), |stamps| stamps.renew(&mut disk))?;
        let Recovered { mut catalog, last, checkpoint, checkpoint_number, report, .. } = recovered;
        catalog.segments.skip_generations(recovered.segment_generation);
        let free_bytes = disk.free_bytes();
        io.start(disk);
        Ok(Self {
            setup: Setup { options, secret: meta.secret, seeds },
            report: RecoveryReport { created, ..report },
            catalog,
            writer: LogWriter::new(meta.shard, files, last, recovered.body_floor),
            reader: Reader::new(),
            maintenance: Maintenance::new(checkpoint, checkpoint_number),
            outside: Outside::new(io, free_bytes),
            clock,
            closing: Closing::new(stamps),
        })
    }
}

impl DiskStore<FsDisk, ThreadIo> {
    /// Opens a directory of the file system, with threads of the store's own for the calls to the disk. These threads call `notify` after
    /// each job, because the next [`poll`](tickwheel_engine::ShardStore::poll) may bring a reply. `notify` must not block.
    ///
    /// ```
    /// use tickwheel_engine::{Reply, Request, RequestId, ShardId, ShardStore, Timestamp};
    /// use tickwheel_store::{DiskStore, StoreOptions};
    ///
    /// # let dir = std::env::temp_dir().join(format!("tickwheel-doc-{}", std::process::id()));
    /// let (wake, woken) = std::sync::mpsc::channel();
    /// let notify = Box::new(move || drop(wake.send(())));
    /// let mut store = DiskStore::open_dir(&dir, StoreOptions::new([7; 16]), notify)?;
    /// store.submit(RequestId(1), Request::Acquire { shard: ShardId::ONLY, wall: Timestamp::EPOCH });
    /// let mut replies = Vec::new();
    /// while replies.is_empty() {
    ///     woken.recv()?;
    ///     store.poll(&mut replies);
    /// }
    /// assert!(matches!(replies[..], [(RequestId(1), Reply::Acquired(_))]));
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and an error if the directory can neither be found nor made.
    pub fn open_dir(
        path: impl AsRef<Path>,
        options: StoreOptions,
        notify: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, OpenError> {
        let disk = FsDisk::new(path.as_ref())?;
        Self::open(disk, ThreadIo::new(notify), options)
    }
}

/// Removes files that the recovery did not need, and prepares a log file for the first frame. Spare log files stay, unless they are shorter
/// than a new log file. A crash may leave any part of this work done. The next recovery reads the same records in any case.
fn make_ready<D: Disk>(
    disk: &mut D,
    recovered: &Recovered,
    seeds: Seeds,
    options: &StoreOptions,
) -> Result<Files, DiskError> {
    meta::remove_unfinished(disk, META)?;
    // The last process may have seen a file name that is not durable yet. The next steps rely on the names, so they are synced first.
    disk.sync_dir("")?;
    disk.sync_dir(SHARD)?;
    if recovered.last.durable + 1 < recovered.last.frame {
        // The last process may have written bytes without a sync before it ended. These bytes may not be durable either.
        for file in &recovered.kept {
            disk.sync_data(&file.name)?;
        }
    }
    let mut spares = recovered.spares.clone();
    // If a crash came while a log file was being filled with zeroes, the file is shorter than a log file has to be.
    let is_short = |spare: &mut Spare| spare.len < options.log_file_bytes;
    let short: Vec<Spare> = spares.extract_if(.., is_short).collect();
    for name in &recovered.removable {
        disk.remove(name)?;
    }
    // The note of the newest log file may name a file that was prepared and never used. That file may be used again or removed below, so
    // the note must name another file first.
    let kept = recovered.newest_kept();
    if recovered.newest.is_some_and(|newest| newest.file != kept.file) {
        newest::write_at_opening(disk, &kept.calls(&seeds))?;
    }
    for spare in &short {
        disk.remove(&spare.name)?;
    }
    // The name of a removed segment may be used again. The removals are made durable first, so that a crash cannot bring the old file back.
    disk.sync_dir(SHARD)?;
    let again = recovered.last.again.as_ref().map_or(0, |(_, ops)| ops.len());
    let first_frame = Some(frame_bytes(again) as u64);
    debug_assert!(frame_bytes(again) >= HEAD_BYTES);
    let mut files = Files::new(
        seeds,
        Sizes { file_bytes: options.log_file_bytes, spares_max: options.bounds.spare_files },
        recovered.kept.clone(),
        spares,
        Progress {
            generation: recovered.generation,
            number: recovered.log_number,
            synced: kept.frame,
            newest: kept.file,
        },
    );
    while files.wants_preparation(first_frame) {
        newest::write_at_opening(disk, &files.preparation_step(first_frame, ZEROES_MAX))?;
        files.step_done();
    }
    newest::set_aside(disk)?;
    Ok(files)
}
