//! [`together`]: several threads that begin at one time.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Runs `run` once for each part, each in a thread of its own. Returns the sum of the results, and the time from the common start to the
/// end of the last thread.
pub(crate) fn together<P: Send>(
    parts: impl IntoIterator<Item = P>,
    run: impl Fn(P) -> Result<u64> + Sync,
) -> Result<(u64, Duration)> {
    let parts: Vec<P> = parts.into_iter().collect();
    let begin = Barrier::new(parts.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let (begin, run) = (&begin, &run);
                scope.spawn(move || {
                    begin.wait();
                    run(part)
                })
            })
            .collect();
        begin.wait();
        let (begun, mut sum) = (Instant::now(), 0);
        for thread in threads {
            match thread.join() {
                Ok(result) => sum += result?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok((sum, begun.elapsed()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_run_and_an_error_of_one_is_told() {
        let (sum, _) = together([1, 2, 3], Ok).expect("no error");
        assert_eq!(sum, 6);
        let error =
            together([1, 2, 3], |n| if n == 2 { bail!("two") } else { Ok(n) }).expect_err("two fails");
        assert_eq!(error.to_string(), "two");
    }
}
