//! Options of `serve` that limit what clients use at one time.

use clap::Args;
use tickwheel_server::{Config, Limits};

use crate::values;

/// The limits. A refusal names the limit that was reached.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// The largest number of connections at one time, of HTTP and beanstalkd together
    ///
    /// For one more connection, the connection that has been idle the longest is closed. If none is idle, the new connection is answered
    /// 429
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_CONNECTIONS", default_value = "10000", value_parser = values::places)]
    max_connections: usize,
    /// The largest number of connections at one time from one address of another machine. Connections from this machine are not counted,
    /// because a proxy may run on it
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_CONNECTIONS_PER_ADDRESS", default_value = "1000", value_parser = values::places)]
    max_connections_per_address: usize,
    /// Additional connections for /healthz, /readyz, /metrics and callers whose token has `admin`
    #[arg(long, value_name = "N", env = "TICKWHEEL_KEPT_CONNECTIONS", default_value = "64", value_parser = values::places)]
    kept_connections: usize,
    /// The largest number of large bodies (above 16 KiB, up to 1 MiB each) that are read at one time
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_LARGE_BODIES", default_value = "128", value_parser = values::places)]
    max_large_bodies: usize,
    /// The largest number of large bodies of one token that are read at one time; without tokens, of one address of another machine
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_LARGE_BODIES_PER_CALLER", default_value = "64", value_parser = values::places)]
    max_large_bodies_per_caller: usize,
    /// The largest number of batches that are open at one time; each takes up to 16 MiB of memory
    ///
    /// A batch that sends less than 1 KiB/s for 5 s is ended if another batch waits
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_BATCHES", default_value = "32", value_parser = values::places)]
    max_batches: usize,
    /// The largest number of open batches of one token; without tokens, of one address of another machine
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_BATCHES_PER_CALLER", default_value = "16", value_parser = values::places)]
    max_batches_per_caller: usize,
    /// The largest number of running jobs: cancels, moves and purges of more than 10,000 tasks, which go on after their call was answered
    ///
    /// Four jobs work at one time, in steps of 1,000 tasks; the callers take turns
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_JOBS", default_value = "64", value_parser = values::places)]
    max_jobs: usize,
    /// The largest number of running jobs of one token; without tokens, of one address of another machine
    #[arg(long, value_name = "N", env = "TICKWHEEL_MAX_JOBS_PER_CALLER", default_value = "16", value_parser = values::places)]
    max_jobs_per_caller: usize,
    /// The memory for the payloads of answers that clients have not read yet (bytes); one token, or one address of another machine, may use a quarter of it
    #[arg(long, value_name = "BYTES", env = "TICKWHEEL_MAX_ANSWER_BYTES", default_value = "268435456", value_parser = values::answer_bytes)]
    max_answer_bytes: usize,
    /// The memory for the names of tubes that clients of beanstalkd watch (bytes); one connection may use a quarter of it
    #[arg(long, value_name = "BYTES", env = "TICKWHEEL_MAX_WATCHED_BYTES", default_value = "33554432", value_parser = values::watched_bytes)]
    max_watched_bytes: usize,
}

impl LimitOptions {
    /// `config` with these limits.
    pub(crate) fn put_into(&self, config: Config) -> Config {
        Config {
            connections_max: self.max_connections,
            connections_per_address_max: self.max_connections_per_address,
            limits: Limits {
                connections_kept: self.kept_connections,
                large_bodies: self.max_large_bodies,
                large_bodies_per_caller: self.max_large_bodies_per_caller,
                answer_bytes: self.max_answer_bytes,
                batches: self.max_batches,
                batches_per_caller: self.max_batches_per_caller,
                jobs: self.max_jobs,
                jobs_per_caller: self.max_jobs_per_caller,
                watched_bytes: self.max_watched_bytes,
            },
            ..config
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tickwheel_server::Store;

    use super::*;

    #[derive(Parser, Debug)]
    struct Alone {
        #[command(flatten)]
        limits: LimitOptions,
    }

    #[test]
    fn the_defaults_are_those_of_the_server_and_each_option_has_its_limit() {
        let of = |words: &[&str]| {
            let words = [&["serve"], words].concat();
            Alone::try_parse_from(words).map(|alone| alone.limits.put_into(Config::new(Store::Memory)))
        };
        // The environment of the test run may set other values.
        let options = Alone::try_parse_from(["serve"]).is_ok();
        assert!(options);
        let usual = of(&[
            "--max-connections=10000",
            "--max-connections-per-address=1000",
            "--kept-connections=64",
            "--max-large-bodies=128",
            "--max-large-bodies-per-caller=64",
            "--max-batches=32",
            "--max-batches-per-caller=16",
            "--max-jobs=64",
            "--max-jobs-per-caller=16",
            "--max-answer-bytes=268435456",
            "--max-watched-bytes=33554432",
        ]);
        assert_eq!(usual.expect("options"), Config::new(Store::Memory));
        let other = of(&[
            "--max-connections=1",
            "--max-connections-per-address=2",
            "--kept-connections=3",
            "--max-large-bodies=4",
            "--max-large-bodies-per-caller=8",
            "--max-batches=5",
            "--max-batches-per-caller=6",
            "--max-jobs=9",
            "--max-jobs-per-caller=10",
            "--max-answer-bytes=80000000",
            "--max-watched-bytes=7000",
        ])
        .expect("options");
        assert_eq!((other.connections_max, other.connections_per_address_max), (1, 2));
        let limits = Limits {
            connections_kept: 3,
            large_bodies: 4,
            large_bodies_per_caller: 8,
            answer_bytes: 80_000_000,
            batches: 5,
            batches_per_caller: 6,
            jobs: 9,
            jobs_per_caller: 10,
            watched_bytes: 7_000,
        };
        assert_eq!(other.limits, limits);
        for bad in
            ["--max-batches=0", "--max-connections=-1", "--max-watched-bytes=1", "--kept-connections=x"]
        {
            assert!(of(&[bad]).is_err(), "{bad}");
        }
    }
}
