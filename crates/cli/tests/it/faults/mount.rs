//! File systems of a test's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program that must succeed, and returns its output.
pub(crate) fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("run {words:?}: {error}"));
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// A mounted file system. Dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct Mount {
    at: PathBuf,
}

impl Mount {
    /// Mounts on a directory, which is made; `words` are the arguments of `mount` without the target.
    pub(crate) fn at(at: &Path, words: &[&str]) -> Self {
        std::fs::create_dir_all(at).expect("make the place of the mount");
        let place = at.to_str().expect("UTF-8");
        run(&[&["mount"], words, &[place]].concat());
        Self { at: at.to_owned() }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmount = |lazily: &[&str]| {
            let mut command = Command::new("umount");
            command.args(lazily).arg(&self.at).stdin(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        // A process that was killed a moment ago may still use the file system.
        let _done = unmount(&[]) || unmount(&["--lazy"]);
    }
}
