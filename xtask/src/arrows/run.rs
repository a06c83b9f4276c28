//! The chore `arrows`.

use std::fs;

use anyhow::{Context, Result, anyhow};

use super::drawing::{Drawing, FENCE, PAGE};
use super::{circles, law, manifest, rooms};
use crate::finding::report;
use crate::root::root;

/// Reads the drawings, the manifests and the sources of the crates, and compares them.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("read {PAGE}"))?;
    let drawing = Drawing::read(&page, FENCE).map_err(|why| anyhow!(why))?;
    let packages = manifest::read(&root)?;
    let mut findings = law::check(&drawing, &packages);
    let (files, of_rooms) = rooms::check(&root, &page)?;
    findings.extend(of_rooms);
    let (more, of_circles) = circles::check(&root)?;
    findings.extend(of_circles);
    report(
        "arrows",
        &format!(
            "{} packages, {files} files of drawn crates, {more} of crates without circles",
            packages.len()
        ),
        findings,
    )
}
