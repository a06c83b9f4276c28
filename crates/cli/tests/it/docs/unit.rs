//! A server as an operator has it: a unit that is started and stopped, its log, its directory, and a directory for
//! backups.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// A script that replaces systemd's commands. `@ROOT@` is the folder of all files.
const SYSTEMCTL: &str = r#"#!/bin/sh
set -u
root='@ROOT@'
pid=$(cat "$root/pid" 2>/dev/null || true)
# The state is read in one step: a process may be gone at any moment, and one that cannot be read is not alive.
alive() {
    [ -n "$pid" ] && state=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    case $state in *') Z '* | *') X '*) return 1 ;; esac
}
start() {
    alive && return 0
    port=$(cat "$root/port" 2>/dev/null || echo 0)
    : >"$root/out"
    # Through a pipe: a limit on the files of the server is none on its log.
    [ -p "$root/pipe" ] || mkfifo "$root/pipe"
    cat "$root/pipe" >>"$root/log" 2>&1 </dev/null &
    # A write beyond a limit fails, and does not end the process.
    (trap '' XFSZ; exec "$root/bin/tickwheel" serve --data "$root/lib/tickwheel" --listen "127.0.0.1:$port" \
        --backup-dir "$root/backups/tickwheel" --log info >"$root/out" 2>"$root/pipe" </dev/null) &
    pid=$!
    echo "$pid" >"$root/pid"
    until grep -q '^listening ' "$root/out"; do
        alive || { tail -n 3 "$root/log" >&2; return 1; }
        sleep 0.02
    done
    sed -n 's,^listening http://127.0.0.1:,,p' "$root/out" >"$root/port"
}
stop() {
    alive || return 0
    kill -TERM "$pid"
    while alive; do sleep 0.02; done
}
[ "$2" = tickwheel ] || { echo "there is no unit $2" >&2; exit 5; }
case "$1" in
    start) start ;;
    stop) stop ;;
    restart) stop; start ;;
    is-active) if alive; then echo active; else echo inactive; exit 3; fi ;;
    *) echo "systemctl $1 is not known here" >&2; exit 2 ;;
esac
"#;
const JOURNALCTL: &str = "#!/bin/sh\ncat '@ROOT@/log'\n";

/// A host with such a unit. Dropping it ends its server.
pub(crate) struct Unit {
    root: tempfile::TempDir,
    url: String,
    /// Whether the data directory is a small file system of its own.
    mounted: bool,
}

/// Something that a computer lacks, so that a trouble cannot be made.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Lack {
    Program(&'static str),
    Right(&'static str),
}

impl Unit {
    /// Whether the programs of its scripts are installed. If not, the running test is skipped.
    pub(crate) fn is_possible() -> bool {
        ["grep", "sed"].into_iter().all(|program| tickwheel_testing::has(program, "each Debian has it"))
    }

    /// Makes a host whose server runs.
    pub(crate) fn started() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        for folder in ["bin", "lib", "backups/tickwheel", "tmp"] {
            fs::create_dir_all(root.path().join(folder)).expect("made");
        }
        let mut unit = Self { root, url: String::new(), mounted: false };
        let bin = unit.path("bin");
        symlink(env!("CARGO_BIN_EXE_tickwheel"), bin.join("tickwheel")).expect("linked");
        for (name, text) in [("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)] {
            let text = text.replace("@ROOT@", unit.root.path().to_str().expect("UTF-8"));
            fs::write(bin.join(name), text).expect("written");
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("may be run");
        }
        unit.does("systemctl start tickwheel");
        let port = fs::read_to_string(unit.path("port")).expect("it listens");
        unit.url = format!("http://127.0.0.1:{}", port.trim());
        unit
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("lib/tickwheel")
    }

    /// Runs an operator's commands. The paths of a real host are replaced by those of this one.
    pub(crate) fn run(&self, script: &str) -> Output {
        let at = |name: &str| self.path(name).to_str().expect("UTF-8").to_owned();
        let script = script
            .replace("/var/lib/tickwheel", &at("lib/tickwheel"))
            .replace("/var/backups/tickwheel", &at("backups/tickwheel"))
            .replace("/tmp/task.json", &at("tmp/task.json"))
            .replace("http://127.0.0.1:8463", &self.url);
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TICKWHEEL_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["-eu", "-c", &script])
            .env("PATH", format!("{}:{path}", at("bin")))
            .env("TICKWHEEL_SERVER", &self.url)
            .env("TICKWHEEL_BEANSTALK", "off")
            .current_dir(self.root.path())
            .stdin(Stdio::null());
        command.output().expect("a shell runs")
    }

    /// Runs commands that must succeed, and returns their output.
    #[track_caller]
    pub(crate) fn does(&self, script: &str) -> String {
        let output = self.run(script);
        let text = both(&output);
        assert!(output.status.success(), "{script}\n{text}");
        text
    }

    /// Gives the server an empty directory on a small file system.
    pub(crate) fn on_a_small_disk(&mut self) -> Result<(), Lack> {
        if !tickwheel_testing::is_there("mount") {
            return Err(Lack::Program("mount"));
        }
        self.does("systemctl stop tickwheel; rm -r /var/lib/tickwheel; mkdir /var/lib/tickwheel");
        let mount = self.run("mount -t tmpfs -o size=96m,mode=0700 tmpfs /var/lib/tickwheel");
        self.mounted = mount.status.success();
        self.does("systemctl start tickwheel");
        if self.mounted { Ok(()) } else { Err(Lack::Right("right to mount")) }
    }

    /// Delays each sync by 50 ms, which is slow for this server.
    pub(crate) fn with_slow_syncs(&self) -> Result<(), Lack> {
        if !tickwheel_testing::is_there("strace") {
            return Err(Lack::Program("strace"));
        }
        self.does("systemctl stop tickwheel; TICKWHEEL_SLOW_COMMIT=20ms systemctl start tickwheel");
        let pid = self.pid().expect("it runs");
        let trace = "strace -f -qq -o trace -e trace=fdatasync -e inject=fdatasync:delay_enter=50000";
        // The tracer ends with the server.
        let attach = format!(
            "{trace} -p {} >strace 2>&1 & tracer=$!
             until grep -q commit_slow log; do
                 [ -d /proc/$tracer ] || exit 1
                 tickwheel put slow one --in 1h
             done",
            pid.as_raw_nonzero()
        );
        if self.run(&attach).status.success() { Ok(()) } else { Err(Lack::Right("right to trace")) }
    }

    /// Moves the wall clock an hour ahead, which the server does not believe.
    pub(crate) fn with_a_clock_that_jumps(&self) -> Result<(), Lack> {
        if !tickwheel_testing::is_there("faketime") {
            return Err(Lack::Program("faketime"));
        }
        let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let library = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
        let library =
            library.into_iter().find(|path| path.exists()).expect("faketime comes with its library");
        self.does(&format!(
            "systemctl stop tickwheel
             echo +0 >clock
             LD_PRELOAD={} FAKETIME_TIMESTAMP_FILE=$PWD/clock FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1 \
                 systemctl start tickwheel
             echo +3600 >clock.next
             mv clock.next clock
             until curl -sS $TICKWHEEL_SERVER/readyz | grep -q degraded; do sleep 0.05; done",
            library.display()
        ));
        Ok(())
    }

    /// From now on writes to the server's files fail.
    pub(crate) fn end_writes(&self) {
        let limit = Rlimit { current: Some(0), maximum: None };
        prlimit(Some(self.pid().expect("it runs")), Resource::Fsize, limit).expect("limited");
    }

    fn pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.path("pid")).ok()?;
        text.trim().parse().ok().and_then(Pid::from_raw)
    }
}

/// The text of stdout and stderr.
pub(crate) fn both(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Changes one bit of a file.
pub(crate) fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("readable");
    bytes[at] ^= 1;
    fs::write(file, bytes).expect("writable");
}

impl Drop for Unit {
    fn drop(&mut self) {
        // The server is gone already if the last block stopped it.
        if self.run("systemctl is-active tickwheel").status.success() {
            self.run("systemctl stop tickwheel");
        }
        if self.mounted {
            self.run("umount --lazy /var/lib/tickwheel");
        }
    }
}
