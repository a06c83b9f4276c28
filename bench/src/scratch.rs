//! A place for data that goes away.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A directory of its own, which is removed with this.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it, empty, in `parent`.
    pub(crate) fn new(parent: &Path, name: &str) -> anyhow::Result<Self> {
        let path = parent.join(name);
        remove(&path)?;
        std::fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is found by whoever looks there.
        let _ = remove(&self.0);
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        std::fs::remove_dir_all(path).with_context(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}
