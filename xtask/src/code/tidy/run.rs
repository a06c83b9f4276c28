//! The chore `tidy`.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::strangers::Strangers;
use super::{hosts, pages, shape, unused, wall, words};
use crate::finding::report;
use crate::root::{root, texts};

/// Looks at every text of ours.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let never = match options {
        [] => Vec::new(),
        options => never(options)?,
    };
    let root = root();
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    let strangers = Strangers::new(&root, &home, never);
    let texts = texts(&root)?;
    let mut findings = pages::check(&texts);
    findings.extend(unused::check(&texts));
    for text in &texts {
        shape::check(text, &mut findings);
        hosts::check(text, &mut findings);
        words::check(text, &mut findings);
        strangers.check(text, &mut findings);
        wall::check(text, &mut findings);
    }
    report("tidy", &format!("{} files", texts.len()), findings)
}

fn never(options: &[&str]) -> Result<Vec<String>> {
    let pairs = options.chunks(2);
    pairs
        .map(|pair| match pair {
            ["--never", text] if !text.is_empty() => Ok((*text).to_owned()),
            _ => bail!("tidy takes `--never TEXT` and nothing else, not `{}`", pair.join(" ")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_to_look_for_come_in_pairs() {
        assert_eq!(never(&["--never", "a", "--never", "b"]).expect("two"), ["a", "b"]);
        for wrong in [&["--never"][..], &["--never", ""], &["a", "b"]] {
            assert!(never(wrong).is_err(), "{wrong:?} was taken");
        }
    }
}
