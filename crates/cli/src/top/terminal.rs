//! The terminal. Its settings and its screen are changed for the duration of a watch and restored afterwards.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use super::page::Size;

/// Switches to the alternate screen, which keeps the content of the usual one, and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[2J";

/// A terminal in use by a watch. Dropping it restores the settings and the screen, also after an error and in a panic. Writing takes no
/// lock, so that a panic during a write can still restore them.
pub(crate) struct Terminal {
    output: File,
    keyboard: Option<Keyboard>,
    is_taken: AtomicBool,
}

struct Keyboard {
    input: OwnedFd,
    /// The settings before the terminal was taken.
    before: Termios,
}

impl Terminal {
    /// Takes the terminal, so that each key is read at once and is not shown. If `input` is `None`, no setting is changed.
    ///
    /// # Errors
    /// The descriptor is no terminal, or the terminal is gone.
    pub(crate) fn take(input: Option<OwnedFd>, output: OwnedFd) -> io::Result<Self> {
        let keyboard = match input {
            Some(input) => Some(Keyboard { before: tcgetattr(&input)?, input }),
            None => None,
        };
        let terminal = Self { output: output.into(), keyboard, is_taken: AtomicBool::new(false) };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Takes the terminal again.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.is_taken.store(true, Ordering::SeqCst);
        let Some(Keyboard { input, before }) = &self.keyboard else { return self.write(CLEAR) };
        tcsetattr(input, OptionalActions::Now, &key_by_key(before))?;
        self.write(ENTER)
    }

    /// Gives the terminal back, if it is taken. Errors are ignored, because a terminal that is gone needs nothing.
    pub(crate) fn leave(&self) {
        if self.is_taken.swap(false, Ordering::SeqCst) && self.keyboard.is_some() {
            // The settings are restored before anything is written, because writing may block.
            self.give_settings_back();
            let _gone = self.write(LEAVE);
        }
    }

    /// Gives the settings back without waiting, even for a terminal that takes no output.
    pub(crate) fn give_settings_back(&self) {
        if let Some(Keyboard { input, before }) = &self.keyboard {
            let _gone = tcsetattr(input, OptionalActions::Now, before);
        }
    }

    /// Gives the terminal back before the message of a panic of any thread, so that a person can read the message.
    pub(crate) fn give_back_in_a_panic(self: &Arc<Self>) {
        let (terminal, usual) = (Arc::clone(self), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            terminal.leave();
            usual(panic);
        }));
    }

    /// Shows a picture. After [`leave`](Self::leave) it shows nothing, because the screen belongs to the shell again.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn show(&self, picture: &str) -> io::Result<()> {
        if self.is_taken.load(Ordering::SeqCst) { self.write(picture) } else { Ok(()) }
    }

    /// Clears the screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.show(CLEAR)
    }

    /// The size of the screen now. A terminal that does not know its size counts as 80 by 24, as in most programs.
    pub(crate) fn size(&self) -> Size {
        let known = tcgetwinsize(&self.output).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        known.map_or(Size { rows: 24, columns: 80 }, |size| Size {
            rows: size.ws_row.into(),
            columns: size.ws_col.into(),
        })
    }

    /// Writes the whole text. Any process on a terminal can make the terminal non-blocking for all others. In that case the function waits
    /// while the terminal is full.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match (&self.output).write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_until_it_takes_more()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait_until_it_takes_more(&self) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.output, PollFlags::OUT)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Settings with which a key is read at once and is not shown. Ctrl-C still makes a signal. Ctrl-Z is read as a key,
/// because the terminal has to be given back before the process stops. Ctrl-S is read as a key, too: a terminal that
/// takes no output would block the drawing thread.
fn key_by_key(before: &Termios) -> Termios {
    let mut settings = before.clone();
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    settings.input_modes.remove(InputModes::IXON);
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    // 0 disables the character.
    settings.special_codes[SpecialCodeIndex::VSUSP] = 0;
    settings
}

#[cfg(test)]
pub(super) use tests::pseudo_terminal;

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::Read;
    use std::panic::AssertUnwindSafe;
    use std::process::Command;
    use std::sync::mpsc;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

    use super::*;

    /// A pseudo-terminal: the side of the screen, and the side of the program.
    pub(in crate::top) fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let screen = openpt(flags).expect("a pseudo-terminal");
        grantpt(&screen).and_then(|()| unlockpt(&screen)).expect("it is ours");
        let program = ioctl_tiocgptpeer(&screen, flags).expect("its other side");
        (screen, program)
    }

    fn settings(of: &OwnedFd) -> String {
        format!("{:?}", tcgetattr(of).expect("it is a terminal"))
    }

    fn taken(program: &OwnedFd) -> Terminal {
        let copy = || program.try_clone().expect("a copy");
        Terminal::take(Some(copy()), copy()).expect("a terminal")
    }

    #[test]
    fn it_is_given_back_when_it_is_dropped_and_can_be_taken_again() {
        let (_screen, program) = pseudo_terminal();
        let before = settings(&program);
        let terminal = taken(&program);
        assert_ne!(settings(&program), before);
        terminal.leave();
        assert_eq!(settings(&program), before);
        terminal.enter().expect("take it again");
        assert_ne!(settings(&program), before);
        drop(terminal);
        assert_eq!(settings(&program), before);
    }

    #[test]
    fn it_is_given_back_in_a_panic() {
        let (_screen, program) = pseudo_terminal();
        let before = settings(&program);
        let terminal = taken(&program);
        let unwound = panic::catch_unwind(AssertUnwindSafe(move || {
            let _terminal = terminal;
            panic!("in the thread that draws");
        }));
        assert!(unwound.is_err());
        assert_eq!(settings(&program), before);
    }

    /// A panic hook belongs to the whole process, so a panic of another test would restore the terminal too early. This test therefore runs
    /// itself again in a new process.
    #[test]
    fn it_is_given_back_before_a_panic_of_another_thread_is_told() {
        const ALONE: &str = "TICKWHEEL_TEST_ALONE";
        const NAME: &str = "top::terminal::tests::it_is_given_back_before_a_panic_of_another_thread_is_told";
        if env::var_os(ALONE).is_some() {
            return panic_in_another_thread();
        }
        let program = env::current_exe().expect("this program");
        let run = Command::new(program).args(["--exact", NAME]).env(ALONE, "1").output().expect("it runs");
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
    }

    fn panic_in_another_thread() {
        let (_screen, program) = pseudo_terminal();
        let before = settings(&program);
        let terminal = Arc::new(taken(&program));
        let usual = panic::take_hook();
        let (tell, told) = mpsc::channel();
        let looked_at = program.try_clone().expect("a copy");
        panic::set_hook(Box::new(move |_| tell.send(settings(&looked_at)).expect("the test waits for it")));
        terminal.give_back_in_a_panic();
        std::thread::spawn(|| panic!("in the thread that asks")).join().expect_err("it panicked");
        panic::set_hook(usual);
        assert_eq!(told.recv().expect("it was told"), before);
        assert_eq!(settings(&program), before);
        assert!(!terminal.is_taken.load(Ordering::SeqCst), "no picture is drawn over what was told");
    }

    #[test]
    fn a_picture_is_shown_whole_on_a_terminal_that_does_not_block() {
        const BYTES: usize = 1 << 20;
        let (screen, program) = pseudo_terminal();
        let terminal = taken(&program);
        let flags = fcntl_getfl(&program).expect("its flags");
        fcntl_setfl(&program, flags | OFlags::NONBLOCK).expect("another process may do this");
        let reader = std::thread::spawn(move || {
            let mut shown = vec![0; ENTER.len() + BYTES];
            File::from(screen).read_exact(&mut shown).expect("the whole picture");
            shown
        });
        // No terminal takes this size (`BYTES`) at once.
        terminal.show(&"x".repeat(BYTES)).expect("it is shown");
        assert!(reader.join().expect("no panic").ends_with(&[b'x'; BYTES]));
    }

    #[test]
    fn without_a_keyboard_nothing_is_changed() {
        let (_screen, program) = pseudo_terminal();
        let before = settings(&program);
        let terminal = Terminal::take(None, program.try_clone().expect("a copy")).expect("a terminal");
        assert_eq!(settings(&program), before);
        drop(terminal);
        assert_eq!(settings(&program), before);
    }
}
