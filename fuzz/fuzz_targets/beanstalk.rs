//! The fuzz target `beanstalk`: what clients of beanstalkd say. Without a fuzzer: prints what is said in files, and replays it.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tickwheel_fuzz::said::Said::new(bytes).replay());

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    use tickwheel_fuzz::said::Said;
    tickwheel_fuzz::files::replay_arguments(Said::new, Said::replay)
}
