//! The fuzz target `salvage`: damage to any kind of file, and a salvage of what is left. Without a fuzzer: prints the damage in files, and
//! salvages it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwheel_fuzz::store::damaged::Damaged::anywhere(bytes).salvage());

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::store::damaged::Damaged;
    tickwheel_fuzz::files::replay_arguments(Damaged::anywhere, Damaged::salvage)
}
