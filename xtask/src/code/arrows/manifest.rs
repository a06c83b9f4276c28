//! The manifests, reduced to what the arrows are about.

use std::path::Path;

use anyhow::Result;
use cargo_metadata::DependencyKind;

use crate::root::metadata;

/// A package of the workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Package {
    pub(super) name: String,
    /// Its manifest, from the root.
    pub(super) manifest: String,
    pub(super) imports: Vec<Import>,
}

impl Package {
    /// The folder of its sources, from the root.
    pub(super) fn sources(&self) -> String {
        format!("{}src", self.manifest.trim_end_matches("Cargo.toml"))
    }
}

/// A line in one of a manifest's tables of dependencies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Import {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) from: Source,
    /// Features that this line switches on.
    pub(super) features: Vec<String>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Normal,
    Build,
    /// For tests only: draws no arrow.
    Dev,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A folder, as packages of this workspace are.
    Path,
    /// A registry. Which one is cargo-deny's to check.
    Registry,
    /// Anything else, such as a git repository.
    Other(String),
}

/// Reads the manifests of the workspace at `root`. Needs no network and no lock file.
pub(super) fn read(root: &Path) -> Result<Vec<Package>> {
    let metadata = metadata(root)?;
    Ok(metadata.workspace_packages().into_iter().map(|package| package_of(root, package)).collect())
}

fn package_of(root: &Path, package: &cargo_metadata::Package) -> Package {
    let manifest = package.manifest_path.as_std_path();
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest).display().to_string();
    let imports = package.dependencies.iter().map(import_of).collect();
    Package { name: package.name.to_string(), manifest, imports }
}

fn import_of(line: &cargo_metadata::Dependency) -> Import {
    let kind = match line.kind {
        DependencyKind::Build => Kind::Build,
        DependencyKind::Development => Kind::Dev,
        // A kind that cargo may invent counts like the strictest one.
        _ => Kind::Normal,
    };
    let from = match &line.source {
        None => Source::Path,
        Some(source) if is_registry(&source.repr) => Source::Registry,
        Some(source) => Source::Other(source.repr.clone()),
    };
    Import { name: line.name.clone(), kind, from, features: line.features.clone() }
}

fn is_registry(source: &str) -> bool {
    source.starts_with("registry+") || source.starts_with("sparse+")
}
