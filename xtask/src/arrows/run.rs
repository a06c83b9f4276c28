//! The chore `arrows`.

use std::fs;

use anyhow::{Context, Result, anyhow};

use super::drawing::{Drawing, PAGE};
use super::{law, manifest};
use crate::finding::report;
use crate::root::root;

/// Reads the drawing and the manifests and compares them.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("read {PAGE}"))?;
    let drawing = Drawing::read(&page).map_err(|why| anyhow!(why))?;
    let packages = manifest::read(&root)?;
    let findings = law::check(&drawing, &packages);
    report("arrows", &format!("{} packages", packages.len()), findings)
}
