//! The chore `planted`: the binary that ships has none of the bugs that are there for the simulator to find.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::plant;
use crate::finding::{Finding, report};
use crate::root::target;

/// Stands in every build of the binary, so that a file in which nothing is found is known to be one that was searched well.
const CONTROL: &str = "tickwheel-data";
/// The mangled name of the function that switches a bug on.
const SWITCH: &str = "7planted6select";

/// Searches `binary`, or the release binary.
pub(crate) fn run(binary: Option<&str>) -> Result<()> {
    let binary = binary.map_or_else(release_binary, PathBuf::from);
    let names = plant::names(&plant::files()?);
    if names.is_empty() {
        bail!("{} has no patch, and with that no name to search for", plant::FOLDER);
    }
    let bytes =
        fs::read(&binary).with_context(|| format!("read {}; build it with --release", binary.display()))?;
    if !holds(&bytes, CONTROL) {
        bail!("{} does not hold `{CONTROL}`: it is not the tickwheel binary", binary.display());
    }
    report(
        "planted",
        &format!("{} bugs in {}", names.len(), binary.display()),
        search(&binary, &bytes, &names),
    )
}

fn release_binary() -> PathBuf {
    target().join("release").join(format!("tickwheel{}", std::env::consts::EXE_SUFFIX))
}

fn search(binary: &std::path::Path, bytes: &[u8], names: &BTreeSet<String>) -> Vec<Finding> {
    let place = binary.display().to_string();
    let found = names.iter().map(String::as_str).filter(|name| holds(bytes, beginning(name)));
    let found = found.chain(Some(SWITCH).filter(|switch| holds(bytes, switch)));
    found
        .map(|name| {
            Finding::new(&place, format!("holds `{name}`; was it built from the copy that `plant` makes?"))
        })
        .collect()
}

/// As much of a name as stays in one piece: a compiler may take a short text apart and compare it sixteen or eight bytes at a
/// time.
fn beginning(name: &str) -> &str {
    let piece = [16, 8].into_iter().find(|&piece| name.len() >= piece);
    piece.and_then(|piece| name.get(..piece)).unwrap_or(name)
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_inside_other_bytes_is_found() {
        let names = BTreeSet::from(["one-bug".to_owned(), "two-bugs".to_owned()]);
        let found = search("b".as_ref(), b"\x00\xffxone-bugy\x00", &names);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("b: holds `one-bug`"), "{found:?}");
        assert_eq!(search("b".as_ref(), b"_ZN5store7planted6select17h", &names).len(), 1);
        assert_eq!(search("b".as_ref(), b"one_bug, two_bugs", &names), []);
    }

    #[test]
    fn a_name_that_was_taken_apart_is_found_by_its_beginning() {
        let names = BTreeSet::from(["old-instant-fires".to_owned(), "no-dir-sync".to_owned()]);
        assert_eq!(search("b".as_ref(), b"old-instant-fire\x00\x73no-dir-s", &names).len(), 2);
        assert_eq!(search("b".as_ref(), b"old-instance no-dir", &names), []);
    }
}
