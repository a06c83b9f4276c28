//! The concurrent parts under shuttle, which decides at every lock and every atomic operation which thread runs next. See
//! `scripts/shuttle`.

mod delay_queue;
mod purgatory;
mod sleep;
mod timer;

/// Runs a test in many interleavings: random ones, and ones with few changes of threads.
///
/// `ITERATIONS` in the environment is the number of interleavings of each kind (2,000 if it is not set). A failure prints
/// the schedule that `shuttle::replay` takes.
fn explore(test: impl Fn() + Clone + Send + Sync + 'static) {
    let set = std::env::var("ITERATIONS").ok().and_then(|count| count.parse().ok());
    let iterations = set.unwrap_or(2_000);
    shuttle::check_random(test.clone(), iterations);
    shuttle::check_pct(test, iterations, 3);
}
