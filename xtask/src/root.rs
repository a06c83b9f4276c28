//! Where the repository is, and which files in it are ours.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask is a folder of the workspace").to_owned()
}

/// The folder of what cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Asks cargo for the packages of the workspace at `root`. Cargo needs no network and no lock file for it.
pub(crate) fn metadata(root: &Path) -> Result<Metadata> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec();
    metadata.context("ask cargo for the workspace's metadata")
}

/// A file of ours that is text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Text {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All our text files, in the order of their paths: what a build or a run leaves behind is not ours.
pub(crate) fn texts(root: &Path) -> Result<Vec<Text>> {
    let mut texts = Vec::new();
    walk(root, root, &mut texts)?;
    texts.sort();
    Ok(texts)
}

/// The path from the root of what a page links to: `link` is seen from the folder of the page.
pub(crate) fn from_root(page: &str, link: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut path: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.join("/")
}

fn walk(root: &Path, folder: &Path, texts: &mut Vec<Text>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry.with_context(|| format!("read {}", folder.display()))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().with_context(|| format!("look at {}", path.display()))?;
        if kind.is_dir() {
            let left_behind = name == ".git" || name == "tickwheel-data" || name.starts_with("target");
            if !left_behind {
                walk(root, &path, texts)?;
            }
        } else if kind.is_file() {
            let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            // A picture has no words, and pages link to it. Another file that is not UTF-8 is a fixture, which no check reads.
            let text = String::from_utf8(bytes).ok().or_else(|| name.ends_with(".png").then(String::new));
            if let Some(text) = text {
                let path = path.strip_prefix(root).expect("the walk starts at the root");
                texts.push(Text { path: path.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    Ok(())
}
