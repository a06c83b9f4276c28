//! Builds the site and checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::links;
use super::page::Page;
use super::wheels;
use crate::finding::{Finding, report};
use crate::pages::translations;
use crate::root::{root, texts};
use crate::toolchain::{has_program, not_checked};

/// The only version that is tried.
const MDBOOK: &str = "cargo install mdbook --locked --version 0.5.4 --no-default-features --features search";
const CHINESE_QUESTIONS: &str = "docs/zh/questions.txt";
const ENGLISH_QUESTIONS: &str = "docs/questions.txt";
/// Where the Chinese pages are. mdBook knows only one language for all pages.
const CHINESE: &str = "zh/";
const ENGLISH_TAG: &str = "<html lang=\"en\"";
const CHINESE_TAG: &str = "<html lang=\"zh-CN\"";
/// Pages that mdBook makes of all others, or for requests that lead nowhere.
const COPIES: [&str; 3] = ["print.html", "404.html", "toc.html"];

/// Builds the site of `docs` in `target/book`.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let site = root.join("target/book");
    if site.exists() {
        fs::remove_dir_all(&site).with_context(|| format!("remove {}", site.display()))?;
    }
    let built = Command::new("mdbook").arg("build").arg(root.join("docs")).status();
    let built = built.with_context(|| format!("run mdbook; `{MDBOOK}` installs it"))?;
    if !built.success() {
        bail!("mdbook: {built}");
    }
    wheels::make(&site)?;
    let (mut files, mut pages, mut findings) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    walk(&site, &site, &mut files)?;
    for file in files.iter().filter(|file| file.ends_with(".html") && !COPIES.contains(&file.as_str())) {
        let path = site.join(file);
        let mut html = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        if file.starts_with(CHINESE) {
            if !html.contains(ENGLISH_TAG) {
                findings.push(Finding::new(file, format!("has no `{ENGLISH_TAG}` to be replaced")));
            }
            html = html.replacen(ENGLISH_TAG, CHINESE_TAG, 1);
            fs::write(&path, &html).with_context(|| format!("write {}", path.display()))?;
        }
        pages.insert(file.clone(), Page::read(&html));
    }
    findings.extend(links::check(&pages, &files));
    findings.extend(unlisted(&root, &files)?);
    findings.extend(styles(&site, &files)?);
    findings.extend(questions(&root, &site)?);
    findings.extend(translations::check(&texts(&root)?, false));
    report("site", &format!("{} pages", pages.len()), findings)
}

/// Pages of `docs` that the table of contents leaves out: mdBook makes no page of them.
fn unlisted(root: &Path, files: &BTreeSet<String>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for text in texts(&root.join("docs"))? {
        let Some(name) = text.path.strip_suffix(".md").filter(|name| *name != "SUMMARY") else { continue };
        let page = name
            .strip_suffix("README")
            .map_or_else(|| format!("{name}.html"), |to| format!("{to}index.html"));
        if !files.contains(&page) {
            findings.push(Finding::new(format!("docs/{}", text.path), "is not in docs/SUMMARY.md"));
        }
    }
    Ok(findings)
}

/// Styles that load something from another host.
fn styles(site: &Path, files: &BTreeSet<String>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".css")) {
        let path = site.join(file);
        let css = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let loads = |text: &str| text.trim_start_matches(['"', '\'']).starts_with("http");
        if css.split("url(").skip(1).any(loads) || css.contains("@import") {
            findings.push(Finding::new(file, "loads something from another place"));
        }
    }
    Ok(findings)
}

/// Questions that the search answers wrongly: mdBook's own index has no Chinese words, and finds Chinese pages for English words.
fn questions(root: &Path, site: &Path) -> Result<Vec<Finding>> {
    if !has_program("node") {
        not_checked("site", "questions to the search, for there is no node")?;
        return Ok(Vec::new());
    }
    let mut asking = Command::new("node");
    asking.current_dir(root).arg("xtask/src/pages/site/questions.js").arg(site);
    let asked = asking.args([CHINESE_QUESTIONS, ENGLISH_QUESTIONS]).output().context("start node")?;
    if !asked.status.success() {
        bail!("node: {}", String::from_utf8_lossy(&asked.stderr));
    }
    let answers = String::from_utf8_lossy(&asked.stdout);
    Ok(answers
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(place, what)| Finding::new(place, what))
        .collect())
}

fn walk(site: &Path, folder: &Path, files: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path: PathBuf = entry.with_context(|| format!("read {}", folder.display()))?.path();
        if path.is_dir() {
            walk(site, &path, files)?;
        } else {
            let file = path.strip_prefix(site).expect("the walk starts at the site");
            files.insert(file.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}
