//! The transfer of tasks, settings and schedules from one store to another, as lines: [`Exporter`] makes them,
//! [`Importer`] takes them. The routes of the server use both, and so do programs that have a
//! [`Queue`](tickwheel_queue::Queue) of their own.

mod exporter;
mod importer;
mod position;

pub use exporter::Exporter;
pub use importer::{Importer, Stop};
