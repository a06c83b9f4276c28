//! The conversations were recorded with beanstalkd 1.12, and this server answers the same, word for word.

use std::path::{Path, PathBuf};

use crate::beanstalk::conversation::lead;
use crate::beanstalk::door::Door;

/// The recorded conversations, by name.
fn scripts() -> Vec<(String, PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/beanstalk/conversations");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("it is text");
            (name, path, text)
        })
        .collect();
    scripts.sort();
    assert!(scripts.len() > 5, "the conversations are there");
    scripts
}

#[track_caller]
fn same(name: &str, of: &str, told: &str, heard: &str) {
    for (number, (told, heard)) in told.lines().zip(heard.lines()).enumerate() {
        assert_eq!(told, heard, "line {} of {name}, by {of}", number + 1);
    }
    assert_eq!(told.lines().count(), heard.lines().count(), "{name}, by {of}");
}

#[test]
fn ours_is_the_same_conversation() {
    for (name, _, text) in scripts() {
        let door = Door::ours(&["--memory"]);
        same(&name, "ours", &text, &lead(&door.address, &text));
    }
}

#[test]
fn the_reference_leads_them_so() {
    for (name, _, text) in scripts() {
        let Some(door) = Door::beanstalkd() else { return };
        if name.starts_with("ours-") {
            continue;
        }
        same(&name, "beanstalkd", &text, &lead(&door.address, &text));
    }
}

/// Records the answers of beanstalkd.
#[test]
#[ignore = "it writes the conversations anew, and takes beanstalkd"]
fn record() {
    for (name, path, text) in scripts() {
        let door =
            if name.starts_with("ours-") { Some(Door::ours(&["--memory"])) } else { Door::beanstalkd() };
        let door = door.expect("beanstalkd is installed");
        std::fs::write(path, lead(&door.address, &text)).expect("written");
    }
}
