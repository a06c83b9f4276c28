//! Backups of a server under load, some of them interrupted by SIGKILL. Each whole backup is restored and compared
//! with everything that was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_api::{
    BackupBody, BackupState, CadenceBody, Due, LeaseBody, LeasedTask, ListQuery, NackBody, PayloadBody,
    PutBody, PutQuery, RetryBody, ScheduleSpec, SchedulesQuery, SettingsBody, TasksPage, Terms, TokenResult,
};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use crate::faults::history::wall_ms;
use crate::faults::needs::{number, say};
use crate::faults::server::{Home, Server};
use crate::kit::Random;

const QUEUE: &str = "backups";
/// The queue of tasks that are leased and then acked or given up.
const WORKED: &str = "worked";
/// Leases last longer than the test, so a task that is kept stays leased until a kill.
const LEASE_MS: u64 = 12 * 3_600_000;
/// The number of tasks that this queue gets between two changes of a schedule and a setting.
const RULES_EVERY: u64 = 10;
/// The largest number of consecutive kills that may come outside of the second half of a copy.
const KILLS_MAX: u32 = 30;
const WRITERS: u64 = 3;
/// Tasks are due after the end of the test.
const FAR_MS: i64 = 86_400_000;
/// One of this number of tasks is cancelled again.
const CANCEL_EVERY: u64 = 4;
/// One of this number of rounds is killed half-way.
const KILL_EVERY: u64 = 5;
/// The number of tasks before the first round, and their size (bytes). Their copy takes a while.
const BEFORE: u64 = 5_000;
const LARGE: usize = 1_000;
/// The size of a task that is put during a backup (bytes), and the pause of its client before the next one. Without
/// the pause, the load of many rounds would make a directory that takes minutes to copy.
const SMALL: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The last answer about each name: its instant, and the fact that is true since then.
type Told = BTreeMap<String, (i64, Fact)>;

/// The fact about a task, a schedule or a setting after an answered call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Fact {
    /// The task is live: scheduled, ready or leased.
    Live,
    /// The task was given up, and is kept as dead.
    Dead,
    /// The task was cancelled or acked, or the schedule was deleted.
    Gone,
    /// The schedule exists.
    Scheduled,
    /// The limit of the queue of this name.
    Limit(u64),
}

#[derive(Debug, Default)]
struct Totals {
    restored: u64,
    killed: u64,
    /// Kills that came too early or too late to count, and were repeated.
    missed: u64,
    acknowledged: usize,
    checked: usize,
    tasks: u64,
    bytes: u64,
}

/// The number of rounds is `TICKWHEEL_BACKUPS` (4 by default); `TICKWHEEL_FAULT_SEED` decides when backups begin and
/// kills come (1 by default).
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
        // The last round of each five, or the last of all if there are fewer.
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
        "backups: seed {seed}: {} restored, {} killed half way ({} more kills came too early or too late), {} facts acknowledged, {} held \
         against a backup, the last one of {} tasks and {} bytes; no loss",
        totals.restored,
        totals.killed,
        totals.missed,
        totals.acknowledged,
        totals.checked,
        totals.tasks,
        totals.bytes
    ));
    let kinds = |fact: fn(&Fact) -> bool| {
        told.lock().expect("no panic").values().filter(|(_, told)| fact(told)).count()
    };
    let met = [
        kinds(|fact| *fact == Fact::Live),
        kinds(|fact| *fact == Fact::Dead),
        kinds(|fact| *fact == Fact::Gone),
        kinds(|fact| *fact == Fact::Scheduled),
        kinds(|fact| matches!(fact, Fact::Limit(_))),
    ];
    assert!(met.iter().all(|count| *count > 0), "live, dead, gone, schedules, settings: {met:?}");
}

fn start(home: &Home, backups: &Path) -> Server {
    home.start_as(home.command(&[]).arg("--backup-dir").arg(backups))
}

fn put(client: &Client, key: &str, bytes: usize) -> Result<(), ClientError> {
    let payload = PayloadBody::json(format!("\"{}\"", "x".repeat(bytes)).into_bytes());
    let body = PutBody { due: Due::At(wall_ms() + FAR_MS), payload, ..PutBody::default() };
    client.put(QUEUE, key, &body, PutQuery::default(), None).map(drop)
}

/// Puts tasks whose copy takes a while.
fn fill(server: &Server, told: &Mutex<Told>) {
    thread::scope(|scope| {
        for part in 0..8 {
            let client = Client::new(&server.url).expect("the server's own URL");
            scope.spawn(move || {
                for n in (part..BEFORE).step_by(8) {
                    let key = format!("before-{n}");
                    put(&client, &key, LARGE).expect("a healthy server");
                    told.lock().expect("no panic").insert(key, (wall_ms(), Fact::Live));
                }
            });
        }
    });
}

/// Runs `work` while clients put and cancel tasks. They use each key once, and record each answer with its instant.
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
                        // Between the two answers the state is unknown.
                        if client.cancel(QUEUE, &key, Default::default(), None).is_err() {
                            break;
                        }
                    }
                    let fact = if n % CANCEL_EVERY == 0 { Fact::Gone } else { Fact::Live };
                    told.lock().expect("no panic").insert(key, (wall_ms(), fact));
                    thread::sleep(PAUSE);
                }
            });
        }
        let (client, ended) = (Client::new(&server.url).expect("the server's own URL"), &ended);
        scope.spawn(move || {
            for n in 0.. {
                if ended.load(Ordering::Relaxed) || work_once(&client, told, round, n).is_err() {
                    break;
                }
                thread::sleep(PAUSE);
            }
        });
        let done = work();
        ended.store(true, Ordering::Relaxed);
        done
    })
}

/// Puts a task that is due now, leases one, and acks it, gives it up, or keeps it; at intervals a schedule and a
/// setting change, too. One client does all of this, so no other leases its tasks, and its last answer holds until its
/// next call.
fn work_once(client: &Client, told: &Mutex<Told>, round: u64, n: u64) -> Result<(), ClientError> {
    let tell = |name: String, fact| {
        told.lock().expect("no panic").insert(name, (wall_ms(), fact));
    };
    let key = format!("worked-{round}-{n}");
    let retry = RetryBody { max_attempts: Some(1), ..RetryBody::default() };
    let terms = Terms { retry: Some(retry), ..Terms::default() };
    client.put(WORKED, &key, &PutBody { terms, ..PutBody::default() }, PutQuery::default(), None)?;
    tell(key, Fact::Live);
    let lease = LeaseBody { lease_ms: Some(LEASE_MS), wait_ms: 1_000, ..LeaseBody::default() };
    for LeasedTask { key, token, .. } in client.lease(WORKED, &lease)? {
        let (results, fact) = match n % 3 {
            0 => (client.ack(WORKED, vec![token])?, Fact::Gone),
            1 => (
                client.nack(WORKED, &NackBody { tokens: vec![token], delay_ms: None, reason: None })?,
                Fact::Dead,
            ),
            _ => continue,
        };
        assert!(matches!(results[..], [TokenResult::Acked | TokenResult::Nacked]), "{key}: {results:?}");
        tell(key, fact);
    }
    if n.is_multiple_of(RULES_EVERY) {
        let name = format!("schedule-{round}-{n}");
        client.put_schedule(WORKED, &name, &ScheduleSpec::new(CadenceBody::Every(FAR_MS as u64)), None)?;
        if n.is_multiple_of(2 * RULES_EVERY) {
            client.delete_schedule(WORKED, &name, None)?;
        }
        tell(name, if n.is_multiple_of(2 * RULES_EVERY) { Fact::Gone } else { Fact::Scheduled });
        let (queue, limit) = (format!("limits-{round}-{n}"), n + 1);
        client.configure(&queue, &SettingsBody { max_backlog: Some(limit), ..SettingsBody::default() })?;
        tell(queue, Fact::Limit(limit));
    }
    Ok(())
}

/// Makes the server write a backup and waits until it is whole.
fn whole(server: &Server) -> BackupBody {
    let client = Client::new(&server.url).expect("the server's own URL");
    let mut backup = client.begin_backup().expect("it is begun");
    let begun = Instant::now();
    while backup.state == BackupState::Running {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "it does not end: {backup:?}");
        thread::sleep(Duration::from_millis(5));
        backup = client.backup(backup.id).expect("a healthy server");
    }
    assert_eq!(backup.state, BackupState::Done, "{backup:?}");
    backup
}

/// SIGKILL in the middle of a copy. No directory that looks whole is left, and the next start removes the part. A kill
/// counts if the part on disk has at least half of the bytes and not all of them. Otherwise the kill is repeated.
fn kill_half_way(
    mut server: Server,
    home: &Home,
    backups: &Path,
    told: &Mutex<Told>,
    round: u64,
    totals: &mut Totals,
) -> Server {
    for attempt in 0..KILLS_MAX {
        let is_half_way = kill_once(server, backups, &format!("{round}-{attempt}"));
        server = start(home, backups);
        let left = names(backups);
        assert!(left.iter().all(|name| !name.ends_with(".unfinished")), "round {round}: {left:?} was left");
        let found = Found::of(&server);
        for (name, (_, fact)) in told.lock().expect("no panic").iter() {
            assert!(found.has(name, *fact), "round {round}: LOST after the kill: {name} was {fact:?}");
        }
        if is_half_way {
            totals.killed += 1;
            return server;
        }
        totals.missed += 1;
    }
    panic!("round {round}: none of {KILLS_MAX} kills met a copy half way: no test of it");
}

/// Kills the server when its backup seems to be half done. Returns whether it was.
fn kill_once(server: Server, backups: &Path, round: &str) -> bool {
    let before = names(backups);
    let client = Client::new(&server.url).expect("the server's own URL");
    let url = server.url.clone();
    let backup = thread::scope(|scope| {
        let load = scope.spawn(move || {
            // These clients have keys of their own, without recorded answers.
            let client = Client::new(&url).expect("the server's own URL");
            (0..).take_while(|n| put(&client, &format!("killed-{round}-{n}"), SMALL).is_ok()).count()
        });
        let mut backup = client.begin_backup().expect("it is begun");
        let half = |backup: &BackupBody| backup.bytes > 0 && backup.bytes_done * 2 >= backup.bytes;
        while backup.state == BackupState::Running && !half(&backup) {
            thread::sleep(Duration::from_millis(1));
            backup = client.backup(backup.id).expect("a healthy server");
        }
        server.kill();
        load.join().expect("no panic");
        backup
    });
    let left: Vec<String> = names(backups).into_iter().filter(|name| !before.contains(name)).collect();
    let part = format!("{}.unfinished", backup.name);
    if !left.contains(&part) {
        // The kill came too late. If there is a backup, it must be whole.
        assert!(left.iter().all(|name| *name == backup.name), "round {round}: {left:?} is neither");
        for name in left {
            std::fs::remove_dir_all(backups.join(name)).expect("removed");
        }
        return false;
    }
    assert_eq!(left, [part.as_str()], "round {round}: something looks whole");
    let copied = bytes_below(&backups.join(&part));
    backup.bytes > 0 && copied * 2 >= backup.bytes && copied < backup.bytes
}

/// The bytes of all files below a directory.
fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("an entry"));
    let bytes = |entry: std::fs::DirEntry| match entry.metadata().expect("it is there") {
        found if found.is_dir() => bytes_below(&entry.path()),
        found => found.len(),
    };
    entries.map(bytes).sum()
}

fn names(backups: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(backups).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name != "lock").collect()
}

/// Restores a backup, starts a server on it, and compares its tasks with everything that was acknowledged before its
/// instant.
fn prove(place: &Path, backups: &Path, backup: &BackupBody, told: &Told, round: u64, totals: &mut Totals) {
    let from = backups.join(&backup.name);
    let back = Home { data: place.join("back"), log: place.join("back.log") };
    let program = env!("CARGO_BIN_EXE_tickwheel");
    let restored = Command::new(program).arg("restore").args([&from, &back.data]).output().expect("it runs");
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "round {round}: {said}");
    let server = back.start();
    let found = Found::of(&server);
    let as_of_ms = backup.as_of_ms.expect("it is whole");
    let before = told.iter().filter(|(_, (at_ms, _))| *at_ms < as_of_ms);
    let mut checked = 0;
    for (name, (at_ms, fact)) in before {
        checked += 1;
        assert!(
            found.has(name, *fact),
            "round {round}: LOST: {name} was acknowledged as {fact:?} at {at_ms}, before {as_of_ms}; {said}"
        );
    }
    assert!(checked >= BEFORE as usize, "round {round}: {checked} keys are too few for a test");
    let counts = (Some(found.live.len() as u64), Some(found.dead.len() as u64));
    assert_eq!((backup.tasks, backup.dead), counts, "round {round}: it says how many it has");
    server.kill();
    totals.restored += 1;
    totals.checked += checked;
    (totals.tasks, totals.bytes) = (found.live.len() as u64, backup.bytes);
    for path in [&back.data, &from] {
        std::fs::remove_dir_all(path).expect("removed");
    }
}

/// The content of a server.
struct Found {
    client: Client,
    live: BTreeSet<String>,
    dead: BTreeSet<String>,
    schedules: BTreeSet<String>,
}

impl Found {
    fn of(server: &Server) -> Self {
        let client = Client::new(&server.url).expect("the server's own URL");
        let keys = |list: &dyn Fn(&ListQuery) -> Result<TasksPage, ClientError>| {
            let mut keys = BTreeSet::new();
            let mut query = ListQuery { limit: 1_000, ..ListQuery::default() };
            loop {
                let page = list(&query).expect("a healthy server lists");
                keys.extend(page.tasks.into_iter().map(|task| task.key));
                match page.next_cursor {
                    Some(cursor) => query.cursor = Some(cursor),
                    None => return keys,
                }
            }
        };
        let mut live = keys(&|query| client.list(QUEUE, query));
        live.extend(keys(&|query| client.list(WORKED, query)));
        let dead = keys(&|query| client.dead(WORKED, query));
        let mut schedules = BTreeSet::new();
        let mut query = SchedulesQuery::default();
        loop {
            let page = client.schedules(WORKED, &query).expect("a healthy server lists");
            schedules.extend(page.schedules.into_iter().map(|schedule| schedule.name));
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
        Self { client, live, dead, schedules }
    }

    fn has(&self, name: &str, fact: Fact) -> bool {
        let there = (self.live.contains(name), self.dead.contains(name), self.schedules.contains(name));
        match fact {
            Fact::Live => there == (true, false, false),
            Fact::Dead => there == (false, true, false),
            Fact::Gone => there == (false, false, false),
            Fact::Scheduled => there == (false, false, true),
            Fact::Limit(limit) => {
                self.client.queue(name).expect("a healthy server").settings.max_backlog == Some(limit)
            }
        }
    }
}
