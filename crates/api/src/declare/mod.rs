//! The language in which bodies and queries are declared: their members, and how each is read, written and described.

pub(crate) mod body;
pub(crate) mod choice;
pub(crate) mod json;
pub(crate) mod kind;
pub(crate) mod part;
pub(crate) mod query;
pub(crate) mod schema;
pub(crate) mod value;
