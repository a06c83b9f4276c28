//! Directories that other users may write to, and links in the place of files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal};

use crate::cli::run::run;
use crate::server::{Server, tickwheel};
use crate::stores::is_left_out;

/// Makes a data directory with one task, whose server has stopped.
fn filled(data: &Path) {
    let server = Server::start(&["--data", data.to_str().expect("UTF-8"), "--listen", "127.0.0.1:0"]);
    assert_eq!(run(&["put", "close", "a", "--in", "1h", "--server", &server.url]).code, 0);
    assert!(server.stop(Signal::TERM).success());
}

/// The log of a server that starts on this directory and is stopped once it is ready.
fn log_of_start(data: &Path) -> String {
    let log = data.with_extension("log");
    let file = fs::File::create(&log).expect("a log");
    let mut command = tickwheel(&["serve", "--listen", "127.0.0.1:0", "--data"]);
    let mut child = command.arg(data).stdout(Stdio::piped()).stderr(file).spawn().expect("start a server");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().expect("piped")), &mut line)
        .expect("its first line");
    assert!(line.starts_with("listening "), "{line:?}: {}", fs::read_to_string(&log).expect("UTF-8"));
    // A thread of its own writes the log, so a kill could lose the line.
    rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    child.wait().expect("its end");
    fs::read_to_string(log).expect("UTF-8")
}

#[test]
fn a_directory_that_others_may_write_to_is_told_with_the_chmod() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    filled(&data);
    let shard = data.join("shard-0000");
    let (data_name, shard_name) = (data.display().to_string(), shard.display().to_string());
    assert!(!log_of_start(&data).contains("chmod"), "it belongs to its owner alone");
    for (of_data, of_shard, paths) in [
        (0o777, 0o700, data_name.clone()),
        (0o700, 0o720, shard_name.clone()),
        (0o702, 0o770, format!("{data_name} {shard_name}")),
    ] {
        fs::set_permissions(&data, Permissions::from_mode(of_data)).expect("set");
        fs::set_permissions(&shard, Permissions::from_mode(of_shard)).expect("set");
        let wanted = format!("`chmod go-w {paths}`");
        let log = log_of_start(&data);
        assert!(log.contains(&wanted), "{log}");
        let doctor = run(&["doctor", &data_name]);
        assert!(doctor.code == 0 && doctor.err.contains(&wanted), "{}", doctor.err);
        let copy = directory.path().join(format!("copy-{of_data}-{of_shard}"));
        let backup = run(&["backup", &data_name, copy.to_str().expect("UTF-8")]);
        assert!(backup.code == 0 && backup.err.contains(&wanted), "{}", backup.err);
        let copied = fs::metadata(&copy).expect("there").permissions().mode() & 0o777;
        assert_eq!(copied, 0o700, "a copy belongs to its owner alone");
    }
}

#[test]
fn a_link_in_the_place_of_a_file_or_folder_is_refused_by_each_command() {
    if is_left_out("it is about the files of a directory") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    filled(&data);
    let named = fs::read_dir(data.join("shard-0000")).expect("the shard");
    let mut names: Vec<String> = named
        .map(|entry| format!("shard-0000/{}", entry.expect("an entry").file_name().to_string_lossy()))
        .collect();
    names.extend(["meta", "lock", "shard-0000"].map(str::to_owned));
    for name in names {
        let (path, away) = (data.join(&name), directory.path().join("away"));
        fs::rename(&path, &away).expect("moved");
        symlink(&away, &path).expect("linked");
        let text = data.to_str().expect("UTF-8");
        let copy = directory.path().join("copy");
        let copy = copy.to_str().expect("UTF-8");
        let commands: [&[&str]; 3] = [
            &["serve", "--data", text, "--listen", "127.0.0.1:0"],
            &["backup", text, copy],
            &["restore", text, copy],
        ];
        for words in commands {
            let ran = run(words);
            assert_eq!(ran.code, 1, "{words:?} with a link for {name}: {}", ran.err);
            let what = if words[0] == "restore" { "is no plain file" } else { "it is a symbolic link" };
            assert!(ran.err.contains(&name) && ran.err.contains(what), "{words:?} of {name}: {}", ran.err);
        }
        let doctor = run(&["doctor", text, "-o", "json"]);
        // The doctor does not read the lock.
        assert_eq!(doctor.code, i32::from(name != "lock"), "{name}: {}", doctor.out);
        fs::remove_file(&path).expect("removed");
        fs::rename(&away, &path).expect("moved back");
    }
    let linked = directory.path().join("linked");
    symlink(&data, &linked).expect("linked");
    let log = log_of_start(&linked);
    assert!(!log.contains("ERROR") && !log.contains("error:"), "the directory itself may be a link: {log}");
}
