//! The links of a page of HTML: where they lead, what the page loads, and the places that a link can name.

use std::collections::BTreeSet;

/// A page, as far as links are concerned. It reads what mdBook writes: attributes in quotes, and tags that are closed.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// The targets of its links.
    pub(super) links: BTreeSet<String>,
    /// The files that a browser loads to show the page.
    pub(super) loads: BTreeSet<String>,
    /// The places in it that a link can name after `#`.
    pub(super) places: BTreeSet<String>,
}

impl Page {
    pub(super) fn read(html: &str) -> Self {
        let mut page = Self::default();
        let mut rest = html;
        while let Some(tag) = next_tag(&mut rest) {
            let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
            page.places.extend(attribute(tag, "id"));
            match name {
                "a" => page.links.extend(attribute(tag, "href")),
                "link" => page.loads.extend(attribute(tag, "href")),
                "script" | "img" | "iframe" | "source" | "video" | "audio" | "object" | "embed" => {
                    page.loads.extend(attribute(tag, "src").or_else(|| attribute(tag, "data")));
                }
                _ => {}
            }
            // The text of a script or a style is no HTML.
            if (name == "script" || name == "style")
                && let Some(end) = rest.find(&format!("</{name}"))
            {
                rest = &rest[end..];
            }
        }
        page
    }
}

/// The text between the next `<` and its `>`. Comments are skipped.
fn next_tag<'a>(rest: &mut &'a str) -> Option<&'a str> {
    loop {
        let from = &rest[rest.find('<')? + 1..];
        if let Some(comment) = from.strip_prefix("!--") {
            *rest = &comment[comment.find("-->")?..];
            continue;
        }
        let mut quote = None;
        let end = from.find(|c| match (c, quote) {
            (c, Some(open)) if c == open => {
                quote = None;
                false
            }
            ('"' | '\'', None) => {
                quote = Some(c);
                false
            }
            (c, None) => c == '>',
            _ => false,
        })?;
        *rest = &from[end..];
        return Some(&from[..end]);
    }
}

/// The value of an attribute.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let at = tag.match_indices(name).find(|(at, _)| {
        tag[..*at].ends_with(char::is_whitespace) && tag[at + name.len()..].starts_with("=\"")
    })?;
    let value = &tag[at.0 + name.len() + 2..];
    Some(value[..value.find('"')?].replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn a_page_tells_its_links_its_loads_and_its_places() {
        let page = Page::read(
            "<!-- <a href=\"no.html\"> --><head><link rel=\"icon\" href=\"f.svg\"><script src=\"a.js\">if (1<2) \
             '<a href=\"no\">'</script></head><h2 id=\"x\" title=\"a > b\">X</h2><a class=\"h\" href=\"b.html?a=1&amp;b=2#y\">b</a>\
             <img data-href=\"no\" src=\"c.png\"/>",
        );
        assert_eq!(
            page,
            Page {
                links: set(&["b.html?a=1&b=2#y"]),
                loads: set(&["f.svg", "a.js", "c.png"]),
                places: set(&["x"]),
            }
        );
    }

    #[test]
    fn a_page_that_breaks_off_is_read_as_far_as_it_goes() {
        for html in ["", "<", "<a href=\"x", "<!-- ", "<script>"] {
            assert!(Page::read(html).links.is_empty(), "{html}");
        }
    }
}
