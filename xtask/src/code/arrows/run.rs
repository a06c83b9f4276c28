//! The chore `arrows`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::drawing::{Drawing, FENCE, PAGE};
use super::{circles, law, manifest, rooms};
use crate::finding::report;
use crate::root::root;

/// Reads the drawings, the manifests and the sources of the crates, and compares them.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let page = page(&root)?;
    let drawing = Drawing::read(&page, FENCE).map_err(|why| anyhow!(why))?;
    let packages = manifest::read(&root)?;
    let mut findings = law::check(&drawing, &packages);
    let (drawn, of_rooms) = rooms::check(&root, &page)?;
    findings.extend(of_rooms);
    let (files, of_circles) = circles::check(&root, &page, &packages)?;
    findings.extend(of_circles);
    report(
        "arrows",
        &format!("{} packages, {files} files, {drawn} of them in drawn rooms", packages.len()),
        findings,
    )
}

/// Prints the arrows of a crate that run back up between its rooms.
pub(crate) fn back(name: &str) -> Result<()> {
    let root = root();
    for line in rooms::back(&root, &page(&root)?, name)? {
        println!("{line}");
    }
    Ok(())
}

fn page(root: &Path) -> Result<String> {
    fs::read_to_string(root.join(PAGE)).with_context(|| format!("read {PAGE}"))
}
