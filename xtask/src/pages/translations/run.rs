//! The chore `translations`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::check::{check, is_translation};
use super::page::{Page, Stamp};
use crate::finding::{Finding, report};
use crate::root::{root, texts};

/// Checks the translations, or writes into them what no translator has to do.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let root = root();
    match options {
        [] => looked_at(&root, false),
        ["--strict"] => looked_at(&root, true),
        ["blocks"] => blocks(&root),
        ["stamp", page] => stamp(&root, page, None),
        ["stamp", page, original] => stamp(&root, page, Some(original)),
        _ => bail!(
            "translations takes --strict, `blocks` or `stamp PAGE [ORIGINAL]`, not `{}`",
            options.join(" ")
        ),
    }
}

fn looked_at(root: &Path, strict: bool) -> Result<()> {
    let texts = texts(root)?;
    let count = texts.iter().filter(|text| is_translation(&text.path)).count();
    report("translations", &format!("{count} translations"), check(&texts, strict))
}

/// Copies the blocks of all originals into their translations. The prose stays, and so does the state.
fn blocks(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    for text in texts(root)?.iter().filter(|text| is_translation(&text.path)) {
        let Some(stamp) = Stamp::read(&text.text) else { continue };
        if let Err(error) = write(root, &text.path, &text.text, stamp) {
            findings.push(Finding::new(&text.path, format!("{error:#}")));
        }
    }
    report("translations", "blocks", findings)
}

/// Says of a translation that it is that of its original as it is now, and copies the blocks.
fn stamp(root: &Path, page: &str, original: Option<&str>) -> Result<()> {
    let text = read(root, page)?;
    let original = match (original, Stamp::read(&text)) {
        (Some(original), _) => original,
        (None, Some(stamp)) => stamp.original,
        (None, None) => bail!("{page} names no original; write `stamp {page} ORIGINAL`"),
    };
    let state = Page::read(&read(root, original)?).state();
    write(root, page, &text, Stamp { original, state })
}

fn write(root: &Path, page: &str, text: &str, stamp: Stamp<'_>) -> Result<()> {
    let original = read(root, stamp.original)?;
    let (translation, blocks) = (Page::read(text), Page::read(&original).blocks);
    let Some(with) = translation.with_blocks(&blocks) else {
        let (has, wanted) = (translation.blocks.len(), blocks.len());
        bail!("has {has} blocks and {} has {wanted}; put the others in their places first", stamp.original);
    };
    let with = stamp.put(&with);
    if with != text {
        fs::write(root.join(page), with).with_context(|| format!("write {page}"))?;
        println!("{page}: written");
    }
    Ok(())
}

fn read(root: &Path, page: &str) -> Result<String> {
    fs::read_to_string(root.join(page)).with_context(|| format!("read {page}"))
}
