//! Records as bytes. The tables are in `docs/explanation/format.md`. The tables and the code in this folder must agree.

mod extra;
mod names;
mod ops;
mod rule;
mod schedule;
mod task;
mod wire;

pub(crate) use names::Names;
pub(crate) use ops::{
    OP_HEAD_BYTES, Op, batch_bytes, put_batch, put_body, put_ended, put_rule, put_stored, read_body,
    read_ops, split_ops, state, stored_head,
};
pub(crate) use task::TaskHead;
pub(crate) use wire::{DecodeError, Reader, put_bytes, put_varint, timestamp};
