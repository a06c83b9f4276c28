//! The fuzz target `saved_index`: damage to what segments say of themselves. Without a fuzzer: prints the damage in files, and replays it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    |bytes: &[u8]| tickwheel_fuzz::store::damaged::Damaged::saved_index(bytes).replay()
);

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::store::damaged::Damaged;
    tickwheel_fuzz::files::replay_arguments(Damaged::saved_index, Damaged::replay)
}
