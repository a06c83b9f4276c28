//! The thread that makes the calls: order, wake-ups, and what becomes of a store whose disk panics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tickwheel_engine::{Reply, ShardStore as _, TaskEffect};
use tickwheel_store::conformance::{Owner, sample_task};
use tickwheel_store::{
    Call, Completion, Disk, DiskError, DiskOp, DiskStore, FsDisk, Io, Job, JobId, Lane, StoreOptions,
    ThreadIo,
};

/// A disk that reports each sync. The sync of a file named `held...` then waits until the test drops the other end of `go`. The disk
/// panics when it is told to, and it makes no file while the process has no descriptors.
struct Gated {
    disk: FsDisk,
    told: Sender<String>,
    go: Arc<Mutex<Receiver<()>>>,
    panics: Arc<AtomicBool>,
    starved: Arc<AtomicBool>,
}

impl Disk for Gated {
    fn lock(&mut self) -> Result<(), DiskError> {
        self.disk.lock()
    }
    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        self.disk.list(dir)
    }
    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.disk.create_dir(dir)
    }
    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        if self.starved.load(Ordering::SeqCst) {
            let source = std::io::Error::from_raw_os_error(NO_DESCRIPTOR);
            return Err(DiskError::new(DiskOp::Create, file, source));
        }
        self.disk.create(file)
    }
    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.disk.open(file)
    }
    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.disk.len(file)
    }
    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.disk.read(file, offset, into)
    }
    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.disk.write_at(file, offset, bytes)
    }
    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        assert!(!self.panics.load(Ordering::SeqCst), "it was told to");
        self.told.send(file.to_owned()).expect("the test listens");
        if file.starts_with("held") {
            self.go.lock().expect("nobody panics with it").recv().ok();
        }
        self.disk.sync_data(file)
    }
    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.disk.set_len(file, bytes)
    }
    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }
    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.disk.remove(file)
    }
    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.disk.sync_dir(dir)
    }
    fn close(&mut self, file: &str) {
        self.disk.close(file);
    }
    fn another(&self) -> Self {
        let (told, go, panics) = (self.told.clone(), Arc::clone(&self.go), Arc::clone(&self.panics));
        Self { disk: self.disk.another(), told, go, panics, starved: Arc::clone(&self.starved) }
    }
    fn free_bytes(&mut self) -> u64 {
        self.disk.free_bytes()
    }
}

/// The number of the error `EMFILE` of Linux.
const NO_DESCRIPTOR: i32 = 24;

struct Bench {
    dir: tempfile::TempDir,
    told: Receiver<String>,
    go: Sender<()>,
    panics: Arc<AtomicBool>,
    starved: Arc<AtomicBool>,
    woken: Receiver<()>,
}

fn bench() -> (Bench, Gated, ThreadIo) {
    let dir = tempfile::tempdir().expect("a directory");
    let (told_in, told) = channel();
    let (go, go_out) = channel();
    let (wake, woken) = channel();
    let panics = Arc::new(AtomicBool::new(false));
    let disk = FsDisk::new(dir.path()).expect("made");
    let starved = Arc::new(AtomicBool::new(false));
    let go_out = Arc::new(Mutex::new(go_out));
    let disk =
        Gated { disk, told: told_in, go: go_out, panics: Arc::clone(&panics), starved: Arc::clone(&starved) };
    let io = ThreadIo::new(Box::new(move || {
        wake.send(()).ok();
    }));
    (Bench { dir, told, go, panics, starved, woken }, disk, io)
}

fn sync(id: u64, file: &str) -> Job {
    Job { id: JobId(id), calls: vec![Call::Sync(file.into())] }
}

fn wait_for(io: &mut ThreadIo, bench: &Bench, count: usize) -> Vec<Completion> {
    let mut completions = Vec::new();
    while completions.len() < count {
        bench.woken.recv().expect("a wake-up for each completion");
        <ThreadIo as Io<Gated>>::poll(io, &mut completions);
    }
    completions
}

#[test]
fn a_commit_does_not_wait_for_the_background_and_lanes_keep_their_order() {
    let (bench, mut disk, mut io) = bench();
    for file in ["held", "background", "commit"] {
        disk.create(file).expect("made");
    }
    io.start(disk);
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Background, sync(1, "held"));
    assert_eq!(bench.told.recv().expect("it begins"), "held");
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Background, sync(2, "background"));
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Commit, sync(3, "commit"));
    let read = Call::Read { file: "commit".into(), offset: 0, bytes: 4 };
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Read, Job { id: JobId(4), calls: vec![read] });
    let mut ids: Vec<u64> = wait_for(&mut io, &bench, 2).iter().map(|completion| completion.id.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, [3, 4], "done while the background is held up");
    bench.go.send(()).expect("it waits");
    let ids: Vec<u64> = wait_for(&mut io, &bench, 2).iter().map(|completion| completion.id.0).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn the_directory_stays_locked_until_the_last_commit_is_done() {
    let (bench, mut disk, mut io) = bench();
    disk.lock().expect("no other process");
    disk.create("held").expect("made");
    io.start(disk);
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Commit, sync(1, "held"));
    assert_eq!(bench.told.recv().expect("it begins"), "held");
    let dropping = std::thread::spawn(move || drop(io));
    let mut other = FsDisk::new(bench.dir.path()).expect("it is there");
    for _ in 0..10_000 {
        assert!(other.lock().is_err(), "the commit is still under way");
        std::thread::yield_now();
    }
    drop(bench.go);
    dropping.join().expect("dropped");
    other.lock().expect("no thread has the directory any more");
}

#[test]
fn a_job_ends_at_its_first_error() {
    let (bench, mut disk, mut io) = bench();
    disk.create("there").expect("made");
    io.start(disk);
    let calls = vec![Call::Sync("absent".into()), Call::Remove("there".into())];
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Commit, Job { id: JobId(1), calls });
    let completion = wait_for(&mut io, &bench, 1).remove(0);
    let error = completion.result.expect_err("the file is absent");
    assert!(error.to_string().contains("absent"), "{error}");
    assert!(bench.dir.path().join("there").exists(), "the call behind the error was made");
}

/// The story: a bug in the disk's code panics on the I/O thread. The commit it was for is refused, and so is all that follows;
/// reads go on.
#[test]
fn a_panic_on_the_thread_ends_the_acknowledgements() {
    let (Bench { dir, told, go, panics, woken, .. }, disk, io) = bench();
    drop(go);
    let mut options = StoreOptions::new([1; 16]);
    options.log_file_bytes = 64 << 10;
    let mut owner = Owner::acquire(DiskStore::open(disk, io, options).expect("it opens"));
    let put = |n: u64| {
        let task = sample_task(n, n, "q", &format!("k{n}"), 5);
        vec![TaskEffect::Stored { task: task.into(), body_known: false }]
    };
    let reply = owner.commit(put(1));
    assert!(matches!(reply, Reply::Done { .. }), "{reply:?}");
    panics.store(true, Ordering::SeqCst);
    for n in 2..4 {
        let reply = owner.commit(put(n));
        let Reply::Failed { why } = &reply else { panic!("a panic was answered {reply:?}") };
        assert!(why.contains("panicked"), "{why}");
    }
    let store = owner.into_store();
    assert_eq!(store.len(), 1);
    assert!(store.failure().is_some(), "it does not say that it failed");
    drop((store, told, woken, dir));
}

/// The story: connections had used up the descriptors of a server when its log needed a new file. The store failed, and the server was read-only
/// until a restart.
#[test]
fn a_call_without_a_descriptor_is_made_again_and_its_job_does_not_fail() {
    let (bench, mut disk, mut io) = bench();
    disk.create("commit").expect("made");
    io.start(disk);
    bench.starved.store(true, Ordering::SeqCst);
    let calls = vec![Call::Sync("commit".into()), Call::Create("new".into()), Call::Sync("new".into())];
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Background, Job { id: JobId(1), calls });
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Background, sync(2, "new"));
    assert_eq!(bench.told.recv().expect("it begins"), "commit");
    bench.woken.recv().expect("the lack is told");
    assert!(<ThreadIo as Io<Gated>>::lacks_descriptor(&io));
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Commit, sync(3, "commit"));
    let done = wait_for(&mut io, &bench, 1);
    assert_eq!(done[0].id, JobId(3), "the other lanes go on");
    assert_eq!(bench.told.recv().expect("it was made"), "commit");
    bench.starved.store(false, Ordering::SeqCst);
    let done = wait_for(&mut io, &bench, 2);
    assert!(done.iter().all(|completion| completion.result.is_ok()), "{done:?}");
    assert_eq!(done.iter().map(|completion| completion.id.0).collect::<Vec<_>>(), [1, 2], "in their order");
    assert!(!<ThreadIo as Io<Gated>>::lacks_descriptor(&io));
    assert_eq!(bench.told.iter().take(2).collect::<Vec<_>>(), ["new", "new"], "no call was made twice");
}

#[test]
fn a_store_that_lacks_a_descriptor_can_be_closed() {
    let (bench, disk, mut io) = bench();
    io.start(disk);
    bench.starved.store(true, Ordering::SeqCst);
    let calls = vec![Call::Create("new".into())];
    <ThreadIo as Io<Gated>>::submit(&mut io, Lane::Background, Job { id: JobId(1), calls });
    bench.woken.recv().expect("the lack is told");
    drop(io);
    assert!(!bench.dir.path().join("new").exists());
}
