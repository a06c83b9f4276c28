//! The answer to a path from a directory, for authors of the pages.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::Path;
use std::{fs, io};

use sha2::{Digest, Sha256};

use crate::found::{Accepted, File, is_page, page, split};
use crate::media::Media;
use crate::set::hex;

/// The hash in the addresses of a page of a directory. It has the form of a version and is none, so that no browser keeps a file.
const NO_VERSION: &str = "00000000";

/// Why a file of the directory is not served.
#[derive(Debug)]
pub struct Unread {
    name: String,
    why: String,
}

impl Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the console's file `{}` is not served: {}", self.name, self.why)
    }
}

impl std::error::Error for Unread {}

/// Finds the answer to a path below `/console/` as [`find`](crate::find) does, with the files of a directory, which are read now. No
/// file outside of the directory is read, and no file of an unknown type. `None`: the path is no file's, and the browser does not ask
/// for a page.
///
/// # Errors
/// [`Unread`]: the directory has no such file, it cannot be read, or it is a link to a place outside.
pub fn read(directory: &Path, path: &str, accepted: Accepted) -> Result<Option<File>, Unread> {
    let (_, name) = split(path);
    let file = Media::of(name).map(|media| (media, bytes_of(directory, name)));
    match file {
        Some((media, Ok(bytes))) => Ok(Some(fresh(bytes, media))),
        _ if is_page(path, accepted) => {
            let index = bytes_of(directory, "index.html")?;
            let index = String::from_utf8_lossy(&index);
            Ok(Some(fresh(page(&index, path, NO_VERSION), Media::PAGE)))
        }
        Some((_, Err(unread))) => Err(unread),
        None => Ok(None),
    }
}

/// A file that is not kept, though a browser may ask whether it has changed.
fn fresh(bytes: Vec<u8>, media: Media) -> File {
    let version = Cow::Owned(hex(&Sha256::digest(&bytes)));
    File { bytes: Cow::Owned(bytes), is_gzip: false, media, keeps: false, version }
}

/// The contents of a file below the directory.
fn bytes_of(directory: &Path, name: &str) -> Result<Vec<u8>, Unread> {
    let unread = |why: String| Unread { name: name.to_owned(), why };
    // The path of the request is not decoded, and only names like those of the files are taken.
    let is_plain = |segment: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(known)
    };
    if !name.split('/').all(is_plain) {
        let why = "a name has letters, digits and `._-` only, and does not begin with a dot";
        return Err(unread(why.to_owned()));
    }
    let read = || -> io::Result<Option<Vec<u8>>> {
        let root = directory.canonicalize()?;
        // A link is followed first, so that the place itself is compared.
        let place = root.join(name).canonicalize()?;
        if !place.starts_with(&root) || !place.is_file() {
            return Ok(None);
        }
        fs::read(place).map(Some)
    };
    match read() {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => {
            Err(unread("it is no file, or it is a link to a place outside of the directory".to_owned()))
        }
        Err(error) => Err(unread(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: Accepted = Accepted { html: true, gzip: true };
    const PROGRAM: Accepted = Accepted { html: false, gzip: true };

    /// A directory beside a file that the server must not serve.
    fn directory() -> tempfile::TempDir {
        let around = tempfile::tempdir().expect("a directory");
        fs::write(around.path().join("secret.js"), "secret").expect("written");
        let inner = around.path().join("assets");
        fs::create_dir_all(inner.join("pages")).expect("a directory");
        fs::write(inner.join("index.html"), "<script src=\"./main.js\"></script>").expect("written");
        fs::write(inner.join("main.js"), "first").expect("written");
        fs::write(inner.join("pages/a.js"), "a").expect("written");
        fs::write(inner.join("key.pem"), "secret").expect("written");
        for (name, to) in
            [("out.js", "../secret.js"), ("in.js", "pages/a.js"), ("up", ".."), ("dir.js", "pages")]
        {
            std::os::unix::fs::symlink(to, inner.join(name)).expect("a link");
        }
        around
    }

    #[test]
    fn a_file_is_read_at_each_request() {
        let around = directory();
        let inner = around.path().join("assets");
        let get = |path| read(&inner, path, PROGRAM).expect("it is there").expect("a file");
        let first = get("main.js");
        assert_eq!((&*first.bytes, first.keeps, first.is_gzip), (&b"first"[..], false, false));
        fs::write(inner.join("main.js"), "second").expect("written");
        let second = get("a/00000000/main.js");
        assert_eq!((&*second.bytes, second.keeps), (&b"second"[..], false));
        assert_ne!(first.version, second.version);
        assert_eq!(get("in.js").bytes, get("pages/a.js").bytes, "a link may stay inside");
        let page = read(&inner, "q/x/tasks", BROWSER).expect("it is there").expect("a page");
        assert_eq!(&*page.bytes, b"<script src=\"../../a/00000000/main.js\"></script>");
        assert_eq!(read(&inner, "q/x/tasks", PROGRAM).expect("no file's"), None);
    }

    #[test]
    fn nothing_outside_is_read() {
        let around = directory();
        let inner = around.path().join("assets");
        for path in [
            "../secret.js",
            "pages/../../secret.js",
            "%2e%2e/secret.js",
            "out.js",
            "up/secret.js",
            "/etc/hosts.txt",
            "pages//a.js",
            ".hidden.js",
            "dir.js",
            "none.js",
            "a/00000000/../../../secret.js",
        ] {
            let unread = read(&inner, path, PROGRAM).expect_err(path).to_string();
            assert!(unread.contains("is not served"), "{unread}");
            let page = read(&inner, path, BROWSER).expect("the page is there");
            assert!(page.is_none_or(|page| page.media == Media::PAGE), "{path}");
        }
        assert_eq!(read(&inner, "key.pem", PROGRAM).expect("no file's"), None, "its type is not served");
        let nowhere = around.path().join("nowhere");
        assert!(read(&nowhere, "", BROWSER).is_err() && read(&nowhere, "main.js", PROGRAM).is_err());
    }
}
