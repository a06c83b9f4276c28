//! Backups of a server under load, some of them cut short by SIGKILL, each whole one restored and held against what was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::client::{Client, ClientError};
use tickwheel_api::{BackupBody, BackupState, Due, ListQuery, PayloadBody, PutBody, PutQuery};

use crate::history::wall_ms;
use crate::needs::{number, say};
use crate::random::Random;
use crate::server::{Home, Server};

const QUEUE: &str = "backups";
const WRITERS: u64 = 3;
/// Tasks are due later than the test lives.
const FAR_MS: i64 = 86_400_000;
/// Every so many tasks, one is cancelled again.
const CANCEL_EVERY: u64 = 4;
/// One of so many rounds is killed half way.
const KILL_EVERY: u64 = 5;
/// Tasks of before the first round, and their bytes: a copy of them takes a while.
const BEFORE: u64 = 5_000;
const LARGE: usize = 1_000;
/// Bytes of a task that is put while a backup is made, and the pause of its client before the next: else the load of many rounds would make a
/// directory whose copy takes minutes.
const SMALL: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// A backup of these directories takes some seconds; this long is for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client was told of a key: when, and whether it is there since then.
type Told = BTreeMap<String, (i64, bool)>;

#[derive(Debug, Default)]
struct Totals {
    restored: u64,
    killed: u64,
    half_way: u64,
    acknowledged: usize,
    checked: usize,
    tasks: u64,
    bytes: u64,
}

/// `TICKWHEEL_BACKUPS` says how many rounds (4 if it does not), `TICKWHEEL_FAULT_SEED` when backups begin and kills come (1).
#[test]
fn a_backup_under_load_has_everything_acknowledged_before_its_instant() {
    let rounds = number("TICKWHEEL_BACKUPS", 4);
    let seed = number("TICKWHEEL_FAULT_SEED", 1);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let backups = directory.path().join("backups");
    let told = Mutex::new(Told::new());
    let mut random = Random::new(seed);
    let mut totals = Totals::default();
    let mut server = start(&home, &backups);
    fill(&server, &told);
    for round in 0..rounds {
        // The last of each five, so that a small dose has one, too.
        if round % KILL_EVERY == (KILL_EVERY - 1).min(rounds - 1) {
            server = kill_half_way(server, &home, &backups, &told, round, &mut totals);
        }
        let backup = under_load(&server, &told, round, || {
            thread::sleep(Duration::from_millis(random.below(200)));
            whole(&server)
        });
        let told = told.lock().expect("no panic");
        totals.acknowledged = told.len();
        prove(directory.path(), &backups, &backup, &told, round, &mut totals);
    }
    say(&format!(
        "backups: seed {seed}: {} restored, {} killed under way ({} of them with bytes copied), {} keys acknowledged, {} held \
         against a backup, the last one of {} tasks and {} bytes; no loss",
        totals.restored,
        totals.killed,
        totals.half_way,
        totals.acknowledged,
        totals.checked,
        totals.tasks,
        totals.bytes
    ));
    assert!(totals.half_way >= totals.killed.div_ceil(2), "too few kills met a copy: no test of it");
}

fn start(home: &Home, backups: &Path) -> Server {
    home.start_as(home.command(&[]).arg("--backup-dir").arg(backups))
}

fn put(client: &Client, key: &str, bytes: usize) -> Result<(), ClientError> {
    let payload = PayloadBody::json(format!("\"{}\"", "x".repeat(bytes)).into_bytes());
    let body = PutBody { due: Due::At(wall_ms() + FAR_MS), payload, ..PutBody::default() };
    client.put(QUEUE, key, &body, PutQuery::default(), None).map(drop)
}

/// So much that a copy takes a while.
fn fill(server: &Server, told: &Mutex<Told>) {
    thread::scope(|scope| {
        for part in 0..8 {
            let client = Client::new(&server.url).expect("the server's own URL");
            scope.spawn(move || {
                for n in (part..BEFORE).step_by(8) {
                    let key = format!("before-{n}");
                    put(&client, &key, LARGE).expect("a healthy server");
                    told.lock().expect("no panic").insert(key, (wall_ms(), true));
                }
            });
        }
    });
}

/// Does something while clients put and cancel, each key once, and write down what they were told and when.
fn under_load<T>(server: &Server, told: &Mutex<Told>, round: u64, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (client, ended) = (Client::new(&server.url).expect("the server's own URL"), &ended);
            scope.spawn(move || {
                for n in 0.. {
                    let key = format!("{round}-{writer}-{n}");
                    if ended.load(Ordering::Relaxed) || put(&client, &key, SMALL).is_err() {
                        break;
                    }
                    if n % CANCEL_EVERY == 0 {
                        // Between the two answers nobody may say which it is.
                        if client.cancel(QUEUE, &key, Default::default(), None).is_err() {
                            break;
                        }
                    }
                    told.lock().expect("no panic").insert(key, (wall_ms(), n % CANCEL_EVERY != 0));
                    thread::sleep(PAUSE);
                }
            });
        }
        let done = work();
        ended.store(true, Ordering::Relaxed);
        done
    })
}

/// Has the server make a backup and waits until it is whole.
fn whole(server: &Server) -> BackupBody {
    let client = Client::new(&server.url).expect("the server's own URL");
    let mut backup = client.begin_backup().expect("it is begun");
    let begun = Instant::now();
    while backup.state == BackupState::Running {
        assert!(begun.elapsed() < PATIENCE, "it does not end: {backup:?}");
        thread::sleep(Duration::from_millis(5));
        backup = client.backup(backup.id).expect("a healthy server");
    }
    assert_eq!(backup.state, BackupState::Done, "{backup:?}");
    backup
}

/// SIGKILL in the middle of a copy: nothing that looks whole is left, and the next start removes the part.
fn kill_half_way(
    server: Server,
    home: &Home,
    backups: &Path,
    told: &Mutex<Told>,
    round: u64,
    totals: &mut Totals,
) -> Server {
    let before = names(backups);
    let client = Client::new(&server.url).expect("the server's own URL");
    let url = server.url.clone();
    let mut victim = Some(server);
    let copied = thread::scope(|scope| {
        let (ended, client) = (AtomicBool::new(false), &client);
        let load = scope.spawn(move || {
            // Keys of their own, of which nobody was told that they are there.
            let client = Client::new(&url).expect("the server's own URL");
            (0..).take_while(|n| put(&client, &format!("killed-{round}-{n}"), SMALL).is_ok()).count()
        });
        let mut backup = client.begin_backup().expect("it is begun");
        let half = |backup: &BackupBody| backup.bytes > 0 && backup.bytes_done * 2 >= backup.bytes;
        while backup.state == BackupState::Running && !half(&backup) && !ended.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
            backup = client.backup(backup.id).expect("a healthy server");
        }
        victim.take().expect("killed once").kill();
        load.join().expect("no panic");
        (backup.state == BackupState::Running).then_some(backup.bytes_done)
    });
    totals.killed += 1;
    totals.half_way += u64::from(copied.is_some_and(|bytes| bytes > 0));
    let left: Vec<String> = names(backups).into_iter().filter(|name| !before.contains(name)).collect();
    if copied.is_some() {
        assert!(left.iter().all(|name| name.ends_with(".unfinished")), "round {round}: {left:?} looks whole");
    }
    let server = start(home, backups);
    let left = names(backups);
    assert!(left.iter().all(|name| !name.ends_with(".unfinished")), "round {round}: {left:?} was left");
    let found = listed(&server);
    for (key, (_, lives)) in told.lock().expect("no panic").iter() {
        assert_eq!(found.contains_key(key), *lives, "round {round}: LOST after the kill: {key}");
    }
    server
}

fn names(backups: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(backups).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name != "lock").collect()
}

/// Restores a backup, starts a server on it, and holds its tasks against what was acknowledged before its instant.
fn prove(place: &Path, backups: &Path, backup: &BackupBody, told: &Told, round: u64, totals: &mut Totals) {
    let from = backups.join(&backup.name);
    let back = Home { data: place.join("back"), log: place.join("back.log") };
    let program = env!("CARGO_BIN_EXE_tickwheel");
    let restored = Command::new(program).arg("restore").args([&from, &back.data]).output().expect("it runs");
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "round {round}: {said}");
    let server = back.start();
    let found = listed(&server);
    let as_of_ms = backup.as_of_ms.expect("it is whole");
    let before = told.iter().filter(|(_, (at_ms, _))| *at_ms < as_of_ms);
    let mut checked = 0;
    for (key, (at_ms, lives)) in before {
        checked += 1;
        let there = found.contains_key(key);
        assert_eq!(
            there, *lives,
            "round {round}: LOST: {key} was acknowledged at {at_ms}, before {as_of_ms}; {said}"
        );
    }
    assert!(checked >= BEFORE as usize, "round {round}: {checked} keys are too few for a test");
    assert_eq!(backup.tasks, Some(found.len() as u64), "round {round}: it says how many it has");
    server.kill();
    totals.restored += 1;
    totals.checked += checked;
    (totals.tasks, totals.bytes) = (found.len() as u64, backup.bytes);
    for path in [&back.data, &from] {
        std::fs::remove_dir_all(path).expect("removed");
    }
}

/// The live tasks, by key.
fn listed(server: &Server) -> BTreeMap<String, ()> {
    let client = Client::new(&server.url).expect("the server's own URL");
    let mut found = BTreeMap::new();
    let mut query = ListQuery { limit: 1_000, ..ListQuery::default() };
    loop {
        let page = client.list(QUEUE, &query).expect("a healthy server lists");
        found.extend(page.tasks.into_iter().map(|task| (task.key, ())));
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return found,
        }
    }
}
