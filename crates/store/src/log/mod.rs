//! The log: files of frames, one frame for each commit.

mod file;
mod files;
mod frame;
mod zeroes;

pub(crate) use file::{FORMAT, FRAMES_AT, LogHeader, LogUse, read_log_header};
pub(crate) use files::{Files, Kept, Progress, Sizes, Spare};
pub(crate) use frame::{
    Bad, END_MARK_BYTES, Frame, FrameHead, HEAD_BYTES, find_frame, find_proof, frame_bytes, frames,
    read_frame, stamp,
};
pub(crate) use zeroes::last_not_zero;
