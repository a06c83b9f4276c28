//! `top` on a terminal: its keys, and the terminal's state afterwards.

use rustix::process::Signal;
use tickwheel_api::BatchLine;
use tickwheel_client::blocking::Client;

use crate::cli::client::World;
use crate::cli::run::run_with;
use crate::cli::screen::Screen;

/// Starts a server with the queues `q00` to `q29`. Each has one task more than the previous one.
fn thirty_queues() -> World {
    let world = World::new();
    let client = Client::new(&world.server.url).expect("a client");
    let line = BatchLine::parse(br#"{"op":"put","key":"x","delay":"1h"}"#).expect("a line");
    for queue in 0..30 {
        let lines: Vec<_> =
            (0..=queue).map(|number| BatchLine { key: format!("k{number}"), ..line.clone() }).collect();
        client.batch(&format!("q{queue:02}"), &lines).expect("puts");
    }
    world
}

/// The names of the queues in a picture, from the top.
fn queues(picture: &str) -> Vec<&str> {
    picture.split("\r\n").filter_map(|row| row.strip_prefix("\x1b[Kq")?.get(..2)).collect()
}

/// Starts `top` with the largest queue at the top.
fn start(world: &World) -> Option<Screen> {
    let mut screen =
        Screen::start(&["top", "--every", "1h", "--sort", "scheduled", "--server", &world.server.url])?;
    screen.wait_for(|picture| picture.contains("1-18 of 30"));
    assert!(!screen.is_as_before(), "each key is read at once");
    Some(screen)
}

#[test]
fn keys_sort_and_scroll_and_q_leaves_the_terminal_as_it_was() {
    let world = thirty_queues();
    let Some(mut screen) = start(&world) else { return };
    let picture = screen.wait_for(|picture| picture.contains("SCHEDULED▼") && picture.ends_with('H'));
    assert_eq!(queues(&picture)[..2], ["29", "28"], "{picture}");
    screen.press("r");
    let picture = screen.wait_for(|picture| picture.contains("SCHEDULED▲") && picture.contains("1-18 of 30"));
    assert_eq!(queues(&picture)[..2], ["00", "01"], "{picture}");
    screen.press("\x1b[6~");
    let picture = screen.wait_for(|picture| picture.contains("13-30 of 30"));
    assert_eq!(queues(&picture).last(), Some(&"29"), "{picture}");
    screen.press("k\x1b[A");
    screen.wait_for(|picture| picture.contains("11-28 of 30"));
    screen.press("<r");
    let picture = screen.wait_for(|picture| picture.contains("QUEUE▼") && picture.contains("1-18 of 30"));
    assert_eq!(queues(&picture)[..2], ["29", "28"], "{picture}");
    screen.press("?");
    screen.wait_for(|picture| picture.contains("sort by the next column"));
    screen.press("?");
    screen.wait_for(|picture| picture.contains("1-18 of 30"));
    screen.resize(12, 160);
    let low = screen.wait_for(|picture| picture.contains("1-6 of 30"));
    assert_eq!(queues(&low).len(), 6, "{low}");
    screen.press("q");
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
    screen.wait_for_farewell(str::is_empty);
}

#[test]
fn esc_leaves_once_nothing_follows_it() {
    let world = World::new();
    let Some(mut screen) = Screen::start(&["top", "--every", "1h", "--server", &world.server.url]) else {
        return;
    };
    screen.wait_for(|picture| picture.contains("0-0 of 0"));
    screen.press("\x1b");
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let world = thirty_queues();
    for (signal, code) in [(None, 130), (Some(Signal::TERM), 143), (Some(Signal::HUP), 129)] {
        let Some(mut screen) = start(&world) else { return };
        match signal {
            Some(signal) => screen.signal(signal),
            None => screen.press("\x03"),
        }
        assert_eq!(screen.end(), code);
        assert!(screen.is_as_before(), "{signal:?}");
        screen.wait_for_farewell(str::is_empty);
    }
}

/// A terminal takes no output after Ctrl-S in another program, or while its window hangs.
#[test]
fn a_terminal_that_takes_no_output_holds_no_signal_up() {
    let world = thirty_queues();
    let Some(mut screen) = start(&world) else { return };
    screen.stop_output();
    screen.signal(Signal::TERM);
    assert_eq!(screen.end(), 143);
    assert!(screen.is_as_before());
}

/// The session has no shell that could continue the program, so it must not stop.
#[test]
fn ctrl_z_gives_the_terminal_back_and_takes_it_again() {
    let world = thirty_queues();
    let Some(mut screen) = start(&world) else { return };
    screen.press("\x1a");
    screen.wait_for_farewell(|rest| rest.contains("1-18 of 30"));
    screen.press("r");
    screen.wait_for(|picture| picture.contains("SCHEDULED▲"));
    screen.press("q");
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
}

#[test]
fn a_server_that_goes_away_is_waited_for() {
    let World { server } = World::new();
    let Some(mut screen) = Screen::start(&["top", "--every", "100ms", "--server", &server.url]) else {
        return;
    };
    screen.wait_for(|picture| picture.contains("0-0 of 0"));
    server.kill();
    screen.wait_for(|picture| picture.contains("no answer for"));
    screen.press("q");
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
}

/// A process that is stopped takes connections, since the kernel does, and answers none.
#[test]
fn a_server_that_hangs_is_told_beside_its_old_figures_until_it_answers() {
    let World { server } = World::new();
    let Some(mut screen) = Screen::start(&["top", "--every", "100ms", "--server", &server.url]) else {
        return;
    };
    let is_fresh = |picture: &str| picture.contains("0-0 of 0") && !picture.contains("\x1b[2m");
    screen.wait_for(is_fresh);
    server.signal(Signal::STOP);
    screen.wait_for(|picture| picture.contains("no answer for") && picture.contains("\x1b[2m"));
    server.signal(Signal::CONT);
    screen.wait_for(|picture| picture.contains("tickwheel at") && is_fresh(picture));
    screen.press("q");
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
}

#[test]
fn the_last_of_a_number_of_pictures_stays_on_the_screen() {
    let world = thirty_queues();
    let Some(mut screen) =
        Screen::start(&["top", "--every", "100ms", "--times", "1", "--server", &world.server.url])
    else {
        return;
    };
    assert_eq!(screen.end(), 0);
    assert!(screen.is_as_before());
    let rest = screen.wait_for_farewell(|rest| rest.ends_with("more queues\r\n"));
    assert!(rest.contains("in a second: puts") && rest.contains("q00 ") && !rest.contains('\x1b'), "{rest}");
}

#[test]
fn without_a_keyboard_it_draws_and_takes_nothing() {
    let world = thirty_queues();
    let words = ["top", "--every", "100ms", "--times", "2", "--server", &world.server.url];
    let Some(mut screen) = Screen::start_without_keys(&words) else { return };
    let picture =
        screen.wait_for(|picture| picture.contains("Ctrl-C ends it") && picture.contains("more queues"));
    assert!(screen.is_as_before(), "its settings are not changed");
    assert_eq!(queues(&picture).len(), 17, "{picture}");
    assert_eq!(screen.end(), 0);
    let piped = run_with(&words, "q");
    assert_eq!(piped.lines().len(), 2, "into a pipe it is data, a line for each look: {}", piped.out);
}
