//! Chores of the code: its arrows and its words, the test programs, the planted bugs.

pub(crate) mod arrows;
pub(crate) mod no_std;
pub(crate) mod plant;
pub(crate) mod planted;
pub(crate) mod suite;
pub(crate) mod tidy;
