//! Each behaviour that the page promises has a test that is named after it, and no test is named after one that is not there.

mod id;
mod page;
mod run;
mod tested;

pub(crate) use run::run;
