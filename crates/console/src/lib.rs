//! The pages of the console: the files that a server of Tickwheel gives to a browser. They talk to the HTTP API of the server.
//!
//! The browser gets the files as they stand in `assets/`; nothing builds them. A file has a path with the hash of all files, so a
//! browser may keep it for ever. The page, `index.html`, has no such path, and its addresses lead to the files of this version.
//!
//! ```
//! use tickwheel_console::{Accepted, find};
//!
//! let browser = Accepted { html: true, gzip: true };
//! let page = find("q/orders/tasks", browser).expect("each path has the page");
//! let text = String::from_utf8(page.bytes.into_owned())?;
//! let at = text.find("../../a/").expect("its addresses go up to the root of the console");
//! let (hash, _) = text[at + 8..].split_once('/').expect("a path");
//! let file = find(&format!("a/{hash}/main.js"), browser).expect("a file");
//! assert!(file.is_gzip && file.keeps);
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```

mod assets;
mod disk;
mod found;
mod media;
mod set;

pub use crate::disk::{Unread, read};
pub use crate::found::{Accepted, File, POLICY, find};
pub use crate::media::Media;
