//! Dependencies that the root offers and no package takes.

use crate::finding::Finding;
use crate::root::Text;

const ROOT: &str = "Cargo.toml";
const SECTION: &str = "[workspace.dependencies]";

/// Each of them: the next reader would look for what it is good for.
pub(super) fn check(texts: &[Text]) -> Vec<Finding> {
    let Some(root) = texts.iter().find(|text| text.path == ROOT) else { return Vec::new() };
    let section = root.text.lines().skip_while(|line| *line != SECTION).skip(1);
    let offered = section.take_while(|line| !line.starts_with('[')).filter_map(name);
    let manifests: Vec<&str> = texts
        .iter()
        .filter(|text| text.path.ends_with("/Cargo.toml"))
        .flat_map(|text| text.text.lines())
        .filter_map(name)
        .collect();
    let unused = offered.filter(|name| !manifests.contains(name));
    unused.map(|name| Finding::new(ROOT, format!("{SECTION} has {name}, which no package uses"))).collect()
}

/// The dependency that a line of a manifest names: `name = ...` or `name.workspace = ...`.
fn name(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    Some(name.strip_suffix(".workspace").unwrap_or(name))
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_package_takes_is_named() {
        let root = "[package]\nx = 1\n[workspace.dependencies]\na = \"1\"\nb = \"1\"\nc = { version = \"1\" }\n[lints]\nd = 1\n";
        let member = "[dependencies]\na.workspace = true\n[dev-dependencies]\nc = { workspace = true, features = [\"e\"] }\n# b = 1\n";
        let texts = [(ROOT, root), ("crates/m/Cargo.toml", member)];
        let texts = texts.map(|(path, text)| Text { path: path.to_owned(), text: text.to_owned() });
        let said: Vec<String> = check(&texts).iter().map(Finding::to_string).collect();
        assert_eq!(said, ["error: Cargo.toml: [workspace.dependencies] has b, which no package uses"]);
    }
}
