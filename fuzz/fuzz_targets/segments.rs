//! The fuzz target `segments`: damage to segments. Without a fuzzer: prints the damage in files, and replays it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwheel_fuzz::store::damaged::Damaged::segments(bytes).replay());

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::store::damaged::Damaged;
    tickwheel_fuzz::files::replay_arguments(Damaged::segments, Damaged::replay)
}
