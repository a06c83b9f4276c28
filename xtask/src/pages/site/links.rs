//! The rules for links: each leads to a place of the site, and a page loads nothing from another host.

use std::collections::{BTreeMap, BTreeSet};

use super::page::Page;
use crate::finding::Finding;
use crate::root::from_root;

/// Checks the links of all pages; `files` are all files of the site.
pub(super) fn check(pages: &BTreeMap<String, Page>, files: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, page) in pages {
        for load in &page.loads {
            if is_elsewhere(load) {
                findings.push(Finding::new(name, format!("loads {load} from another host")));
            } else if !load.starts_with("data:") && !files.contains(&resolved(name, load).0) {
                findings.push(Finding::new(name, format!("loads {load}, which is not there")));
            }
        }
        for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
            let (file, place) = resolved(name, link);
            let known = match (pages.get(&file), place) {
                (Some(to), Some(place)) => to.places.contains(&place),
                _ => files.contains(&file),
            };
            if !known {
                findings.push(Finding::new(name, format!("links to {link}, which is not there")));
            }
        }
    }
    findings
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("//") || target.starts_with("mailto:")
}

/// The file of the site that a link of this page leads to, and the place in it.
fn resolved(page: &str, link: &str) -> (String, Option<String>) {
    let (path, place) = match link.split_once('#') {
        Some((path, place)) => (path, Some(place.to_owned()).filter(|place| !place.is_empty())),
        None => (link, None),
    };
    let path = path.split('?').next().unwrap_or_default();
    if path.is_empty() {
        return (page.to_owned(), place);
    }
    let mut file = from_root(page, path);
    if path.ends_with('/') || file.is_empty() {
        file = format!("{file}/index.html").trim_start_matches('/').to_owned();
    }
    (file, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(links: &[&str], loads: &[&str]) -> Vec<String> {
        let set = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let page = Page { links: set(links), loads: set(loads), places: set(&["here"]) };
        let other = Page { places: set(&["there"]), ..Page::default() };
        let pages = [("a/b.html".to_owned(), page), ("index.html".to_owned(), other)].into();
        let files = set(&["a/b.html", "index.html", "style.css"]);
        check(&pages, &files).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn links_within_the_site_and_to_other_sites_are_good() {
        let links =
            ["#here", "b.html", "../index.html#there", "../", "../style.css?v=1", "https://example.com/x"];
        assert_eq!(said(&links, &["../style.css", "data:image/png;base64,AA"]), [""; 0]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        for link in ["#gone", "c.html", "../index.html#here", "../../format.md"] {
            assert_eq!(said(&[link], &[]), [format!("error: a/b.html: links to {link}, which is not there")]);
        }
    }

    #[test]
    fn a_page_loads_nothing_from_another_host() {
        for load in ["https://example.com/a.js", "//example.com/a.js"] {
            assert_eq!(said(&[], &[load]), [format!("error: a/b.html: loads {load} from another host")]);
        }
        assert_eq!(said(&[], &["a.js"]), ["error: a/b.html: loads a.js, which is not there"]);
    }
}
