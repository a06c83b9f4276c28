//! The rules for translations: each names its original, has its blocks, and is of its present state.

use std::collections::BTreeSet;

use super::page::{Page, Stamp};
use crate::finding::Finding;
use crate::root::Text;

/// The folder of the Chinese pages.
const FOLDER: &str = "docs/zh/";
/// The only Chinese page that is not in it.
const FRONT: &str = "README.zh-CN.md";
/// Pages of the folder that translate no other: the list of all pages, and the list of words.
const OWN: [&str; 2] = ["docs/zh/README.md", "docs/zh/words.md"];
/// Pages that have to be translated, beside those of the folder of how-to pages.
const WANTED: [&str; 2] = ["README.md", "docs/tutorials/first-steps.md"];
const HOW_TO: &str = "docs/how-to/";

/// Whether the text is a translation, by its place.
pub(super) fn is_translation(path: &str) -> bool {
    let in_folder = path.starts_with(FOLDER) && path.ends_with(".md");
    path == FRONT || in_folder && !OWN.contains(&path)
}

/// The rules for all texts together. Translations that are behind are errors if `strict`, otherwise notes. So an English
/// page can be corrected before its translation.
pub(crate) fn check(texts: &[Text], strict: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut translated = BTreeSet::new();
    let behind = |place: &str, what: String| Finding { mild: !strict, ..Finding::new(place, what) };
    for text in texts.iter().filter(|text| is_translation(&text.path)) {
        let Some(stamp) = Stamp::read(&text.text) else {
            let what = "names no original; `cargo xtask translations stamp PAGE ORIGINAL` does that";
            findings.push(Finding::new(&text.path, what));
            continue;
        };
        let Some(original) = texts.iter().find(|text| text.path == stamp.original) else {
            findings
                .push(Finding::new(&text.path, format!("translates {}, which is not there", stamp.original)));
            continue;
        };
        translated.insert(stamp.original);
        let (page, original) = (Page::read(&text.text), Page::read(&original.text));
        if let Some(difference) = difference(&page, &original) {
            let what = format!(
                "{difference} of {}; `cargo xtask translations blocks` copies changed blocks",
                stamp.original
            );
            findings.push(Finding::new(&text.path, what));
        }
        if original.state() != stamp.state {
            let what = format!("{} has changed since it was translated", stamp.original);
            findings.push(behind(&text.path, what));
        }
    }
    let wanted = |path: &str| WANTED.contains(&path) || path.starts_with(HOW_TO) && path.ends_with(".md");
    for text in texts.iter().filter(|text| wanted(&text.path) && !translated.contains(text.path.as_str())) {
        findings.push(behind(&text.path, "has no translation".to_owned()));
    }
    findings
}

/// The first difference between the blocks of the translation and those of the original.
fn difference(page: &Page<'_>, original: &Page<'_>) -> Option<String> {
    let pairs = page.blocks.iter().zip(&original.blocks);
    let same = pairs.take_while(|(one, other)| one == other).count();
    let (has, wanted) = (page.blocks.len(), original.blocks.len());
    if has != wanted {
        Some(format!(
            "has {has} blocks, not the {wanted}; number {} is the first that is not as that",
            same + 1
        ))
    } else if same < has {
        Some(format!("its block {} is not that", same + 1))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str = "# Back up\n```sh\nls\n```\nand restore\n";

    fn said(strict: bool, translation: &str, original: &str) -> Vec<String> {
        let stamped = Stamp { original: "docs/how-to/a.md", state: Page::read(ORIGINAL).state() };
        let pages = [
            ("README.md", "one"),
            ("README.zh-CN.md", &Stamp { original: "README.md", state: Page::read("one").state() }.put("一")),
            ("docs/how-to/a.md", original),
            ("docs/how-to/a.sh", ""),
            ("docs/tutorials/first-steps.md", "two"),
            ("docs/zh/README.md", "全部"),
            ("docs/zh/a.md", &stamped.put(translation)),
            (
                "docs/zh/first-steps.md",
                &Stamp { original: "docs/tutorials/first-steps.md", state: Page::read("two").state() }
                    .put("二"),
            ),
        ];
        let texts = pages.map(|(path, text)| Text { path: path.to_owned(), text: text.to_owned() });
        check(&texts, strict).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_translation_with_the_blocks_of_its_original_is_good() {
        let translation = "# 备份\n```sh\nls\n```\n和还原\n```text\n自己的\n```\n";
        assert_eq!(said(true, translation, ORIGINAL), [""; 0]);
    }

    #[test]
    fn other_blocks_are_an_error() {
        let translation = "# 备份\n```sh\nps\n```\n";
        let remedy = "of docs/how-to/a.md; `cargo xtask translations blocks` copies changed blocks";
        let expected = format!("error: docs/zh/a.md: its block 1 is not that {remedy}");
        assert_eq!(said(false, translation, ORIGINAL), [expected]);
        let expected = format!(
            "error: docs/zh/a.md: has 0 blocks, not the 1; number 1 is the first that is not as that {remedy}"
        );
        assert_eq!(said(false, "# 备份\n", ORIGINAL), [expected]);
    }

    #[test]
    fn an_original_that_changed_is_told_and_stops_a_release_only() {
        let (translation, original) = ("```sh\nls\n```\n", "# Back up\n```sh\nls\n```\nand restore it\n");
        let what = "docs/zh/a.md: docs/how-to/a.md has changed since it was translated";
        assert_eq!(said(false, translation, original), [format!("note: {what}")]);
        assert_eq!(said(true, translation, original), [format!("error: {what}")]);
    }

    #[test]
    fn pages_without_translation_and_translations_without_original_are_told() {
        let page = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
        let gone = Stamp { original: "docs/how-to/b.md", state: 1 }.put("");
        let texts =
            [page("docs/how-to/a.md", ""), page("docs/zh/b.md", &gone), page("docs/zh/c.md", "# 无\n")];
        let said: Vec<String> = check(&texts, false).iter().map(Finding::to_string).collect();
        let expected = [
            "error: docs/zh/b.md: translates docs/how-to/b.md, which is not there",
            "error: docs/zh/c.md: names no original; `cargo xtask translations stamp PAGE ORIGINAL` does that",
            "note: docs/how-to/a.md: has no translation",
        ];
        assert_eq!(said, expected);
    }
}
