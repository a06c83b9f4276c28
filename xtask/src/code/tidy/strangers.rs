//! Texts that tell on which machine a file was written, and have no place in a repository.

use std::path::Path;

use crate::finding::Finding;
use crate::root::Text;

/// The texts that no file may have.
#[derive(Debug)]
pub(super) struct Strangers {
    texts: Vec<String>,
}

impl Strangers {
    /// The folders of people's homes, the place of this checkout, and whatever else the caller names. In two halves, for
    /// this file is looked at like the others.
    pub(super) fn new(root: &Path, home: &Path, never: Vec<String>) -> Self {
        let homes = [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"]].map(|halves| halves.concat());
        // A folder directly below `/` is too short a text to look for.
        let here = [root, home].map(|path| path.to_string_lossy().into_owned());
        let here = here.into_iter().filter(|path| path.matches(['/', '\\']).count() > 1);
        Self { texts: homes.into_iter().chain(here).chain(never).collect() }
    }

    /// Every line with such a text.
    pub(super) fn check(&self, text: &Text, findings: &mut Vec<Finding>) {
        for (number, line) in (1..).zip(text.text.lines()) {
            for stranger in self.texts.iter().filter(|stranger| line.contains(stranger.as_str())) {
                let what = format!("`{stranger}` tells of one machine, not of this project");
                findings.push(Finding::new(format!("{}:{number}", text.path), what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_the_checkout_and_what_is_named_are_found() {
        let strangers = Strangers::new(Path::new("/src/here"), Path::new("/"), vec!["secret".to_owned()]);
        let home = ["see /ho", "me/anna/x"].concat();
        let lines = [home.as_str(), "built in /src/here/target", "a secret", "crates/core/src/lib.rs, a/b"];
        let mut findings = Vec::new();
        strangers.check(&Text { path: "a.md".to_owned(), text: lines.join("\n") }, &mut findings);
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["a.md:1", "a.md:2", "a.md:3"]);
    }
}
