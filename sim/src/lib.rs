//! sim

pub mod oracle;
