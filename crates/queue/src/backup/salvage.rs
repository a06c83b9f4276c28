//! [`salvage`]: makes a new data directory with everything that can still be read of a damaged directory.

use std::path::Path;

use tickwheel_engine::ShardId;
use tickwheel_store::doctor::Directory;
use tickwheel_store::salvage::{Progress, Report, read};
use tickwheel_store::{Disk, Members, OpenError, directory_of};

use super::copy::Copy;
use super::salvage_error::{SalvageError, hopeless, refused, unlisted};
use super::salvage_members::salvage_members;
use super::salvage_steps::{changed, check_written, of_another_moment, pinned, written};

/// Makes a new data directory `to` with everything that can still be read of `from`. `to` must be absent or empty. The report tells what
/// is lost.
///
/// `from` is not changed in any way. No process may have `from` open: a shared lock on `from` is held until the end. The new directory is
/// synced, and every record in it is read and checked. Until then the name of the new directory is `<to>.unfinished`. Ids, versions,
/// attempts, dead tasks, settings, schedules and the memory of ended tasks are kept.
///
/// The root of several shards is salvaged shard by shard. A shard of which nothing can be saved is a loss of the report, and gets an empty
/// directory, so that the new root opens.
///
/// ```no_run
/// use tickwheel_queue::backup::salvage;
///
/// let report = salvage("data".as_ref(), "data-salvaged".as_ref(), &mut |_| {})?;
/// for loss in &report.losses {
///     eprintln!("{} from byte {} on: {}", loss.file, loss.from, loss.what);
/// }
/// # Ok::<(), tickwheel_queue::backup::SalvageError>(())
/// ```
///
/// # Errors
/// [`SalvageError`].
pub fn salvage(from: &Path, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Report, SalvageError> {
    let mut directory = Directory::new(from).map_err(|error| unlisted(from, error))?;
    // The lock is held until the end, so that no server can start meanwhile and change the files.
    let pin = pinned(&directory)?;
    match Members::find(from) {
        Ok(Some(members)) => return salvage_members(&members, to, progress),
        Ok(None) => {}
        Err(OpenError::Io(source)) => return Err(refused(from, source)),
        Err(error) => return Err(hopeless(from, error)),
    }
    let names = directory.list("").map_err(|error| unlisted(from, error))?;
    if !names.iter().any(|name| name == "meta" || name == "shard-0000") {
        return Err(SalvageError::NotOurs { path: from.to_owned() });
    }
    let copy = Copy::begin(from, to)?;
    let before = directory.file_times().unwrap_or_default();
    let mixed = of_another_moment(&mut directory, [ShardId::ONLY].into_iter());
    let found = read(&mut directory, progress).map_err(|error| match error {
        OpenError::Io(source) => refused(from, source),
        error => hopeless(from, error),
    })?;
    let mut report = written(found, (&mut directory, from), (copy.path(), to), progress)?;
    progress(Progress::Checking);
    let shard = check_written(copy.path(), "", to)?;
    // Some file systems have no locks. So the sizes and the times of change of all files are compared with those before.
    report.notes.extend(mixed);
    let after = directory.file_times().unwrap_or_default();
    if let Some(file) = changed(&before, &after) {
        return Err(SalvageError::Changed { path: from.to_owned(), file });
    }
    if let Some(shard) = shard.filter(|shard| shard.count() > 1) {
        report.notes.push(format!(
            "this is {shard} alone, and no server opens it alone: put it in the place of the folder {} of the data directory",
            directory_of("", shard).display()
        ));
    }
    copy.finish()?;
    drop(pin);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use tickwheel_store::doctor::{Depth, examine};

    use super::*;
    use crate::Queue;

    /// The story: systemd restarted the server during a salvage. Files changed while they were read, and the new directory mixed two
    /// states.
    #[test]
    fn no_server_starts_on_a_directory_that_is_being_salvaged() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, out) = (place.path().join("data"), place.path().join("out"));
        drop(Queue::open(&data).expect("it opens"));
        let mut refused = 0;
        let report = salvage(&data, &out, &mut |_| {
            refused += u32::from(Queue::open(&data).is_err());
        });
        assert!(report.expect("it is whole").is_whole());
        assert!(refused > 0, "it was opened meanwhile");
        drop(Queue::open(&data).expect("it is free again"));
    }

    /// Writes a file during a salvage, as a process could on a file system without locks. The salvage finds the change at its end.
    #[test]
    fn what_changes_during_a_salvage_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, out) = (place.path().join("data"), place.path().join("out"));
        drop(Queue::open(&data).expect("it opens"));
        let mut done = false;
        let error = salvage(&data, &out, &mut |_| {
            if !std::mem::replace(&mut done, true) {
                std::fs::write(data.join("shard-0000/log-00000009"), "another").expect("written");
            }
        });
        let text = error.expect_err("it changed").to_string();
        assert!(text.contains("shard-0000/log-00000009") && text.contains("salvage again"), "{text}");
        assert!(!out.exists());
    }

    fn copied(from: &Path, to: &Path) {
        std::fs::create_dir(to).expect("made");
        for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
            let to = to.join(entry.file_name());
            if entry.path().is_dir() {
                copied(&entry.path(), &to);
            } else {
                std::fs::copy(entry.path(), to).expect("copied");
            }
        }
    }

    /// The story: a salvage was killed while it wrote. `serve` started from the unfinished directory, with half of the tasks, and `doctor`
    /// found it in order. The unfinished directory has to be refused under every name, so the test copies it to other names.
    #[test]
    fn what_a_killed_salvage_leaves_is_refused_by_all_under_any_name() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        drop(Queue::open(at("data")).expect("it opens"));
        let mut killed = 0;
        let saved = salvage(&at("data"), &at("out"), &mut |progress| {
            if matches!(progress, Progress::Written(..) | Progress::Checking) {
                copied(&at("out.unfinished"), &at(&format!("killed-{killed}")));
                killed += 1;
            }
        });
        assert!(saved.expect("it is whole").is_whole() && killed > 1);
        for killed in (0..killed).map(|n| at(&format!("killed-{n}"))) {
            let told = [
                Queue::open(&killed).expect_err("an opening").to_string(),
                Queue::options().virtual_clock().open(&killed).expect_err("an opening").to_string(),
                super::super::backup(&killed, &at("backup")).expect_err("a backup").to_string(),
                super::super::restore(&killed, &at("restored")).expect_err("a restore").to_string(),
                salvage(&killed, &at("again"), &mut |_| {}).expect_err("a salvage").to_string(),
                examine(&mut Directory::new(&killed).expect("there"), Depth::Opening).problems[0].to_string(),
            ];
            for told in told {
                assert!(told.contains("did not finish") && told.contains("delete the directory"), "{told}");
            }
        }
        drop(Queue::open(at("out")).expect("it opens"));
        assert!(!at("out/unfinished").exists());
    }

    /// The story: files of a whole directory were links, or belonged to root, and the salvage reported 930 lost tasks.
    #[test]
    fn what_may_not_be_read_is_no_loss() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, out) = (place.path().join("data"), place.path().join("out"));
        drop(Queue::open(&data).expect("it opens"));
        for file in ["meta", "shard-0000/newest-log", "shard-0000/log-00000001"] {
            let (file, kept) = (data.join(file), place.path().join("kept"));
            std::fs::rename(&file, &kept).expect("moved");
            std::os::unix::fs::symlink(&kept, &file).expect("linked");
            let told = salvage(&data, &out, &mut |_| {}).expect_err("a link").to_string();
            assert!(told.contains("symbolic link") && told.contains("nothing need be damaged"), "{told}");
            std::fs::remove_file(&file).expect("removed");
            std::fs::create_dir(&file).expect("made");
            let told = salvage(&data, &out, &mut |_| {}).expect_err("a folder").to_string();
            assert!(told.contains("no plain file") && told.contains("nothing need be damaged"), "{told}");
            std::fs::remove_dir(&file).expect("removed");
            std::fs::rename(&kept, &file).expect("moved");
        }
        assert!(!out.exists());
    }

    /// The stories: with the `meta` of another directory, the new directory had no task, and the report told that "perhaps nothing" was
    /// lost. Without `meta`, the printed advice led back to the same error. With several damaged bytes in `meta`, nothing was salvaged,
    /// although the secret in `meta` was whole.
    #[test]
    fn a_meta_that_is_wrong_lost_or_damaged_is_told_or_rebuilt() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["data", "other"] {
            drop(Queue::open(at(name)).expect("it opens"));
        }
        let (meta, kept) = (at("data/meta"), std::fs::read(at("data/meta")).expect("readable"));
        std::fs::copy(at("other/meta"), &meta).expect("copied");
        let told = salvage(&at("data"), &at("out"), &mut |_| {}).expect_err("another").to_string();
        assert!(told.contains("it may be of another directory"), "{told}");
        std::fs::remove_file(&meta).expect("removed");
        let told = Queue::open(at("data")).expect_err("it is missing").to_string();
        assert!(told.contains("cp BACKUP/meta COPY/meta"), "{told}");
        let found = examine(&mut Directory::new(at("data")).expect("there"), Depth::Opening);
        assert!(found.problems[0].to_string().contains("cp BACKUP/meta COPY/meta"), "{:?}", found.problems);
        let mut damaged = kept.clone();
        damaged[..24].fill(0xee);
        damaged[48..].fill(0xee);
        std::fs::write(&meta, &damaged).expect("written");
        let report = salvage(&at("data"), &at("out"), &mut |_| {}).expect("rebuilt");
        assert!(report.is_whole() && report.notes[0].contains("the secret in it is whole"), "{report:?}");
        damaged[40] ^= 1;
        std::fs::write(&meta, &damaged).expect("written");
        salvage(&at("data"), &at("not"), &mut |_| {}).expect_err("the secret is damaged");
    }

    /// A salvage reports no loss for extra bytes behind the last frame of a log file. `doctor --deep` also reports no problem for such a
    /// directory.
    #[test]
    fn bytes_that_no_opening_reads_are_no_loss() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, out) = (place.path().join("data"), place.path().join("out"));
        drop(Queue::open(&data).expect("it opens"));
        let log = data.join("shard-0000/log-00000001");
        let mut bytes = std::fs::read(&log).expect("readable");
        bytes.extend([0xee; 3_000]);
        std::fs::write(&log, bytes).expect("written");
        assert!(examine(&mut Directory::new(&data).expect("there"), Depth::Records).is_in_order());
        let report = salvage(&data, &out, &mut |_| {}).expect("it is whole");
        assert!(report.is_whole(), "{:?}", report.losses);
    }

    /// `doctor` holds the lock of a directory for a moment while it looks. An opening must not fail for this reason, so it tries again.
    #[test]
    fn an_opening_waits_a_moment_for_the_look_of_another() {
        let place = tempfile::tempdir().expect("a directory");
        drop(Queue::open(place.path()).expect("it opens"));
        let pin = Directory::new(place.path()).expect("there").pin().expect("it is free");
        let opening = std::thread::spawn({
            let path = place.path().to_owned();
            move || Queue::open(path).map(drop)
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        drop(pin);
        opening.join().expect("no panic").expect("it waited");
        let _pin = Directory::new(place.path()).expect("there").pin().expect("it is free");
        let told = Queue::open(place.path()).expect_err("it is held").to_string();
        assert!(told.contains("is open in another process"), "{told}");
    }
}
