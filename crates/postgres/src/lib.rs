//! Keeps the tasks of Tickwheel in PostgreSQL.

mod wire;
