//! Chores of the pages: their claims, their translations, the table of behaviours, and the site.

pub(crate) mod behaviours;
pub(crate) mod claims;
pub(crate) mod site;
pub(crate) mod translations;
