//! A wall clock that jumps while the monotonic clock goes on (by libfaketime); and a process that is frozen.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tickwheel_testing::is_long;

use crate::faults::caller::Caller;
use crate::faults::history::{Answer, Key, wall_ms};
use crate::faults::needs::{Need, has};
use crate::faults::report::{ready, wait_for};
use crate::faults::server::{Server, Starting};
use crate::faults::stage::{HOUR_MS, Stage, key};

const MINUTE_MS: i64 = 60_000;
/// The path of the library in Debian's package, below the architecture's folder.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A server whose wall clock the test can move.
struct Jumper {
    stage: Stage,
    offset: PathBuf,
}

impl Jumper {
    fn new() -> Option<Self> {
        if !has("jumps of the wall clock", &[Need::Program("faketime")]) {
            return None;
        }
        let stage = Stage::new();
        let offset = stage.path().join("offset");
        let jumper = Self { stage, offset };
        jumper.show(0);
        Some(jumper)
    }

    fn command(&self) -> Command {
        let mut command = self.stage.home.command(&[]);
        command.env("LD_PRELOAD", library()).env("FAKETIME_TIMESTAMP_FILE", &self.offset);
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("FAKETIME_NO_CACHE", "1");
        command
    }

    fn start(&self) -> Server {
        self.stage.home.start_as(&mut self.command())
    }

    /// From now on the server's clock is ahead of the test's clock by this offset.
    fn show(&self, offset_ms: i64) {
        // The file changes in one step, because the server may read it at any moment.
        let next = self.offset.with_extension("next");
        fs::write(&next, format!("{:+.3}\n", offset_ms as f64 / 1_000.0)).expect("write the offset");
        fs::rename(next, &self.offset).expect("move the offset");
    }

    /// Moves the clock as [`Self::show`] does, and waits until the server noticed the step and believes it.
    fn jump(&self, server: &Server, offset_ms: i64) {
        let before = steps(server);
        // Delivery times are checked on receipt against the believed clock. During the step, they are checked against
        // the later of the two clocks.
        let believed = self.stage.history.wall_ms() - wall_ms();
        self.stage.history.set_wall_offset_ms(believed.max(offset_ms));
        self.show(offset_ms);
        wait_for("the step to be noticed", || (steps(server) > before).then_some(()));
        self.stage.history.set_wall_offset_ms(offset_ms);
    }
}

/// The library's path: the first folder that has it.
fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").expect("list the libraries");
    let found = folders.flatten().map(|folder| folder.path().join(LIBRARY)).find(|path| path.exists());
    found.expect("faketime comes with its library")
}

fn steps(server: &Server) -> u64 {
    let (status, said) = ready(&server.url);
    assert_eq!(status, 200, "a step of the clock is no reason to refuse work: {said}");
    said["clock"]["steps"].as_u64().expect("a count")
}

fn offset_ms(server: &Server) -> i64 {
    ready(&server.url).1["clock"]["offset_ms"].as_i64().expect("a number")
}

/// The keys of the tasks that are delivered within this time.
fn come(caller: &Caller<'_>, wait_ms: u64) -> Vec<Key> {
    let mut leased = caller.lease("0", 100, wait_ms).expect("leases go on");
    leased.sort_by(|a, b| a.key.cmp(&b.key));
    if !leased.is_empty() {
        let acked = caller.ack("0", &leased).expect("acks go on");
        assert!(acked.iter().all(|answer| *answer == Answer::Acked), "{acked:?}");
    }
    leased.into_iter().map(|one| one.key).collect()
}

/// The next task that comes is this one, whenever that is.
fn assert_comes(caller: &Caller<'_>, name: &str) {
    let came = wait_for(name, || Some(come(caller, 1_000)).filter(|came| !came.is_empty()));
    assert_eq!(came, [key(name)]);
}

#[test]
fn a_jump_back_makes_nothing_early_and_nothing_unready() {
    let Some(mut jumper) = Jumper::new() else { return };
    let server = jumper.start();
    let caller = Caller::new(&server.url, &jumper.stage.history);
    caller.put(&key("ready"), wall_ms() - 1, 1).expect("put");
    caller.put(&key("soon"), wall_ms() + 5_000, 1).expect("put");
    jumper.jump(&server, -HOUR_MS);
    // The task became ready by the clock before the step.
    jumper.stage.history.set_wall_offset_ms(0);
    assert_eq!(come(&caller, 0), [key("ready")], "what was ready stays ready");
    jumper.stage.history.set_wall_offset_ms(-HOUR_MS);
    caller.put(&key("after"), wall_ms() - HOUR_MS + 500, 1).expect("put");
    assert_comes(&caller, "after");
    assert_eq!(come(&caller, 5_000), Vec::<Key>::new(), "its time is an hour away again");
    // A step of two minutes forward is believed at once.
    caller.put(&key("minute"), wall_ms() - HOUR_MS + MINUTE_MS, 1).expect("put");
    jumper.jump(&server, -HOUR_MS + 2 * MINUTE_MS);
    assert_comes(&caller, "minute");
    assert_eq!(offset_ms(&server), 0);
    wait_for("both steps in the log", || (jumper.stage.home.lines("clock_stepped").len() == 2).then_some(()));
    if is_long() {
        // The return is a step forward of nearly an hour. It is believed only after a wait, because the clock was right
        // for a shorter time than it was wrong.
        jumper.show(0);
        let begun = Instant::now();
        jumper.stage.history.set_wall_offset_ms(0);
        assert_comes(&caller, "soon");
        assert!(begun.elapsed() > Duration::from_secs(58), "believed after {:?}", begun.elapsed());
    }
    server.kill();
    jumper.show(0);
    jumper.stage.history.set_wall_offset_ms(0);
    // A start on this boot would doubt the clock for a minute, because it is an hour ahead of the time that was believed last.
    fs::remove_file(jumper.stage.home.data.join("clock")).expect("removed");
    jumper.stage.restart_and_judge("a jump back");
}

/// An hour back and at once forward again. A step forward of an hour is usually believed only after a minute, but this
/// one returns to the right clock.
#[test]
fn a_glitch_back_makes_nothing_late() {
    let Some(mut jumper) = Jumper::new() else { return };
    let server = jumper.start();
    let caller = Caller::new(&server.url, &jumper.stage.history);
    caller.put(&key("before"), wall_ms() + 10_000, 1).expect("put");
    // The clock was right for ten seconds, so a glitch may last ten seconds.
    assert_comes(&caller, "before");
    caller.put(&key("soon"), wall_ms() + 1_000, 1).expect("put");
    jumper.jump(&server, -HOUR_MS);
    let before = steps(&server);
    jumper.show(0);
    jumper.stage.history.set_wall_offset_ms(0);
    wait_for("the way back to be noticed", || (steps(&server) > before).then_some(()));
    assert_eq!(offset_ms(&server), 0, "it is believed at once");
    assert_comes(&caller, "soon");
    server.kill();
    jumper.stage.restart_and_judge("a glitch back");
}

#[test]
fn a_jump_ahead_of_more_than_five_minutes_has_to_stand() {
    let Some(mut jumper) = Jumper::new() else { return };
    let server = jumper.start();
    let caller = Caller::new(&server.url, &jumper.stage.history);
    caller.put(&key("in-5-min"), wall_ms() + 5 * MINUTE_MS, 1).expect("put");
    caller.put(&key("in-2-s"), wall_ms() + 2_000, 1).expect("put");
    for ahead_ms in [HOUR_MS, 10 * MINUTE_MS] {
        let before = steps(&server);
        jumper.show(ahead_ms);
        wait_for("the step to be noticed", || (steps(&server) > before).then_some(()));
        assert!((offset_ms(&server) - ahead_ms).abs() < 1_000, "it says how far off the clock is");
    }
    let (status, said) = ready(&server.url);
    assert_eq!((status, &said["status"]), (200, &"degraded".into()), "{said}");
    let lines = |event| wait_for(event, || jumper.stage.home.lines(event).pop());
    assert!(lines("clock_doubted").contains("ahead_ms="));
    let stands = Instant::now();
    // Time goes on as before.
    assert_comes(&caller, "in-2-s");
    assert_eq!(come(&caller, 1_000), Vec::<Key>::new());
    if is_long() {
        jumper.stage.history.set_wall_offset_ms(10 * MINUTE_MS);
        assert_comes(&caller, "in-5-min");
        assert!(stands.elapsed() > Duration::from_secs(58), "believed after {:?}", stands.elapsed());
        assert_eq!(offset_ms(&server), 0);
        assert_eq!(steps(&server), 2, "to believe it is no further step");
        assert!(lines("clock_believed").contains("by_ms="));
    } else {
        // The jump ends before the server believes it, and has had no effect.
        jumper.show(0);
        wait_for("the clock to be right", || (offset_ms(&server) == 0).then_some(()));
        assert_eq!(come(&caller, 1_500), Vec::<Key>::new());
        assert!(lines("clock_gone_back").contains("by_ms="));
    }
    server.kill();
    jumper.show(0);
    jumper.stage.history.set_wall_offset_ms(0);
    jumper.stage.restart_and_judge("a jump ahead");
}

/// The story: the clock was two hours ahead, which the running server doubted. It was started again, believed the clock without a word, and fired
/// everything an hour early.
#[test]
fn a_start_on_the_same_boot_believes_no_clock_that_was_set_far_ahead() {
    let Some(jumper) = Jumper::new() else { return };
    let home = &jumper.stage.home;
    let note = home.data.join("clock");
    let server = jumper.start();
    let caller = Caller::new(&server.url, &jumper.stage.history);
    caller.put(&key("in-1-h"), wall_ms() + HOUR_MS, 1).expect("a healthy server");
    wait_for("a note of the clock", || fs::metadata(&note).is_ok_and(|note| note.len() > 0).then_some(()));
    server.kill();
    jumper.show(2 * HOUR_MS);
    let server = jumper.start();
    let line = |event| wait_for(event, || home.lines(event).pop());
    assert!(line("clock_doubted").contains("ahead_ms=7"));
    assert!(offset_ms(&server) > HOUR_MS);
    assert_eq!(come(&Caller::new(&server.url, &jumper.stage.history), 1_000), Vec::<Key>::new());
    server.kill();

    // Without the note, nothing tells this from a machine that was off.
    fs::remove_file(&note).expect("removed");
    let refused = Starting::of(jumper.command().args(["--clock-max-ahead", "1h"])).ready();
    assert!(refused.is_err());
    assert!(home.last_words().contains("the wall clock is 72"), "{}", home.last_words());
    let server = jumper.start();
    assert!(line("clock_ahead").contains("ahead_ms=7"));
    assert!(line("clock_ahead").contains("written=") && line("clock_ahead").contains("now="));
    assert!(offset_ms(&server) > HOUR_MS, "what fell due is held back");
    let begun = Instant::now();
    let caller = Caller::new(&server.url, &jumper.stage.history);
    jumper.stage.history.set_wall_offset_ms(2 * HOUR_MS);
    assert_eq!(come(&caller, 1_000), Vec::<Key>::new());
    if is_long() {
        assert_comes(&caller, "in-1-h");
        assert!(begun.elapsed() > Duration::from_secs(50), "believed after {:?}", begun.elapsed());
        assert!(line("clock_believed").contains("by_ms=7"));
        assert_eq!(offset_ms(&server), 0);
    }
}

/// The server is frozen in the middle of a load, and then continued.
#[test]
fn a_frozen_server_goes_on_where_it_was() {
    let mut stage = Stage::new();
    let server = stage.home.start();
    let caller = Caller::new(&server.url, &stage.history);
    caller.put(&key("meanwhile"), wall_ms() + 400, 1).expect("put");
    thread::scope(|scope| {
        let frozen = scope.spawn(|| {
            // The freeze begins while the server waits for the task, and ends after its due time.
            thread::sleep(Duration::from_millis(200));
            server.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(1_200));
            server.signal(Signal::CONT);
        });
        assert_comes(&caller, "meanwhile");
        frozen.join().expect("the freeze");
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            server.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(700));
            server.signal(Signal::CONT);
        });
        stage.load(&server, Duration::from_millis(1_500));
    });
    assert_eq!(steps(&server), 0, "both clocks went on");
    server.kill();
    stage.restart_and_judge("a freeze");
}
