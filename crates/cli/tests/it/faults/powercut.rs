//! Power cuts: the possible states of a server's disk after a power cut, at any moment of a load, on ext4.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_testing::is_long;

use crate::faults::caller::Caller;
use crate::faults::fuse_disk::{BLOCK, DISK_BYTES, Entry, FILE, Image, Journal};
use crate::faults::history::{History, Op};
use crate::faults::injection::Injection;
use crate::faults::judge::{Ledger, until};
use crate::faults::load::LARGE;
use crate::faults::mount::{Mount, run};
use crate::faults::needs::{Need, has, number, say};
use crate::faults::readback::read_back;
use crate::faults::server::{Home, Starting};
use crate::faults::stage::Stage;
use crate::kit::Random;

const NEEDS: [Need; 5] = [
    Need::Mounting,
    Need::Device("/dev/fuse"),
    Need::Device("/dev/loop-control"),
    Need::Program("losetup"),
    Need::Program("mkfs.ext4"),
];
/// The percentage of large calls, and the duration. They are enough for a checkpoint, or for a few calls of each kind.
const HEAVY: (u64, Duration) = (25, Duration::from_secs(4));
const LIGHT: (u64, Duration) = (LARGE, Duration::from_millis(800));
/// The number of states that are checked for each load.
const STATES_OF_A_LOAD: u64 = 20;

/// A load that ran on a disk with a journal.
struct Recording {
    entries: Vec<Entry>,
    ops: Vec<Op>,
    /// The index of the event from which on the server was ready.
    from: u64,
    /// Moments at which a file was half written, such as a checkpoint.
    half_made: Vec<u64>,
    /// 1 if a checkpoint came during the load.
    checkpoints: u64,
}

impl Recording {
    /// A moment after the start. A third of them is drawn from the moments with a half-written file. Two of each
    /// three, by `nth`, are moved back to the end of a write that no flush has covered. They are chosen by their
    /// number, because chance alone leaves too few of them among eight.
    fn moment(&self, nth: u64, random: &mut Random) -> u64 {
        let length = self.entries.len() as u64;
        let mut moment = self.from + 1 + random.below(length - self.from - 1);
        if !self.half_made.is_empty() && random.below(3) == 0 {
            let one = random.below(self.half_made.len() as u64);
            moment = self.half_made[usize::try_from(one).expect("an index")];
        }
        if !nth.is_multiple_of(3) {
            let is_write = |moment: u64| {
                let entry = &self.entries[usize::try_from(moment).expect("an index")];
                matches!(entry, Entry::Write { .. } | Entry::Zero { .. })
            };
            moment = (self.from..moment).rev().find(|moment| is_write(*moment)).map_or(moment, |at| at + 1);
        }
        moment
    }
}

#[derive(Debug, Default)]
struct Totals {
    states: u64,
    /// States with a write that no flush had covered.
    with_loose: u64,
    dropped: u64,
    torn: u64,
    answers: u64,
    checkpoints: u64,
    half_made: usize,
}

/// The number of states is `TICKWHEEL_POWER_CUTS` (8 by default); `TICKWHEEL_FAULT_SEED` chooses them (1 by default).
#[test]
fn nothing_acknowledged_is_lost_by_a_power_cut() {
    if !has("power cuts", &NEEDS) {
        return;
    }
    let (wanted, seed) = (number("TICKWHEEL_POWER_CUTS", 8), number("TICKWHEEL_FAULT_SEED", 1));
    let mut totals = Totals::default();
    let begun = Instant::now();
    let mut load = 0;
    while totals.states < wanted {
        let recording = record(seed.wrapping_add(load), if load % 2 == 0 { LIGHT } else { HEAVY }, None);
        totals.checkpoints += recording.checkpoints;
        totals.half_made += recording.half_made.len();
        let states = STATES_OF_A_LOAD.min(wanted - totals.states);
        let broken = cut(&recording, seed.wrapping_add(load), states, &mut totals);
        assert!(broken.is_empty(), "seed {seed}, load {load}:\n{}", broken.join("\n"));
        load += 1;
        say(&format!("{:>6} s: {totals:?}", begun.elapsed().as_secs()));
    }
    let Totals { states, with_loose, dropped, torn, answers, checkpoints, half_made: _ } = totals;
    say(&format!(
        "powercut: seed {seed}, {:?}: {states} states of {load} loads on ext4 ({checkpoints} with a checkpoint), {with_loose} with writes that no flush covered \
         ({dropped} of them dropped, {torn} torn), {answers} answers held; 0 losses",
        begun.elapsed()
    ));
    // In a short run this is a matter of chance.
    assert!(!is_long() || with_loose * 2 >= states, "too few states had anything to lose");
}

/// The test finds errors: a server whose syncs never reach the disk loses acknowledged tasks.
#[test]
fn a_server_without_its_syncs_is_found_out() {
    if !has(
        "that the power cuts find anything",
        &[&NEEDS[..], &[Need::Program("strace"), Need::Tracing]].concat(),
    ) {
        return;
    }
    let recording = record(1, LIGHT, Some("fdatasync:retval=0"));
    let states = 5;
    let broken = cut(&recording, 1, states, &mut Totals::default());
    assert!(!broken.is_empty(), "{states} states of a server that syncs nothing, and nothing is missing");
}

/// Runs a load on a disk with a journal; `inject` is strace's injection into the server.
fn record(seed: u64, (large, life): (u64, Duration), inject: Option<&str>) -> Recording {
    let journal = Journal::default();
    let marks = journal.clone();
    let mut stage = Stage::new();
    stage.history = History::new(move || marks.mark());
    let (shown, mounted) = (stage.path().join("shown"), stage.path().join("mounted"));
    std::fs::create_dir(&shown).expect("make a directory");
    let session = journal.mount(&shown);
    let device = Loop::of(&shown.join(FILE));
    run(&["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", &device.0]);
    let mount = Mount::at(&mounted, &[&device.0]);
    stage.home.data = mounted.join("data");

    let server = stage.home.start();
    let from = journal.mark();
    let injection = inject.map(|inject| Injection::into_running(server.pid(), inject, stage.path()));
    stage.round = seed;
    stage.large = large;
    let (shard, over) = (stage.home.data.join("shard-0000"), AtomicBool::new(false));
    let half_made = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&shard, &journal, &over));
        stage.load(&server, life);
        over.store(true, Ordering::Relaxed);
        watcher.join().expect("the watcher")
    });
    drop(injection);
    let checkpoints = u64::from(stage.home.newest_checkpoint().is_some());
    let (entries, ops) = (journal.entries(), stage.history.take());
    server.kill();
    drop((mount, device));
    session.umount_and_join().expect("end the file system");
    Recording { entries, ops, from, half_made, checkpoints }
}

/// Records moments with an unfinished file, as long as such files end in `.tmp`.
fn watch(shard: &Path, journal: &Journal, over: &AtomicBool) -> Vec<u64> {
    let mut half_made = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let mut files = std::fs::read_dir(shard).expect("list the files").flatten();
        if files.any(|file| file.path().extension().is_some_and(|end| end == "tmp")) {
            half_made.push(journal.mark());
        }
        // The interval is short enough to see each step of a checkpoint.
        thread::sleep(Duration::from_millis(1));
    }
    half_made
}

/// Checks states of the disk at moments of the load. Returns the broken promises of all states.
fn cut(recording: &Recording, seed: u64, states: u64, totals: &mut Totals) -> Vec<String> {
    let mut random = Random::new(seed);
    let length = recording.entries.len() as u64;
    let mut moments: Vec<u64> = (0..states).map(|nth| recording.moment(nth, &mut random)).collect();
    moments.sort_unstable();

    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut durable, mut flushed) = (Image::default(), 0);
    let mut broken = Vec::new();
    for moment in moments {
        let before = &recording.entries[..usize::try_from(moment).expect("an index")];
        let last_flush = before.iter().rposition(|entry| matches!(entry, Entry::Flush)).unwrap_or_default();
        recording.entries[flushed..last_flush].iter().for_each(|entry| durable.apply(entry, usize::MAX));
        flushed = last_flush;
        let image = with_some(&durable, &before[last_flush..], &mut random, totals);
        let file = directory.path().join("image");
        save(&image, &file);

        totals.states += 1;
        let earlier = until(&recording.ops, moment);
        totals.answers += earlier.iter().filter(|op| op.answer.is_some()).count() as u64;
        let found = judge(directory.path(), &file, earlier, length);
        broken.extend(found.into_iter().map(|what| format!("cut at {moment} of {length}: {what}")));
    }
    broken
}

/// Applies all, none or some of the writes that no flush covered, in any order. Of some writes it applies only the
/// first sectors.
fn with_some(durable: &Image, loose: &[Entry], random: &mut Random, totals: &mut Totals) -> Image {
    let is_write = |entry: &&Entry| matches!(entry, Entry::Write { .. } | Entry::Zero { .. });
    let mut loose: Vec<&Entry> = loose.iter().filter(is_write).collect();
    totals.with_loose += u64::from(!loose.is_empty());
    let mut image = durable.clone();
    let fate = random.below(3);
    while !loose.is_empty() {
        let entry = loose.swap_remove(usize::try_from(random.below(loose.len() as u64)).expect("an index"));
        match (fate, random.below(2)) {
            (0, _) | (1, 0) => totals.dropped += 1,
            (1, _) => {
                totals.torn += 1;
                image.apply(entry, usize::try_from(1 + random.below(7)).expect("small"));
            }
            _ => image.apply(entry, usize::MAX),
        }
    }
    image
}

fn save(image: &Image, path: &Path) {
    let file = File::create(path).expect("make a file");
    file.set_len(DISK_BYTES).expect("make it as long as the disk");
    for (block, bytes) in image.blocks.iter().filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0)) {
        file.write_all_at(bytes, block * BLOCK as u64).expect("write the file");
    }
}

/// Starts a server on this disk and reads everything back.
fn judge(directory: &Path, image: &Path, earlier: Vec<Op>, now: u64) -> Vec<String> {
    let mounted = directory.join("mounted");
    let device = Loop::of(image);
    let _mount = Mount::at(&mounted, &[&device.0]);
    let home = Home { data: mounted.join("data"), ..Home::below(directory) };
    let Ok(server) = Starting::of(&mut home.command(&[])).ready() else {
        return vec![format!("LOST: the server does not start: {}", home.last_words())];
    };
    let ticks = AtomicU64::new(now);
    let history = History::new(move || ticks.fetch_add(1, Ordering::SeqCst));
    let caller = Caller::new(&server.url, &history);
    let found = read_back(&caller, &mut Ledger::default(), earlier, &mut Vec::new());
    server.kill();
    found.broken
}

/// A loop device. Dropping it detaches it.
struct Loop(String);

impl Loop {
    fn of(file: &Path) -> Self {
        Self(run(&["losetup", "--find", "--show", file.to_str().expect("UTF-8")]))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(&["losetup", "--detach", &self.0]);
    }
}
