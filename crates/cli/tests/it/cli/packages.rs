//! The files of the packages, against this program. `scripts/package/try` installs the packages themselves.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::cli::run::run;
use crate::server::Server;

/// The largest exposure of the service that `systemd-analyze security` may find, in tenths.
const EXPOSURE_MAX: &str = "--threshold=15";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The values of a key of the unit.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn the_configuration_of_the_package_is_valid_and_so_is_each_line_without_its_number_sign() {
    let path = file("packaging/tickwheel.toml");
    let checked = run(&["config", "--check", path.to_str().expect("UTF-8")]);
    assert!(checked.code == 0 && checked.err.contains("3 keys"), "{}", checked.err);
    let whole = text("packaging/tickwheel.toml").replace("\n#", "\n").replace("\n \n", "\n");
    let keys: String =
        whole.lines().filter(|line| line.contains(" = ")).map(|line| format!("{line}\n")).collect();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("tickwheel.toml");
    fs::write(&path, keys).expect("written");
    let checked = run(&["config", "--check", path.to_str().expect("UTF-8")]);
    assert!(checked.code == 0 && checked.err.contains("9 keys"), "{}", checked.err);
}

#[test]
fn the_unit_is_valid_and_lets_the_service_do_little() {
    let unit = text("packaging/systemd/tickwheel.service");
    assert_eq!(
        values(&unit, "ExecStart"),
        ["/usr/bin/tickwheel serve --config /etc/tickwheel/tickwheel.toml"]
    );
    // Three phases of a graceful stop have a limit of 10 s each.
    assert_eq!(values(&unit, "TimeoutStopSec"), ["45"]);
    if !tickwheel_testing::has("systemd-analyze", "apt-get install systemd") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("tickwheel.service");
    fs::write(&path, unit.replace("/usr/bin/tickwheel", env!("CARGO_BIN_EXE_tickwheel"))).expect("written");
    for words in [&["verify", "--man=no"][..], &["security", "--offline=true", "--no-pager", EXPOSURE_MAX]] {
        let ran = Command::new("systemd-analyze").args(words).arg(&path).stdin(Stdio::null()).output();
        let ran = ran.expect("systemd-analyze runs");
        let told = String::from_utf8_lossy(&ran.stderr);
        // The command looks at other units of this computer, too.
        assert!(ran.status.success() && !told.contains("tickwheel.service:"), "{words:?}: {told}");
    }
}

#[test]
fn a_service_manager_hears_that_the_server_is_ready_and_that_it_stops() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("bound");
    manager.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("a time limit");
    let hear = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let variable = [("NOTIFY_SOCKET", path.as_os_str())];
    let server = Server::start_with(&["--memory", "--listen", "127.0.0.1:0"], variable);
    assert_eq!(hear(), "READY=1");
    let health = run(&["health", "--server", &server.url, "-o", "table"]);
    assert!(health.code == 0 && health.out.contains("ready"), "{}", health.err);
    let url = server.url.clone();
    assert!(server.stop(Signal::TERM).success());
    assert_eq!(hear(), "STOPPING=1");
    let health = run(&["health", "--server", &url]);
    assert!(health.code == 1 && health.err.contains("no server answers"), "{}", health.err);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let made = run(&["man", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(made.code, 0, "{}", made.err);
    let page = |name: &str| {
        fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let help = run(&["--help"]).out;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names.iter().filter(|name| **name != "help") {
        let page = page(&format!("tickwheel-{name}.1"));
        assert!(page.contains(&format!(".SH NAME\ntickwheel\\-{name} \\- ")), "{page}");
    }
    assert!(page("tickwheel-queues-set.1").contains("max\\-in\\-flight"));
    let serve = page("tickwheel-serve.1");
    assert!(
        serve.contains("TICKWHEEL_LISTEN") && serve.contains(".SH EXAMPLES\n.nf\n  tickwheel serve"),
        "{serve}"
    );
    assert!(page("tickwheel.1").contains("tickwheel\\-serve(1)"));
}

/// The files that a container of the Compose file sees, and the image that it takes.
#[test]
fn the_compose_file_names_files_that_exist_and_this_version() {
    let compose = text("contrib/compose/compose.yaml");
    let mounts: Vec<&str> = compose
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("- ./")
                .map(|_| line.trim())
                .or(line.trim().strip_prefix("- ../").map(|_| line.trim()))
        })
        .collect();
    assert!(mounts.len() >= 5, "{mounts:?}");
    for mount in mounts {
        let path = mount.trim_start_matches("- ").split(':').next().expect("a path");
        assert!(file("contrib/compose").join(path).is_file(), "{mount}");
    }
    assert!(compose.contains(concat!("image: localhost/tickwheel:", env!("CARGO_PKG_VERSION"))), "{compose}");
}
