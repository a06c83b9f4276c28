//! The fuzz target `frames`: damage to log files. Without a fuzzer: prints the damage in files, and replays it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwheel_fuzz::store::damaged::Damaged::frames(bytes).replay());

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::store::damaged::Damaged;
    tickwheel_fuzz::files::replay_arguments(Damaged::frames, Damaged::replay)
}
