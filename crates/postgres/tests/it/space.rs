//! A disk that is full: commits are held, and go on once there is space.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::kit::{Random, Server, node, put, report, run, texts, until};

/// A file system in memory. Dropping it unmounts it.
struct Mount(PathBuf);

impl Mount {
    /// Mounts a file system of this size (MiB); `None`: this process may not mount, and the running test is skipped. Panics if it
    /// may not and the long tests are asked for.
    fn at(place: &Path, size: u32) -> Option<Self> {
        std::fs::create_dir_all(place).expect("a directory");
        let size = format!("size={size}m,mode=0777");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(place).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(place.to_owned()));
        }
        let text = "right to mount, so a full disk is not tested";
        assert!(!tickwheel_testing::is_long(), "no {text}");
        tickwheel_testing::forbidden(text);
        None
    }

    fn resize(&self, size: u32) {
        run(Command::new("mount").args(["-o", &format!("remount,size={size}m")]).arg(&self.0));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The server may still have its files open.
        let _status = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_holds_the_commits_until_there_is_space() {
    let Some(server) = Server::start() else { return };
    let Some(mount) = Mount::at(&server.directory().join("small"), 6) else { return };
    let folder = mount.0.join("tables");
    run(Command::new("install").args(["-d", "-o", "postgres", "-m", "0700"]).arg(&folder));
    let queue = node(&server.url(), "first");
    server.psql(&format!("CREATE TABLESPACE small LOCATION '{}'", folder.display()));
    server.psql("ALTER TABLE tickwheel.task SET TABLESPACE small");
    let mut random = Random::new(1);
    let mut stored = 0;
    // Bytes that cannot be compressed.
    let mut next = |n: u32| {
        let payload =
            (0..100_000).map(|_| u8::try_from(random.below(256)).expect("a byte")).collect::<Vec<u8>>();
        queue.put(put(&format!("k{n}"), Duration::from_secs(86_400)).payload(payload))
    };
    let full = || queue.health().waits_for.is_some_and(|why| why.contains("53100"));
    let waiting = loop {
        let pending = next(stored);
        let waiting = std::thread::spawn(move || pending.wait());
        until("the put is answered, or the disk is full", || waiting.is_finished() || full());
        if full() {
            break waiting;
        }
        waiting.join().expect("no panic").expect("stored");
        stored += 1;
        assert!(stored < 1_000, "the disk is never full");
    };
    report(&format!("{stored} puts were stored"));
    assert!(queue.health().ready && !waiting.is_finished());
    assert_eq!(server.psql("SELECT count(*) FROM tickwheel.task"), stored.to_string());
    let later = next(stored + 1);
    mount.resize(64);
    waiting.join().expect("no panic").expect("stored once there is space");
    later.wait().expect("stored");
    until("no trouble is left", || queue.health().waits_for.is_none());
    assert_eq!(texts(&queue).len(), usize::try_from(stored + 2).expect("small"));
    queue.close();
    let queue = node(&server.url(), "second");
    assert_eq!(texts(&queue).len(), usize::try_from(stored + 2).expect("small"));
    queue.close();
    drop(server);
}
