//! The wheel on disk: the segments of a data directory.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_queue::{Ack, AckLevel, Cancel, Key, Lease, Put, Queue, QueueName, Timestamp};

use crate::cost::{Nanos, Random, grouped, nanos};
use crate::sheet::Sheet;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// 2030-01-01T00:00:00Z, in milliseconds.
const START_MS: i64 = 1_893_456_000_000;
/// Tasks: name, and seconds until they are due.
const TASKS: [(&str, u64); 6] =
    [("a", HOUR), ("b", 5 * HOUR), ("c", 5 * HOUR), ("d", 10 * DAY), ("e", 100 * DAY), ("f", 110 * DAY)];
/// A checkpoint is made in the background; this is far longer than it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The segments after six tasks were put, after one was cancelled, and after 74 days.
///
/// # Panics
/// If the queue cannot be used.
#[must_use]
pub fn table() -> String {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let start = Timestamp::from_ms(START_MS).expect("after 1970");
    // A checkpoint after each commit, so that each step reaches the segments.
    let options = Queue::options().virtual_clock_at(start).checkpoint_after_bytes(1);
    let queue = options.open(folder.path()).expect("a new directory");
    let name = QueueName::new("learn").expect("a name");
    let put = |key: &str, after: u64| {
        let put = Put::new(&name, Key::new(key).expect("a key")).after(Duration::from_secs(after));
        queue.put(put).wait().expect("it is stored");
    };

    for (key, after) in TASKS {
        put(key, after);
    }
    let put_all = segments(folder.path(), &[(1, 525_961), (1, 525_965), (2, 21_925), (3, 733), (3, 734)]);
    queue.cancel(Cancel::new(&name, Key::new("a").expect("a key"))).wait().expect("it was pending");
    let cancelled = segments(folder.path(), &[(1, 525_965), (2, 21_925), (3, 733), (3, 734)]);

    queue.advance(Duration::from_secs(74 * DAY)).wait().expect("the clock moves");
    let leased = queue.lease(Lease::new(&name).max(10), Duration::ZERO).wait().expect("the queue runs");
    let keys: Vec<&str> = leased.iter().map(|task| task.key.as_str()).collect();
    let did = format!("74 days later: {} are delivered and acked, g is put", keys.join(", "));
    queue.ack(Ack::new(&name, leased.iter().map(|task| task.token))).wait().expect("the queue runs");
    put("g", HOUR);
    let later = segments(folder.path(), &[(1, 527_737), (2, 22_015), (3, 734)]);
    format!("a to f are put\n{put_all}\na is cancelled\n{cancelled}\n{did}\n{later}")
}

/// The segments of a directory, as the headers of their files say. Waits until they have these levels and buckets, because a checkpoint runs
/// in the background and adds some segments before it removes others. If they do not come, the table shows what is there.
fn segments(folder: &Path, settled: &[(u64, u64)]) -> String {
    let begun = Instant::now();
    let mut found = listed(folder);
    while found != settled && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
        found = listed(folder);
    }
    let mut sheet = Sheet::new(["level", "bucket", "covers", "from"]);
    for (level, bucket) in found {
        let (covers, seconds) = match level {
            1 => ("an hour", HOUR),
            2 => ("a day", DAY),
            3 => ("thirty days", 30 * DAY),
            _ => ("overdue", 0),
        };
        let from = i64::try_from(bucket * seconds * 1_000).ok().and_then(Timestamp::from_ms);
        let from = from.map(Timestamp::to_utc).unwrap_or_default();
        sheet.row([level.to_string(), bucket.to_string(), covers.to_owned(), from]);
    }
    sheet.to_string()
}

/// Level and bucket of each segment. docs/explanation/format.md has the header.
fn listed(folder: &Path) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join("shard-0000")).expect("the directory has a shard").flatten() {
        let name = entry.file_name();
        // A segment may go while it is read: then it is none.
        let Ok(file) = fs::read(entry.path()) else { continue };
        let number = |at: usize| {
            let bytes = file.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        if name.to_string_lossy().starts_with("segment-") {
            found.extend(number(24).zip(number(32)));
        }
    }
    found.sort_unstable();
    found
}

/// Puts tasks that are due within a year, opens the directory again, and counts its bytes.
///
/// # Panics
/// If the queue cannot be used.
#[must_use]
pub fn costs(share: usize) -> String {
    let tasks = 200_000 / share;
    let folder = tempfile::tempdir().expect("a temporary directory");
    let options = Queue::options().ack_level(AckLevel::Os).checkpoint_after_bytes(4 << 20);
    let queue = options.clone().open(folder.path()).expect("a new directory");
    let name = QueueName::new("learn").expect("a name");
    let mut random = Random::new();
    let begun = Nanos::begin();
    let mut answers = Vec::new();
    for number in 0..tasks {
        let key = Key::new(&format!("order:{number}")).expect("a key");
        let after = Duration::from_secs(HOUR + random.up_to(365 * DAY));
        answers.push(queue.put(Put::new(&name, key).after(after)));
    }
    for answer in answers {
        answer.wait().expect("it is stored");
    }
    let put = begun.each(tasks);
    let begun = Nanos::begin();
    let some = tasks / 10;
    for number in 0..some {
        let key = Key::new(&format!("order:{number}")).expect("a key");
        queue.cancel(Cancel::new(&name, key)).wait().expect("it was pending");
    }
    let cancel = begun.each(some);
    drop(queue);
    let begun = Nanos::begin();
    let queue = options.open(folder.path()).expect("the directory is sound");
    let open = begun.each(tasks);
    drop(queue);
    let segments =
        fs::read_dir(folder.path().join("shard-0000")).expect("the directory has a shard").flatten();
    let sizes = segments.filter(|entry| entry.file_name().to_string_lossy().starts_with("segment-"));
    let bytes: u64 = sizes.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();

    let mut sheet = Sheet::of_numbers(["", "for each task"]);
    sheet.row(["put, written but not synced".to_owned(), nanos(put)]);
    sheet.row(["cancel by key, one after the other".to_owned(), nanos(cancel)]);
    sheet.row(["open the directory again".to_owned(), nanos(open)]);
    sheet.row(["bytes in segments".to_owned(), (bytes / tasks as u64).to_string()]);
    format!("{} tasks over a year\n{sheet}", grouped(tasks))
}
