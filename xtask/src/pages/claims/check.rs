//! The pages against the retired claims.

use super::allowed::{self, LIST};
use super::claim::Reader;
use super::retired::CLAIMS;
use super::sentences::sentences;
use crate::finding::Finding;
use crate::root::Text;

/// Pages that say what was: the list of changes, and the records of decisions.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "docs/adr/"];
/// Folders with pages.
const FOLDERS: [&str; 3] = ["docs/", "crates/", "examples/"];
/// Folders in which each file is read: alerts, boards, units and configurations.
const TEXTS: [&str; 2] = ["contrib/", "packaging/"];
/// Outputs of measurements, and code of others.
const FOREIGN: [&str; 2] = ["docs/performance/data/", "crates/console/assets/vendor/"];

/// Whether a user reads the file: pages, the documentation of a crate, the texts of packages, alerts and boards.
pub(super) fn is_page(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("_test.yml");
    if is_test || HISTORY.iter().chain(&FOREIGN).any(|folder| path.starts_with(folder)) {
        return false;
    }
    let is_in = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let is_crate = path.starts_with("crates/") && path.ends_with("/src/lib.rs");
    let is_markdown = path.ends_with(".md") && (is_in(&FOLDERS) || !path.contains('/'));
    let is_questions = path.starts_with("docs/") && path.ends_with(".txt");
    is_markdown || is_questions || is_crate || is_in(&TEXTS)
}

/// The findings in all texts together, with the list of allowed sentences.
pub(super) fn check(texts: &[Text], list: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed = allowed::read(list, &mut findings);
    let reader = Reader::new(CLAIMS);
    let mut used = vec![false; allowed.len()];
    for text in texts.iter().filter(|text| is_page(&text.path)) {
        for sentence in sentences(text) {
            let reading = sentence.reading();
            for claim in reader.claims_of(&sentence) {
                let mut is_allowed = false;
                for (entry, used) in allowed.iter().zip(&mut used) {
                    if entry.page == text.path && reading.contains(entry.says) {
                        (is_allowed, *used) = (true, true);
                    }
                }
                if !is_allowed {
                    let what = format!(
                        "\"{reading}\" seems to claim that {}. Today {}. Say what is true, or, if the sentence is true, add a piece of it with the reason to {LIST}",
                        claim.name, claim.today
                    );
                    findings.push(Finding::new(format!("{}:{}", text.path, sentence.line), what));
                }
            }
        }
    }
    for (entry, _) in allowed.iter().zip(&used).filter(|(_, used)| !**used) {
        let what = format!(
            "no sentence of {} that seems to make a retired claim has \"{}\"; remove the entry, or correct it",
            entry.page, entry.says
        );
        findings.push(Finding::new(format!("{LIST}:{}", entry.line), what));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::{root, texts};

    fn ours() -> (Vec<Text>, String) {
        let texts = texts(&root()).expect("the repository can be read");
        let list = texts.iter().find(|text| text.path == LIST).expect("the list is there").text.clone();
        (texts, list)
    }

    /// The findings in our pages if `planted` is the last paragraph of `page`.
    fn planted(page: &str, planted: &str) -> Vec<String> {
        let (mut texts, list) = ours();
        let text = texts.iter_mut().find(|text| text.path == page).expect("the page is there");
        text.text = format!("{}\n\n{planted}\n", text.text.trim_end());
        check(&texts, &list).iter().map(Finding::to_string).collect()
    }

    fn said(path: &str, text: &str, list: &str) -> Vec<String> {
        let text = Text { path: path.to_owned(), text: text.to_owned() };
        check(&[text], list).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn the_pages_of_this_repository_claim_nothing_that_is_retired() {
        let (texts, list) = ours();
        assert_eq!(check(&texts, &list), []);
    }

    #[test]
    fn a_reworded_claim_in_the_readme_is_refused() {
        let found = planted("README.md", "But none of your machines\never takes over from another.");
        assert_eq!(found.len(), 1, "{found:?}");
        for part in [
            "error: README.md:",
            "\"But none of your machines ever takes over from another.\"",
            "seems to claim that no server takes over when another one dies. Today on PostgreSQL a second server",
            "Say what is true, or,",
            LIST,
        ] {
            assert!(found[0].contains(part), "{part}: {found:?}");
        }
    }

    #[test]
    fn a_reworded_claim_in_a_chinese_page_is_refused() {
        let found = planted("docs/zh/how-to/workers.md", "不过，别的机器从不接管\n正在做的任务。");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("error: docs/zh/how-to/workers.md:"), "{found:?}");
        assert!(found[0].contains("不过，别的机器从不接管 正在做的任务。"), "{found:?}");
        let found = planted("README.zh-CN.md", "可惜它没有控制台。");
        assert!(found.len() == 1 && found[0].contains("there is no console"), "{found:?}");
    }

    #[test]
    fn a_claim_over_two_lines_is_told_with_the_line_of_its_sentence() {
        let found = said("docs/a.md", "One.\nTwo. No server\ntakes over. Three.\n", "");
        assert!(
            found.len() == 1 && found[0].starts_with("error: docs/a.md:2: \"No server takes over.\""),
            "{found:?}"
        );
    }

    #[test]
    fn a_sentence_of_the_list_is_allowed_on_its_page_alone() {
        let list = "page docs/a.md\nsays a directory is not replicated\ntrue It is a directory.\n";
        let text = "Here a directory\nis not replicated.\n";
        assert_eq!(said("docs/a.md", text, list), [""; 0]);
        assert_eq!(said("docs/b.md", text, list).len(), 2);
        assert_eq!(said("docs/a.md", "A server is not replicated.\n", list).len(), 2);
    }

    #[test]
    fn an_entry_that_no_sentence_needs_is_refused() {
        let list = "page docs/a.md\nsays a directory\ntrue It is a directory.\n";
        let expected = "error: xtask/src/pages/claims/allowed.txt:1: no sentence of docs/a.md that seems to make a retired claim has \"a directory\"; remove the entry, or correct it";
        assert_eq!(said("docs/a.md", "A file is in a directory.\n", list), [expected]);
    }

    #[test]
    fn pages_are_read_and_history_is_not() {
        let pages = [
            "README.md",
            "README.zh-CN.md",
            "GLOSSARY.md",
            "docs/cluster.md",
            "docs/zh/how-to/workers.md",
            "docs/questions.txt",
            "crates/console/README.md",
            "crates/timer/src/lib.rs",
            "examples/http/README.md",
            "contrib/prometheus/alerts.yml",
            "packaging/tickwheel.toml",
        ];
        for page in pages {
            assert!(is_page(page), "{page}");
        }
        let others = [
            "CHANGELOG.md",
            "docs/adr/0001-x.md",
            "docs/performance/data/http-1.txt",
            "crates/timer/src/wheel.rs",
            "contrib/prometheus/alerts_test.yml",
            "crates/console/assets/vendor/README.md",
            "xtask/src/pages/claims/allowed.txt",
        ];
        for other in others {
            assert!(!is_page(other), "{other}");
        }
    }
}
