//! Values on the command line. Each value is checked when it is parsed, and the error says what to write instead.

use tickwheel_api::{
    ATTEMPTS_MAX, CADENCE_MS_MAX, CADENCE_MS_MIN, HISTORY_KEEP_MS_MAX, LEASE_MS_MAX, LEASE_MS_MIN,
    LEASE_TASKS_MAX, Levels, PAUSE_MS_MAX, TOKEN_CHARS, TextError, WAIT_MS_MAX, WORKER_BYTES_MAX, duration,
    time,
};
use tickwheel_queue::{Group, Key, QueueName, Router, SHARDS_MAX, ScheduleName, Tag};
use tickwheel_server::{JOB_BYTES_MAX, ListenAt, ListenAtError};

/// The time until the task is due (ms), written as `30m`.
pub(crate) fn delay(text: &str) -> Result<u64, String> {
    duration::parse(text).map_err(|error| error.in_full())
}

/// A shift of the due time (ms): `1h` is later, `-1h` is earlier.
pub(crate) fn shift(text: &str) -> Result<i64, String> {
    match duration::parse_signed(text) {
        Ok(0) => Err("moves nothing; write 1h for an hour later, -1h for an hour earlier".to_owned()),
        Ok(ms) => Ok(ms),
        Err(error) => Err(error.in_full()),
    }
}

/// The address to listen on: `127.0.0.1:8463` or `unix:/run/tickwheel.sock`.
pub(crate) fn listen(text: &str) -> Result<ListenAt, String> {
    text.parse().map_err(|error: ListenAtError| error.to_string())
}

/// The delays of the levels, such as `1s 30s 5m`.
pub(crate) fn levels(text: &str) -> Result<Levels, String> {
    text.parse().map_err(|error: TextError| error.in_full())
}

/// The largest number of things that exist at one time.
pub(crate) fn places(text: &str) -> Result<usize, String> {
    count(text, 1_000_000)
}

/// The number of shards.
pub(crate) fn shards(text: &str) -> Result<u32, String> {
    let shards = text.parse().ok().filter(|shards| Router::new(*shards).is_some());
    shards.ok_or_else(|| format!("write a number from 1 to {SHARDS_MAX}"))
}

/// Memory for watched tubes (4 KiB to 1 TiB).
pub(crate) fn watched_bytes(text: &str) -> Result<usize, String> {
    number(text, 4 << 10, 1 << 40).and_then(|bytes| usize::try_from(bytes).map_err(|error| error.to_string()))
}

/// Memory for answers (64 MiB to 1 TiB). A quarter of it has room for the largest answer to a lease call.
pub(crate) fn answer_bytes(text: &str) -> Result<usize, String> {
    number(text, 64 << 20, 1 << 40)
        .and_then(|bytes| usize::try_from(bytes).map_err(|error| error.to_string()))
}

/// A lease within the server's limits (ms).
pub(crate) fn lease(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (LEASE_MS_MIN..=LEASE_MS_MAX).contains(&ms) {
        return Ok(ms);
    }
    let (min, max) = (duration::format(LEASE_MS_MIN), duration::format(LEASE_MS_MAX));
    Err(format!("a lease lasts {min} to {max}; work that takes longer extends it"))
}

/// A wait within the server's limit (ms).
pub(crate) fn wait(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if ms <= WAIT_MS_MAX {
        return Ok(ms);
    }
    Err(format!("a call waits at most {}; to wait longer, call again", duration::format(WAIT_MS_MAX)))
}

/// The time between two requests for the state (ms).
pub(crate) fn every(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (100..=3_600_000).contains(&ms) { Ok(ms) } else { Err("it takes a time from 100ms to 1h".to_owned()) }
}

/// The shortest duration of a commit that is logged as slow (ms).
pub(crate) fn slow_commit(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (1..=3_600_000).contains(&ms) { Ok(ms) } else { Err("it takes a time from 1ms to 1h".to_owned()) }
}

/// How long a stop waits (ms).
pub(crate) fn stop_grace(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if ms <= 600_000 { Ok(ms) } else { Err("it takes 0s to 10m".to_owned()) }
}

/// How far the wall clock may be ahead of the data at a start (ms).
pub(crate) fn clock_max_ahead(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (1_000..=36_500 * 86_400_000).contains(&ms) { Ok(ms) } else { Err("it takes 1s to 36500d".to_owned()) }
}

/// The time between two backups (ms).
pub(crate) fn backup_every(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (1_000..=366 * 86_400_000).contains(&ms) { Ok(ms) } else { Err("it takes 1s to 366d".to_owned()) }
}

/// An instant (ms since 1970): RFC 3339, or a bare number.
pub(crate) fn instant(text: &str) -> Result<i64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return time::parse(text).map_err(|error| {
            let word = text.eq_ignore_ascii_case("now") || text.eq_ignore_ascii_case("tomorrow");
            let also = if word { "; for a time from now on use --in" } else { "" };
            error.in_full() + also
        });
    }
    match text.parse::<i64>() {
        Ok(ms) if ms <= time::INSTANT_MS_MAX => Ok(ms),
        _ => Err(format!(
            "{text} is {}; write milliseconds since 1970, not micro- or nanoseconds",
            time::too_late()
        )),
    }
}

/// A word to find tasks by.
pub(crate) fn tag(text: &str) -> Result<String, String> {
    Tag::new(text).map(|tag| tag.as_str().to_owned()).map_err(|error| error.to_string())
}

/// A group of tasks.
pub(crate) fn group(text: &str) -> Result<String, String> {
    Group::new(text).map(|group| group.as_str().to_owned()).map_err(|error| error.to_string())
}

/// The name of a worker.
pub(crate) fn worker(text: &str) -> Result<String, String> {
    if (1..=WORKER_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(format!("write 1 to {WORKER_BYTES_MAX} bytes without control characters"))
}

/// The name of a queue.
pub(crate) fn queue(text: &str) -> Result<String, String> {
    QueueName::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A task's key.
pub(crate) fn key(text: &str) -> Result<String, String> {
    Key::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// A lease token.
pub(crate) fn token(text: &str) -> Result<String, String> {
    let in_alphabet = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if in_alphabet && text.len() == TOKEN_CHARS {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a token has {TOKEN_CHARS} characters of A-Z a-z 0-9 _ -; give the `token` that `lease` printed"
    ))
}

/// The number of tasks that one lease takes.
pub(crate) fn lease_max(text: &str) -> Result<usize, String> {
    count(text, LEASE_TASKS_MAX)
}

/// A count from 1 to `max`.
fn count(text: &str, max: u64) -> Result<usize, String> {
    text.parse::<u64>()
        .ok()
        .filter(|count| (1..=max).contains(count))
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| format!("it takes a number from 1 to {max}"))
}

/// A number of lines to show, at least 1.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    // Lines are read page by page, so memory sets no limit. This limit keeps the number exact in JSON.
    count(text, 1 << 53)
}

/// A version: the number of an ETag.
pub(crate) fn version(text: &str) -> Result<u64, String> {
    text.trim_matches('"')
        .parse::<u64>()
        .map_err(|_| "a version is the number that `put` and `get` print, such as 41".to_owned())
}

/// The setting of the beanstalkd door.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beanstalk {
    /// The door is closed.
    Off,
    /// The door listens here.
    At(ListenAt),
}

/// The address of `serve --beanstalk`.
pub(crate) fn beanstalk(text: &str) -> Result<Beanstalk, String> {
    if text == "off" {
        return Ok(Beanstalk::Off);
    }
    text.parse().map(Beanstalk::At).map_err(|error| match error {
        ListenAtError::NoAddress => {
            "it takes an address and a port, such as 127.0.0.1:11300 or [::1]:11300 (names such as localhost are not looked up), a socket, such as \
             unix:/run/tickwheel.sock, or `off`"
                .to_owned()
        }
        error => error.to_string(),
    })
}

/// A port to connect to.
pub(crate) fn port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "it takes a port from 1 to 65535, such as 11300".to_owned())
}

/// The server to connect to, by its name or its address: `127.0.0.1:11300`.
pub(crate) fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, number)) if !host.is_empty() => port(number).map(|_| text.to_owned()),
        _ => Err("it takes a host and a port, such as 127.0.0.1:11300".to_owned()),
    }
}

/// The maximal size of a job in the beanstalkd door (bytes).
pub(crate) fn job_bytes(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok().filter(|bytes| (1..=JOB_BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| format!("it takes a number of bytes from 1 to {JOB_BYTES_MAX}"))
}

/// A value for a setting, or the word that restores its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting<T> {
    To(T),
    Default,
}

impl<T> Setting<T> {
    /// The value; `None` for the default.
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::To(value) => Some(value),
            Self::Default => None,
        }
    }
}

/// `none`, or the result of `read`.
pub(crate) fn setting<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Setting<T>, String> {
    match text {
        "none" => Ok(Setting::Default),
        _ => read(text).map(Setting::To).map_err(|error| format!("{error}; `none` gives the default back")),
    }
}

/// A whole number from `min` to `max`.
pub(crate) fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("it takes a number from {min} to {max}"))
}

/// The time for which ended tasks are remembered (ms).
pub(crate) fn history(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    let max = HISTORY_KEEP_MS_MAX;
    if ms <= max { Ok(ms) } else { Err(format!("it takes at most {}", duration::format(max))) }
}

/// The number of attempts after which a task is dead.
pub(crate) fn attempts(text: &str) -> Result<u32, String> {
    let attempts = number(text, 1, u64::from(ATTEMPTS_MAX))?;
    Ok(u32::try_from(attempts).expect("it is within the limit"))
}

/// The duration of a pause (ms).
pub(crate) fn pause(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (1..=PAUSE_MS_MAX).contains(&ms) {
        return Ok(ms);
    }
    Err(format!("a pause that ends by itself lasts 1ms to {}", duration::format(PAUSE_MS_MAX)))
}

/// The name of a schedule.
pub(crate) fn schedule(text: &str) -> Result<String, String> {
    ScheduleName::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The time from one occurrence of a schedule to the next (ms).
pub(crate) fn cadence(text: &str) -> Result<u64, String> {
    let ms = delay(text)?;
    if (CADENCE_MS_MIN..=CADENCE_MS_MAX).contains(&ms) {
        return Ok(ms);
    }
    let (min, max) = (duration::format(CADENCE_MS_MIN), duration::format(CADENCE_MS_MAX));
    Err(format!("from one occurrence to the next it takes {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_write_instead() {
        let cases: [(Result<u64, String>, &str); 5] = [
            (
                delay("30"),
                "`30` has no unit after 30; write `30ms`, `30s` or `30m`; the units are ms s m h d w",
            ),
            (delay("-5s"), "`-5s` is negative; write `0s` for now; no duration is negative"),
            (lease("10ms"), "a lease lasts 1s to 12h; work that takes longer extends it"),
            (wait("61s"), "a call waits at most 1m; to wait longer, call again"),
            (version("x"), "a version is the number that `put` and `get` print, such as 41"),
        ];
        for (result, expected) in cases {
            assert_eq!(result.expect_err("bad"), expected);
        }
        assert!(
            levels("1s x")
                .expect_err("bad")
                .ends_with("; write durations, for example `1s 30s 5m`; level 1 is the first one")
        );
        assert!(instant("tomorrow").expect_err("bad").ends_with("use --in"));
        assert!(instant("1506943593000000").expect_err("bad").contains("after 9999-12-30T22:00:00.999Z"));
        assert!(queue("a b").expect_err("bad").contains("byte 1"));
        assert!(key("").expect_err("bad").contains("1 to 256 bytes"));
        assert!(token("a=b").expect_err("bad").contains("32 characters"));
        assert!(lease_max("0").expect_err("bad").contains("1 to 1000"));
        assert!(beanstalk("localhost").expect_err("bad").contains("127.0.0.1:11300"));
        assert!(port("0").expect_err("bad").contains("1 to 65535"));
        assert!(host_and_port("localhost").expect_err("bad").contains("127.0.0.1:11300"));
        assert!(host_and_port("localhost:x").expect_err("bad").contains("1 to 65535"));
        assert!(job_bytes("16777217").expect_err("bad").contains("16777216"));
    }

    #[test]
    fn good_values_are_taken() {
        assert_eq!(delay("1h30m"), Ok(5_400_000));
        assert_eq!(lease("30s"), Ok(30_000));
        assert_eq!(wait("0s"), Ok(0));
        assert_eq!(instant("2017-10-02T11:26:33Z"), Ok(1_506_943_593_000));
        assert_eq!(instant("1506943593000"), Ok(1_506_943_593_000));
        assert_eq!(version("\"41\""), Ok(41));
        assert_eq!(lease_max("1000"), Ok(1_000));
        assert_eq!(beanstalk("off"), Ok(Beanstalk::Off));
        assert_eq!(beanstalk("unix:/a b"), Ok(Beanstalk::At(ListenAt::Unix("/a b".into()))));
        assert_eq!(job_bytes("1"), Ok(1));
        assert_eq!((port("1"), host_and_port("[::1]:11300")), (Ok(1), Ok("[::1]:11300".to_owned())));
    }
}
