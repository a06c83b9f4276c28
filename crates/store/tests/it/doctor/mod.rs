//! The doctor: what it says of directories that are whole, torn, damaged, of others, and that it changes none.

mod damage;
mod flips;
mod patient;
mod reports;
