//! The operations of the HTTP API, and their description.

mod bodies;
pub mod document;
mod operation;
mod parameter;
#[cfg(test)]
mod reference;
mod table;
