//! The answer to a path.

use std::borrow::Cow;

use crate::assets::{ASSETS, INDEX};
use crate::media::Media;
use crate::set::set;

/// The policy of the content of each answer: nothing from another host, no inline script or style, no text that becomes HTML.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The forms that the browser accepts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Accepted {
    /// The browser accepts HTML: it asks for an address that a person opens.
    pub html: bool,
    /// The browser accepts gzip.
    pub gzip: bool,
}

/// A file of the console, or the page that loads the files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The contents.
    pub bytes: Cow<'static, [u8]>,
    /// The contents are compressed by gzip.
    pub is_gzip: bool,
    /// The media type.
    pub media: Media,
    /// A browser may keep the file for ever, because its path has the hash of this version.
    pub keeps: bool,
    /// The hash of this version, for `ETag`.
    pub version: Cow<'static, str>,
}

/// The largest number of `/` in the path of a page. A path of slashes alone would make a page that is long out of all proportion.
const DEPTH_MAX: usize = 8;

/// Finds the answer to a path below `/console/`, as it stands in the request. `None`: there is no such file, and the browser does
/// not ask for a page.
///
/// The first call compresses all files, which takes some milliseconds.
#[must_use]
pub fn find(path: &str, accepted: Accepted) -> Option<File> {
    let set = set();
    let (hash, name) = split(path);
    let keeps = hash == Some(&set.version);
    if let Ok(at) = ASSETS.binary_search_by(|asset| asset.path.cmp(name)) {
        let (asset, zipped) = (&ASSETS[at], &set.zipped[at]);
        let is_gzip = accepted.gzip && zipped.len() < asset.bytes.len();
        let bytes = Cow::Borrowed(if is_gzip { &zipped[..] } else { asset.bytes });
        return Some(File {
            bytes,
            is_gzip,
            media: asset.media(),
            keeps,
            version: Cow::Borrowed(&set.version),
        });
    }
    is_page(path, accepted).then(|| File {
        bytes: Cow::Owned(page(INDEX, path, &set.version)),
        is_gzip: false,
        media: Media::PAGE,
        keeps: false,
        version: Cow::Borrowed(&set.version),
    })
}

/// The hash in a path, if it has one, and the rest.
pub(crate) fn split(path: &str) -> (Option<&str>, &str) {
    match path.strip_prefix("a/").and_then(|rest| rest.split_once('/')) {
        Some((hash, name)) if is_hash(hash) => (Some(hash), name),
        _ => (None, path),
    }
}

/// Whether a path that is no file's has the page.
pub(crate) fn is_page(path: &str, accepted: Accepted) -> bool {
    accepted.html && path.matches('/').count() <= DEPTH_MAX
}

/// Whether a segment of a path can be the hash of some version.
fn is_hash(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The page at a path below `/console/`. Its addresses are relative, so that a proxy may put the server below a path.
pub(crate) fn page(index: &str, path: &str, version: &str) -> Vec<u8> {
    let up = "../".repeat(path.matches('/').count());
    index.replace("=\"./", &format!("=\"{up}a/{version}/")).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    const BROWSER: Accepted = Accepted { html: true, gzip: true };
    const PROGRAM: Accepted = Accepted { html: false, gzip: false };

    fn file(path: &str, accepted: Accepted) -> Option<File> {
        find(path, accepted).filter(|file| file.media != Media::PAGE)
    }

    fn found_page(path: &str) -> Option<Cow<'static, [u8]>> {
        find(path, BROWSER).filter(|file| file.media == Media::PAGE && !file.keeps).map(|file| file.bytes)
    }

    #[test]
    fn each_file_is_found_with_and_without_gzip() {
        for asset in ASSETS {
            let path = format!("a/{}/{}", set().version, asset.path);
            let plain = file(&path, PROGRAM).expect("a file");
            assert!(plain.bytes == asset.bytes && plain.keeps && !plain.is_gzip, "{path}");
            let zipped = file(&path, BROWSER).expect("a file");
            let mut bytes = Vec::new();
            match zipped.is_gzip {
                true => drop(GzDecoder::new(&*zipped.bytes).read_to_end(&mut bytes).expect("gzip")),
                false => bytes.extend_from_slice(&zipped.bytes),
            }
            assert!(bytes == asset.bytes && zipped.bytes.len() <= asset.bytes.len(), "{path}");
        }
    }

    /// A page of an earlier version may still ask. It gets the file of this one, and may not keep it as that of its own.
    #[test]
    fn a_file_without_the_hash_of_this_version_is_not_kept() {
        for path in ["main.js", "a/0123456789abcdef/main.js"] {
            assert!(!file(path, BROWSER).expect("a file").keeps, "{path}");
        }
        for path in
            ["a/main.js", "a/xyz/main.js", "a/0123456789abcdef/", "main.jsx", "../main.js", "", "index.html"]
        {
            assert_eq!(find(path, PROGRAM), None, "{path}");
            assert!(found_page(path).is_some(), "{path}");
        }
    }

    #[test]
    fn each_address_of_the_page_leads_to_a_file() {
        for (path, up) in
            [("", ""), ("horizon", ""), ("q/shop%2Fclose/t/order:1", "../../../"), ("q/", "../")]
        {
            let page = found_page(path).expect("a page").into_owned();
            let page = String::from_utf8(page).expect("UTF-8");
            let mut addresses = 0;
            for part in page.split("=\"").skip(1) {
                let address = part.split('"').next().expect("a value");
                let Some(name) = address.strip_prefix(&format!("{up}a/{}/", set().version)) else { continue };
                assert!(file(name, PROGRAM).is_some(), "{name}");
                addresses += 1;
            }
            assert!(addresses > 3 && !page.contains("\"./"), "{path}: {page}");
        }
        assert_eq!(find(&"/".repeat(DEPTH_MAX + 1), BROWSER), None);
    }

    /// The policy lets the browser run and show files of this server only.
    #[test]
    fn the_page_has_no_inline_script_or_style() {
        assert!(POLICY.starts_with("default-src 'none';"));
        assert!(
            !INDEX.contains("<style") && !INDEX.contains("style=\"") && !INDEX.contains("http"),
            "{INDEX}"
        );
        assert!(
            INDEX
                .split("<script")
                .skip(1)
                .all(|script| script.contains("src=\"./") && script.contains("></script>"))
        );
    }
}
