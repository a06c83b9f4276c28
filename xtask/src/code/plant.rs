//! The chore `plant`: a copy of the repository whose product has the bugs that the simulator has to find.
//!
//! The bugs are patches in `sim/planted`, so that no line of the product is there for them. The copy has all of them behind one switch,
//! and one build serves every bug.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::finding::{Finding, report};
use crate::root::{root, texts};

/// The folder of the patches.
pub(crate) const FOLDER: &str = "sim/planted/";
/// The module that each crate with a bug gets.
const SWITCH: &str = "sim/planted/switch.rs";
/// The patch of the simulator itself: it uses the switch, and is no bug.
const SELECT: &str = "sim/planted/select.patch";
/// The file that says that a folder is such a copy.
const MARKER: &str = "planted-copy.txt";
/// Stands in a patch for the question whether its bug is switched on.
const PLANTED: &str = "PLANTED";

/// The files of a repository, by their paths.
type Files = BTreeMap<String, String>;

/// The names of the bugs: those of their patches.
pub(crate) fn names(files: &Files) -> BTreeSet<String> {
    let patches = files.keys().filter(|path| *path != SELECT);
    let names = patches.filter_map(|path| path.strip_prefix(FOLDER)?.strip_suffix(".patch"));
    names.map(str::to_owned).collect()
}

/// The files of this repository.
pub(crate) fn files() -> Result<Files> {
    Ok(texts(&root())?.into_iter().map(|text| (text.path, text.text)).collect())
}

/// Every patch stands where it says, and every bug is one that the simulator knows.
pub(crate) fn check() -> Result<()> {
    let files = files()?;
    let mut findings = plant(&files).err().unwrap_or_default();
    findings.extend(unknown(&files));
    report("plant", &format!("{} bugs", names(&files).len()), findings)
}

/// Writes the copy into `folder`: the text files of the repository, which a build needs. A file that is the same already is left alone, so that a build goes on from the last one.
pub(crate) fn run(folder: &str) -> Result<()> {
    let files = files()?;
    let planted = match plant(&files) {
        Ok(planted) => planted,
        Err(findings) => return report("plant", "the patches", findings),
    };
    let folder = Path::new(folder);
    let marker = folder.join(MARKER);
    // Files that are not of the repository are removed from the copy, so a folder of another kind is refused.
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) && !marker.exists() {
        bail!(
            "{} is not empty and has no {MARKER}: choose a folder that is new, or an earlier copy",
            folder.display()
        );
    }
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    fs::write(&marker, "A copy with planted bugs, made by cargo xtask plant.\n")
        .with_context(|| format!("write {}", marker.display()))?;
    let before = texts(folder)?;
    for old in before.iter().filter(|old| old.path != MARKER && !planted.contains_key(&old.path)) {
        let path = folder.join(&old.path);
        fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    }
    let before: BTreeMap<&str, &str> =
        before.iter().map(|old| (old.path.as_str(), old.text.as_str())).collect();
    for (path, text) in
        planted.iter().filter(|(path, text)| before.get(path.as_str()) != Some(&text.as_str()))
    {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// The files with all bugs in them.
fn plant(files: &Files) -> Result<Files, Vec<Finding>> {
    let (mut planted, mut findings) = (files.clone(), Vec::new());
    let mut crates = BTreeSet::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with(FOLDER) && path.ends_with(".patch"))
    {
        let name = path.trim_start_matches(FOLDER).trim_end_matches(".patch");
        let is_on = format!("crate::planted::is(\"{name}\")");
        match parse(text) {
            Ok(hunks) => {
                for hunk in hunks {
                    match hunk.apply(&mut planted, &is_on) {
                        Ok(()) => drop(crates.insert(crate_of(&hunk.file).to_owned())),
                        Err(why) => findings.push(Finding::new(path, why)),
                    }
                }
            }
            Err(why) => findings.push(Finding::new(path, why)),
        }
    }
    let switch = files.get(SWITCH).cloned().unwrap_or_default();
    if switch.is_empty() {
        findings.push(Finding::new(SWITCH, "is missing: it is the switch of all bugs"));
    }
    for folder in crates {
        planted.insert(format!("{folder}/src/planted.rs"), switch.clone());
        match planted.get_mut(&format!("{folder}/src/lib.rs")) {
            Some(lib) => lib.push_str("\npub mod planted;\n"),
            None => findings.push(Finding::new(&folder, "has no src/lib.rs for the switch")),
        }
    }
    if findings.is_empty() { Ok(planted) } else { Err(findings) }
}

/// The folder of the crate that a source is of.
fn crate_of(file: &str) -> &str {
    file.split_once("/src/").map_or(file, |(folder, _)| folder)
}

/// A piece of a patch: these lines of a file become those.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Hunk {
    file: String,
    old: String,
    new: String,
}

/// The hunks of a patch. The lines before the first `---` tell the story of the bug. Then `--- FILE` names a file, `@@` begins another hunk
/// of it, and a line is one of both versions, of the product alone, or of the bug alone, if it begins with a space, a `-` or a `+`.
fn parse(text: &str) -> Result<Vec<Hunk>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(file) = line.strip_prefix("--- ") {
            hunks.push(Hunk { file: file.to_owned(), old: String::new(), new: String::new() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let (in_old, in_new, rest) = match line.split_at_checked(1) {
            _ if line == "@@" => {
                let file = hunk.file.clone();
                hunks.push(Hunk { file, old: String::new(), new: String::new() });
                continue;
            }
            None => (true, true, ""),
            Some((" " | "-", rest)) if rest.trim_start().starts_with("//") => {
                return Err(format!(
                    "line {number} is a comment of the product, which changes without the code"
                ));
            }
            Some((" ", rest)) => (true, true, rest),
            Some(("-", rest)) => (true, false, rest),
            Some(("+", rest)) => (false, true, rest),
            Some(_) => {
                return Err(format!("line {number} begins with none of ` `, `-`, `+`, `@@` and `---`"));
            }
        };
        for (text, _) in
            [(&mut hunk.old, in_old), (&mut hunk.new, in_new)].into_iter().filter(|(_, is_in)| *is_in)
        {
            text.push_str(rest);
            text.push('\n');
        }
    }
    match hunks.iter().find(|hunk| hunk.old.is_empty() || hunk.old == hunk.new) {
        Some(hunk) => Err(format!("a hunk of {} has no line of the product, or changes nothing", hunk.file)),
        None if hunks.is_empty() => Err("it has no `--- FILE`".to_owned()),
        None => Ok(hunks),
    }
}

impl Hunk {
    fn apply(&self, files: &mut Files, is_on: &str) -> Result<(), String> {
        let text = files.get_mut(&self.file).ok_or_else(|| format!("{} is not there", self.file))?;
        let (lines, old): (Vec<&str>, Vec<&str>) = (text.lines().collect(), self.old.lines().collect());
        let places: Vec<usize> =
            lines.windows(old.len()).enumerate().filter(|(_, part)| *part == old).map(|(at, _)| at).collect();
        let [at] = places[..] else {
            return Err(format!(
                "these lines stand in {} {} times, and not once; the code has changed, so change the patch:\n{}",
                self.file,
                places.len(),
                self.old
            ));
        };
        let new = self.new.replace(PLANTED, is_on);
        let (before, behind) = (&lines[..at], &lines[at + old.len()..]);
        let lines: Vec<&str> =
            before.iter().copied().chain(new.lines()).chain(behind.iter().copied()).collect();
        *text = lines.join("\n") + "\n";
        Ok(())
    }
}

/// The bugs that either the simulator or a patch does not name.
fn unknown(files: &Files) -> Vec<Finding> {
    let list = files.get("sim/src/bugs.rs").map_or("", String::as_str);
    let known: BTreeSet<String> = list
        .split("    bug(\"")
        .skip(1)
        .filter_map(|rest| rest.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .collect();
    let names = names(files);
    let apart = known.symmetric_difference(&names);
    apart
        .map(|name| Finding::new(FOLDER, format!("`{name}` is only here or only in sim/src/bugs.rs")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "A story.\n\n--- crates/a/src/x.rs\n one\n-two\n+two && !PLANTED\n@@\n four\n+five\n";

    fn with(source: &str, patch: &str) -> Files {
        let files = [
            ("crates/a/src/x.rs", source),
            ("crates/a/src/lib.rs", "mod x;\n"),
            ("sim/planted/late.patch", patch),
            (SWITCH, "the switch\n"),
        ];
        files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
    }

    fn said(files: &Files) -> String {
        let findings = plant(files).expect_err("it does not fit");
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_patch_changes_its_lines_and_its_crate_gets_the_switch() {
        let planted = plant(&with("one\ntwo\nthree\nfour\n", PATCH)).expect("it fits");
        let two = "two && !crate::planted::is(\"late\")";
        assert_eq!(planted["crates/a/src/x.rs"], format!("one\n{two}\nthree\nfour\nfive\n"));
        assert_eq!(planted["crates/a/src/lib.rs"], "mod x;\n\npub mod planted;\n");
        assert_eq!(planted["crates/a/src/planted.rs"], "the switch\n");
    }

    #[test]
    fn lines_that_are_gone_or_stand_twice_are_refused() {
        let gone = said(&with("one\n2\nfour\n", PATCH));
        assert!(
            gone.contains("late.patch") && gone.contains("0 times") && gone.contains("one\ntwo"),
            "{gone}"
        );
        let twice = said(&with("one\ntwo\nfour\nfour\n", PATCH));
        assert!(twice.contains("2 times"), "{twice}");
        let part_of_a_line = said(&with("zone\ntwo\nfour\n", PATCH));
        assert!(part_of_a_line.contains("0 times"), "{part_of_a_line}");
    }

    #[test]
    fn a_patch_that_cannot_be_one_is_refused() {
        assert!(said(&with("one\n", "A story only.\n")).contains("no `--- FILE`"));
        assert!(said(&with("one\n", "--- crates/a/src/x.rs\none\n")).contains("line 2 begins with none"));
        assert!(said(&with("one\n", "--- crates/a/src/x.rs\n+two\n")).contains("no line of the product"));
        assert!(said(&with("one\n", "--- crates/a/src/y.rs\n-one\n")).contains("y.rs is not there"));
        assert!(
            said(&with("// one\n", "--- crates/a/src/x.rs\n // one\n+two\n")).contains("line 2 is a comment")
        );
    }

    #[test]
    fn the_patches_of_this_repository_fit_and_are_known_to_the_simulator() {
        let files = files().expect("the repository can be read");
        assert_eq!(plant(&files).map(|_| ()), Ok(()));
        assert_eq!(unknown(&files), []);
    }
}
