//! The protocol of PostgreSQL, from the side of a client.
