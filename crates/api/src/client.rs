//! A small blocking HTTP client.
