//! The version of a task, as text for an error.

use crate::time::Seq;

pub(super) fn version_prose(current: &Option<Seq>) -> String {
    match current {
        Some(version) => format!("the live task has version {version}"),
        None => "no live task has this key".to_owned(),
    }
}
