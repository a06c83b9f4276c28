//! A program on a pseudo-terminal: the test presses its keys and reads its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Action, Winsize, tcflow, tcgetattr, tcsetwinsize};

use crate::server::tickwheel;

/// Returns to the usual screen.
pub(crate) const LEAVE: &str = "\x1b[?1049l";

/// A program on a terminal of 24 lines and 160 columns, wide enough for every line. Dropping it kills the program.
pub(crate) struct Screen {
    keyboard: File,
    /// The program's side of the terminal. It keeps the terminal and its settings after the program has ended.
    program: OwnedFd,
    child: Child,
    output: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    before: String,
}

impl Screen {
    /// Starts `tickwheel` with these arguments. The terminal belongs to its session, so that keys make signals. `None`: a program for that is
    /// missing, and the running test is skipped.
    pub(crate) fn start(words: &[&str]) -> Option<Self> {
        Self::start_with(words, true)
    }

    /// Starts `tickwheel` with an empty stdin.
    pub(crate) fn start_without_keys(words: &[&str]) -> Option<Self> {
        Self::start_with(words, false)
    }

    fn start_with(words: &[&str], has_keys: bool) -> Option<Self> {
        if !tickwheel_testing::has("setsid", "apt-get install util-linux") {
            return None;
        }
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let screen = openpt(flags).expect("a pseudo-terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("it is ours");
        let program = ioctl_tiocgptpeer(&screen, flags).expect("its other side");
        let keyboard = File::from(screen);
        resize(&keyboard, 24, 160);
        let before = settings(&program);
        let copy = || Stdio::from(program.try_clone().expect("a copy"));
        let words = tickwheel(words);
        // Only the first process of a session can take a terminal, and only a terminal that was taken makes signals.
        let mut command = Command::new("setsid");
        command.arg(if has_keys { "--ctty" } else { "--wait" });
        command.arg(words.get_program()).args(words.get_args());
        for (name, value) in words.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(if has_keys { copy() } else { Stdio::null() }).stdout(copy()).stderr(copy());
        let child = command.spawn().expect("start tickwheel by setsid of util-linux");
        let mut reader = keyboard.try_clone().expect("a copy");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { keyboard, program, child, output, shown: Vec::new(), before })
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.keyboard, rows, columns);
    }

    /// Stops the output: the terminal takes no more bytes.
    pub(crate) fn stop_output(&self) {
        tcflow(&self.program, Action::OOff).expect("it is a terminal");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("send the signal");
    }

    /// Waits until the last picture matches, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, is_there: impl Fn(&str) -> bool) -> String {
        // A picture begins at the upper left corner.
        self.wait(|shown| shown.rsplit("\x1b[H").next().filter(|last| is_there(last)).map(str::to_owned))
    }

    /// Waits for the text that the program writes after its last picture, when it has left the alternate screen, and
    /// returns the text.
    #[track_caller]
    pub(crate) fn wait_for_farewell(&mut self, is_whole: impl Fn(&str) -> bool) -> String {
        self.wait(|shown| {
            shown.split_once(LEAVE).map(|(_, rest)| rest.to_owned()).filter(|rest| is_whole(rest))
        })
    }

    #[track_caller]
    fn wait(&mut self, find: impl Fn(&str) -> Option<String>) -> String {
        loop {
            let shown = String::from_utf8_lossy(&self.shown);
            if let Some(found) = find(&shown) {
                return found;
            }
            let more = self.output.recv_timeout(tickwheel_testing::HANG_TIME);
            let Ok(more) = more else { panic!("it never came: {shown}") };
            self.shown.extend(more);
        }
    }

    /// Waits for the end of the program, and returns its exit code.
    pub(crate) fn end(&mut self) -> i32 {
        let status = self.child.wait().expect("wait for tickwheel");
        status.code().unwrap_or_else(|| panic!("ended by a signal: {status}"))
    }

    /// Whether the settings of the terminal are those from before the start.
    pub(crate) fn is_as_before(&self) -> bool {
        settings(&self.program) == self.before
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The process is gone already if the test saw its end.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

fn resize(keyboard: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(keyboard, size).expect("it is a terminal");
}

fn settings(of: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(of).expect("it is a terminal"))
}
