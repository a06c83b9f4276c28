//! Every call of beanstalkc, with a server at the first argument, HOST:PORT. It needs a server without jobs.

use std::collections::HashMap;
use std::time::Duration;

use beanstalkc::{Beanstalkc, BeanstalkcError, BeanstalkcResult};

const NOW: Duration = Duration::ZERO;

fn client() -> Beanstalkc {
    let address = std::env::args().nth(1).expect("an address is given");
    let (host, port) = address.rsplit_once(':').expect("an address has a port");
    let made = Beanstalkc::new().host(host).port(port.parse().expect("a port is a number"));
    made.connect().expect("the server answers")
}

/// Checks that the answer is this refusal.
#[track_caller]
fn refused<T>(answer: BeanstalkcResult<T>, status: &str) {
    match answer {
        Ok(_) => panic!("not refused"),
        Err(BeanstalkcError::CommandFailed(why)) => assert!(why.contains(status), "{why}"),
        Err(why) => panic!("{why}"),
    }
}

#[track_caller]
fn shown(stats: &HashMap<String, String>, wanted: &[(&str, &str)]) {
    for (name, value) in wanted {
        assert_eq!(stats.get(*name).map(String::as_str), Some(*value), "{name} in {stats:?}");
    }
}

fn life_of_a_job() -> BeanstalkcResult<()> {
    let mut c = client();
    let id = c.put(b"hello", 10, NOW, Duration::from_secs(30))?;
    let mut job = c.reserve()?;
    assert_eq!((job.id(), job.body(), job.reserved()), (id, &b"hello"[..], true));
    job.touch()?;
    job.release(4, NOW)?;
    shown(&c.stats_job(id)?, &[("state", "ready"), ("pri", "4"), ("releases", "1"), ("ttr", "30")]);
    c.reserve_with_timeout(NOW)?.bury(5)?;
    assert_eq!(c.peek_buried()?.id(), id);
    assert_eq!(c.kick(7)?, 1);
    c.reserve()?.bury_default()?;
    let wanted =
        [("state", "buried"), ("reserves", "3"), ("buries", "2"), ("kicks", "1"), ("tube", "default")];
    shown(&c.stats_job(id)?, &wanted);
    c.kick_job(id)?;
    assert_eq!(c.peek_ready()?.id(), id);
    c.reserve()?.release_default()?;
    assert_eq!(c.peek(id)?.body(), b"hello");
    c.reserve()?.delete()?;
    refused(c.delete(id), "NotFound");
    refused(c.peek(id), "NotFound");
    refused(c.kick_job(id), "NotFound");
    refused(c.touch(id), "NotFound");
    refused(c.reserve_with_timeout(NOW), "TimedOut");
    Ok(())
}

fn tubes() -> BeanstalkcResult<()> {
    let mut c = client();
    assert_eq!(c.using()?, "default");
    assert_eq!(c.use_tube("one")?, "one");
    assert_eq!(c.watch("one")?, 2);
    assert_eq!(c.ignore("default")?, 1);
    refused(c.ignore("one"), "NotIgnored");
    assert_eq!(c.watching()?, ["one"]);
    let mut all = c.tubes()?;
    all.sort();
    assert_eq!(all, ["default", "one"]);
    let far = c.put(b"far", 9, Duration::from_secs(1_000), Duration::from_secs(1))?;
    assert_eq!(c.peek_delayed()?.id(), far);
    let near = c.put_default(b"near")?;
    let wanted =
        [("name", "one"), ("current-jobs-delayed", "1"), ("current-jobs-ready", "1"), ("total-jobs", "2")];
    shown(&c.stats_tube("one")?, &wanted);
    c.pause_tube("one", Duration::from_secs(1_000))?;
    shown(&c.stats_tube("one")?, &[("pause", "1000"), ("cmd-pause-tube", "1")]);
    refused(c.reserve_with_timeout(NOW), "TimedOut");
    c.pause_tube("one", NOW)?;
    assert_eq!(c.reserve_with_timeout(NOW)?.id(), near);
    c.delete(near)?;
    assert_eq!(c.kick(1)?, 1);
    c.reserve()?.delete()?;
    refused(c.stats_tube("nowhere"), "NotFound");
    refused(c.pause_tube("nowhere", NOW), "NotFound");
    Ok(())
}

/// A worker that goes away leaves its job to another, and so does one that takes too long.
fn holders() -> BeanstalkcResult<()> {
    let mut c = client();
    let id = c.put_default(b"left")?;
    let mut gone = client();
    assert_eq!(gone.reserve()?.id(), id);
    refused(c.delete(id), "NotFound");
    drop(gone);
    assert_eq!(c.reserve_with_timeout(Duration::from_secs(20))?.id(), id);
    c.delete(id)?;

    let id = c.put(b"slow", 0, NOW, Duration::from_secs(1))?;
    let mut slow = client();
    assert_eq!(slow.reserve()?.id(), id);
    refused(slow.reserve(), "DeadlineSoon");
    // Under load beanstalkd may see that the time is over no sooner than the holder speaks.
    let mut tries = 0;
    while let Err(why) = c.reserve_with_timeout(Duration::from_secs(2)) {
        tries += 1;
        assert!(tries < 20, "the holder keeps its job: {why}");
        slow.using()?;
    }
    refused(slow.touch(id), "NotFound");
    shown(&c.stats_job(id)?, &[("timeouts", "1"), ("reserves", "2")]);
    c.delete(id)
}

fn bodies() -> BeanstalkcResult<()> {
    let mut c = client();
    for body in [&b""[..], b"\r\n", b"\r\nDELETED\r\n", &[0xff; 65_535]] {
        c.put_default(body)?;
        let mut job = c.reserve()?;
        assert!(job.body() == body, "{} bytes", body.len());
        job.delete()?;
    }
    refused(c.put_default(&[b'x'; 65_536]), "JobTooBig");
    // This client cannot parse beanstalkd's own `stats`: their `os` is not what it takes for text.
    let stats = client().stats()?;
    if !stats.is_empty() {
        shown(&stats, &[("current-jobs-ready", "0"), ("draining", "false"), ("max-job-size", "65535")]);
    }
    Ok(())
}

fn main() {
    type Check = fn() -> BeanstalkcResult<()>;
    let checks: [(&str, Check); 4] =
        [("life_of_a_job", life_of_a_job), ("tubes", tubes), ("holders", holders), ("bodies", bodies)];
    for (name, check) in checks {
        check().unwrap_or_else(|why| panic!("{name}: {why}"));
        println!("beanstalkc: {name}");
    }
}
