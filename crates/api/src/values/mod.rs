//! Values that members of several rooms have.

pub(crate) mod due;
pub(crate) mod failure_text;
pub(crate) mod if_match;
pub(crate) mod levels;
pub(crate) mod limits;
pub(crate) mod payload;
pub(crate) mod rate;
pub(crate) mod retry;
pub(crate) mod right;
pub(crate) mod timeline;
pub(crate) mod trace;
