//! Who imports whom: the manifests held against the drawing, and some rules that no drawing may ease.

mod circles;
mod drawing;
mod law;
mod manifest;
mod rooms;
mod run;
mod sources;

pub(crate) use run::{back, run};
pub(crate) use sources::{is_of_name, without_tests};
