//! The limit of open files of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to the highest that the system allows this process. The low usual limit (1,024) protects old programs only,
/// which this one is not. A program that this process starts afterwards has the raised limit, too; `tickwheel serve` starts none.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Without it, the server has fewer connections, which its log tells.
        let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    }
}
