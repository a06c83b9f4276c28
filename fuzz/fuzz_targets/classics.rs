//! The fuzz target `classics`. Without a fuzzer: prints the scripts in files, and replays them.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(
    init: tickwheel_fuzz::panics::abort_at_a_finding(),
    |bytes: &[u8]| tickwheel_fuzz::case::Case::of_classics(bytes).replay()
);

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::case::Case;
    tickwheel_fuzz::files::replay_arguments(Case::of_classics, Case::replay)
}
