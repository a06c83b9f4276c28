//! The check itself: pure, from the drawing and the manifests to findings.

use std::collections::{BTreeMap, BTreeSet};

use super::drawing::{Drawing, PAGE};
use super::manifest::{Import, Kind, Package, Source};
use crate::finding::Finding;

/// The packages outside the workspace that a package of the product may import, where that is limited. Names and not
/// only their number, so that a swap is seen too.
const OUTSIDE: [(&str, &[&str]); 2] =
    [("tickwheel-core", &[]), ("tickwheel-engine", &["hashbrown", "siphasher", "thiserror"])];

/// Everything in the manifests that the drawing or the rules do not allow.
///
/// Normal and build dependencies draw arrows; those for tests do not, but they may no more come from git than the others.
pub(super) fn check(drawing: &Drawing, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let drawn = drawing.product.keys().chain(&drawing.tools);
    for name in drawn.filter(|name| !ours.contains(name.as_str())) {
        findings.push(Finding::new(PAGE, format!("draws {name}, which is no package of the workspace")));
    }
    for package in packages {
        for import in &package.imports {
            if let Some(what) = strange_source(&ours, import) {
                findings.push(Finding::new(
                    &package.manifest,
                    format!("{} -> {}: {what}", package.name, import.name),
                ));
            }
        }
        if let Some(allowed) = drawing.product.get(&package.name) {
            product(drawing, &ours, package, allowed, &mut findings);
        } else if drawing.tools.contains(&package.name) {
            tool(drawing, packages, package, &mut findings);
        } else {
            let what =
                format!("{} is not in the drawing; add it to the block `arrows` of {PAGE}", package.name);
            findings.push(Finding::new(&package.manifest, what));
        }
    }
    findings
}

fn strange_source(ours: &BTreeSet<&str>, import: &Import) -> Option<String> {
    match &import.from {
        Source::Path if !ours.contains(import.name.as_str()) => {
            Some("a folder outside the workspace; take it from the registry".to_owned())
        }
        Source::Path | Source::Registry => None,
        Source::Other(source) => Some(format!("comes from {source}; only the registry is allowed")),
    }
}

fn draws_arrow(import: &&Import) -> bool {
    matches!(import.kind, Kind::Normal | Kind::Build)
}

fn product(
    drawing: &Drawing,
    ours: &BTreeSet<&str>,
    package: &Package,
    allowed: &BTreeSet<String>,
    findings: &mut Vec<Finding>,
) {
    let mut unused: BTreeSet<&str> = allowed.iter().map(String::as_str).collect();
    let mut outside = BTreeSet::new();
    for import in package.imports.iter().filter(draws_arrow) {
        let name = import.name.as_str();
        if !ours.contains(name) {
            outside.insert(name);
        } else if drawing.tools.contains(name) {
            let what = format!("{} -> {name}: {name} is a tool; nobody imports it", package.name);
            findings.push(Finding::new(&package.manifest, what));
        } else if !allowed.contains(name) {
            let may = listed(allowed.iter().map(String::as_str));
            let what = format!(
                "{} -> {name} is not in the drawing; {} may import {may} ({PAGE})",
                package.name, package.name
            );
            findings.push(Finding::new(&package.manifest, what));
        }
        unused.remove(name);
    }
    if !unused.is_empty() {
        let what = format!("{} -> {} is drawn in {PAGE} and not used", package.name, listed(unused));
        findings.push(Finding::mild(&package.manifest, what));
    }
    if let Some((_, allowed)) = OUTSIDE.iter().find(|(name, _)| *name == package.name) {
        for name in outside.iter().filter(|name| !allowed.contains(name)) {
            let may = listed(allowed.iter().copied());
            let what = format!("{} -> {name}: from outside it may import {may} only", package.name);
            findings.push(Finding::new(&package.manifest, what));
        }
    }
}

/// A tool imports what it likes. But a workspace build takes every feature that any package switches on. So a tool
/// must not switch one on that the product itself does not: the build would test another product than the one that
/// ships.
fn tool(drawing: &Drawing, packages: &[Package], tool: &Package, findings: &mut Vec<Finding>) {
    let mut shipped: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages.iter().filter(|package| drawing.product.contains_key(&package.name)) {
        for import in package.imports.iter().filter(draws_arrow) {
            shipped.entry(&import.name).or_default().extend(import.features.iter().map(String::as_str));
        }
    }
    for import in &tool.imports {
        if drawing.tools.contains(&import.name) && import.kind != Kind::Dev {
            let what =
                format!("{} -> {}: {} is a tool; nobody imports it", tool.name, import.name, import.name);
            findings.push(Finding::new(&tool.manifest, what));
        }
        if !drawing.product.contains_key(&import.name) {
            continue;
        }
        for feature in &import.features {
            let ships = shipped.get(import.name.as_str()).is_some_and(|on| on.contains(feature.as_str()));
            if !ships {
                let what = format!(
                    "{} switches on `{feature}` of {}, which the product does not: a workspace build would ship another \
                     product than the one that is tested; use --cfg",
                    tool.name, import.name
                );
                findings.push(Finding::new(&tool.manifest, what));
            }
        }
    }
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::arrows::drawing::FENCE;

    const BLOCK: &str = "```arrows
tickwheel-core -> nothing
tickwheel-engine -> tickwheel-core
tickwheel-store -> tickwheel-engine
tickwheel-sim -> anything
tickwheel-bench -> anything
```
";

    fn ours(name: &str) -> Import {
        Import { name: name.to_owned(), kind: Kind::Normal, from: Source::Path, features: Vec::new() }
    }

    fn outside(name: &str) -> Import {
        Import { from: Source::Registry, ..ours(name) }
    }

    fn package(name: &str, imports: &[Import]) -> Package {
        Package { name: name.to_owned(), manifest: format!("{name}/Cargo.toml"), imports: imports.to_vec() }
    }

    /// A workspace in order, with the imports of one package exchanged.
    fn workspace(changed: &str, imports: &[Import]) -> Vec<Package> {
        let mut packages = vec![
            package("tickwheel-core", &[]),
            package("tickwheel-engine", &[ours("tickwheel-core"), outside("thiserror")]),
            package("tickwheel-store", &[ours("tickwheel-engine"), outside("crc32c")]),
            package("tickwheel-sim", &[ours("tickwheel-store"), ours("tickwheel-core")]),
            package("tickwheel-bench", &[]),
        ];
        if let Some(package) = packages.iter_mut().find(|package| package.name == changed) {
            package.imports = imports.to_vec();
        }
        packages
    }

    fn said(packages: &[Package]) -> Vec<String> {
        let drawing = Drawing::read(BLOCK, FENCE).expect("the drawing of the tests");
        check(&drawing, packages).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_workspace_in_order_is_in_order() {
        assert_eq!(said(&workspace("none", &[])), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_named_with_its_file_and_what_is_allowed() {
        let packages = workspace("tickwheel-engine", &[ours("tickwheel-core"), ours("tickwheel-store")]);
        assert_eq!(
            said(&packages),
            [
                "error: tickwheel-engine/Cargo.toml: tickwheel-engine -> tickwheel-store is not in the drawing; \
              tickwheel-engine may import tickwheel-core (ARCHITECTURE.md)"
            ]
        );
    }

    #[test]
    fn build_dependencies_count_and_those_of_tests_do_not() {
        let build = Import { kind: Kind::Build, ..ours("tickwheel-store") };
        let test = Import { kind: Kind::Dev, ..ours("tickwheel-store") };
        assert_eq!(said(&workspace("tickwheel-core", &[build])).len(), 1);
        assert_eq!(said(&workspace("tickwheel-core", &[test])), Vec::<String>::new());
    }

    #[test]
    fn core_imports_nothing_at_all_and_engine_only_what_is_named() {
        let core = said(&workspace("tickwheel-core", &[outside("smallvec")]));
        assert!(
            core[0].contains("tickwheel-core -> smallvec: from outside it may import nothing only"),
            "{core:?}"
        );
        let engine = said(&workspace("tickwheel-engine", &[ours("tickwheel-core"), outside("rand")]));
        assert!(engine[0].contains("may import hashbrown, siphasher, thiserror only"), "{engine:?}");
        for (name, allowed) in OUTSIDE {
            assert!(allowed.len() <= 5, "{name} has {} imports from outside; five are enough", allowed.len());
        }
    }

    #[test]
    fn nobody_imports_a_tool() {
        let product = said(&workspace("tickwheel-store", &[ours("tickwheel-engine"), ours("tickwheel-sim")]));
        assert!(product[0].contains("tickwheel-sim is a tool; nobody imports it"), "{product:?}");
        let tool = said(&workspace("tickwheel-bench", &[ours("tickwheel-sim")]));
        assert!(tool[0].contains("tickwheel-sim is a tool; nobody imports it"), "{tool:?}");
    }

    #[test]
    fn git_and_strange_folders_are_refused_even_for_tests() {
        let git = Source::Other("git+ssh://example/x".to_owned());
        let git = Import { from: git, kind: Kind::Dev, ..ours("x") };
        let folder = ours("somebody-elses");
        let found = said(&workspace("tickwheel-bench", &[git, folder]));
        assert!(
            found.iter().any(|said| said.contains("tickwheel-bench -> x: comes from git+ssh")),
            "{found:?}"
        );
        assert!(found.iter().any(|said| said.contains("a folder outside the workspace")), "{found:?}");
    }

    #[test]
    fn a_tool_switches_on_only_features_that_ship() {
        let planted = Import { features: vec!["planted".to_owned()], ..ours("tickwheel-store") };
        let found = said(&workspace("tickwheel-sim", std::slice::from_ref(&planted)));
        assert!(found[0].contains("tickwheel-sim switches on `planted` of tickwheel-store"), "{found:?}");
        let mut packages = workspace("tickwheel-sim", std::slice::from_ref(&planted));
        packages[1].imports.push(planted);
        assert!(
            said(&packages).iter().all(|said| !said.contains("switches on")),
            "the product has it on too"
        );
    }

    #[test]
    fn a_package_nobody_drew_and_a_drawing_nobody_built_are_both_named() {
        let mut packages = workspace("none", &[]);
        packages.push(package("tickwheel-extra", &[]));
        packages.retain(|package| package.name != "tickwheel-bench");
        let found = said(&packages);
        assert!(found.iter().any(|said| said.contains("tickwheel-extra is not in the drawing")), "{found:?}");
        assert!(
            found.iter().any(|said| said.contains("draws tickwheel-bench, which is no package")),
            "{found:?}"
        );
    }

    #[test]
    fn a_drawn_arrow_that_nobody_uses_is_only_a_note() {
        let found = said(&workspace("tickwheel-store", &[]));
        assert_eq!(
            found,
            [
                "note: tickwheel-store/Cargo.toml: tickwheel-store -> tickwheel-engine is drawn in ARCHITECTURE.md and not used"
            ]
        );
    }
}
