//! Bytes become damage to a store's files, and what the store makes of them is held against what may be.
//!
//! [`sample`] makes small whole directories by the store itself; [`damage`] reads bytes as changes to some of their files; [`stamp`] makes
//! the checksums right again, so that they do not shield what is behind them; [`damaged`] opens what came of it, reads all, goes on writing,
//! and says what must hold.

pub mod damage;
pub mod damaged;
mod disk;
mod life;
pub mod sample;
pub mod stamp;
