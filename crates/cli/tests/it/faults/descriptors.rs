//! A server that may have few file descriptors.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickwheel_api::{Due, PayloadBody, PutBody, PutQuery, TargetBody, TargetKind};
use tickwheel_client::blocking::Client;

use crate::faults::history::wall_ms;
use crate::faults::receiver::{Receiver, Reply};
use crate::faults::report::{ready, wait_for};
use crate::faults::server::Home;
use crate::faults::stage::HOUR_MS;

/// The most descriptors of the server. The soft limit, which the server raises, is a half.
const LIMIT: u64 = 512;
/// Tasks whose webhooks would use up the descriptors several times over.
const TASKS: u64 = 1_000;
/// The payloads that make the store open new log files.
const BULK: (u64, usize) = (40, 1_000_000);
/// A scope has at least this many connections under this limit.
const WEBHOOKS_MIN: usize = 16;
const NOISY: &str = "token-of-the-noisy-tenant-0123456789";
const QUIET: &str = "token-of-the-quiet-tenant-0123456789";

/// The story: a receiver took the connections of a webhook and stayed silent. The webhook had 10,000 of them, so the server had no descriptor for its
/// next log file. It was read-only for all tenants, and after a restart no client could connect.
#[test]
fn a_silent_receiver_takes_no_descriptor_from_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::below(directory.path());
    let tokens = directory.path().join("tokens");
    let lines = format!("{NOISY} scope=noisy/ name=noisy\n{QUIET} scope=quiet/ name=quiet\n");
    fs::write(&tokens, lines).expect("written");
    let command = || {
        let script = format!("ulimit -Sn {} && ulimit -Hn {LIMIT} && exec \"$@\"", LIMIT / 2);
        let mut command = home.command(&["sh", "-c", &script, "sh"]);
        command.arg("--token-file").arg(&tokens).args(["--push-allow", "any"]);
        command
    };
    let silent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&silent);
    let receiver = Receiver::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Reply::Silence
    });
    let server = home.start_as(&mut command());
    let client = |url: &str, token: &str| Client::new(url).expect("the server's own URL").with_token(token);
    let (noisy, quiet) = (client(&server.url, NOISY), client(&server.url, QUIET));
    let target = TargetBody {
        url: Some(format!("http://{}/", receiver.address)),
        timeout_ms: Some(300_000),
        concurrency: Some(10_000),
        ..TargetBody::of_kind(TargetKind::Webhook)
    };
    noisy.put_target("noisy/hooks", &target, None).expect("set");
    for number in 0..TASKS {
        let key = number.to_string();
        noisy.put("noisy/hooks", &key, &PutBody::default(), PutQuery::default(), None).expect("taken");
    }
    wait_for("the share of the webhook to be used up", || {
        (silent.load(Ordering::SeqCst) >= WEBHOOKS_MIN).then_some(())
    });
    let bulk = |quiet: &Client, from: u64| {
        for number in from..from + BULK.0 {
            let payload = PayloadBody::json(format!("\"{}\"", "x".repeat(BULK.1)).into_bytes());
            let put = PutBody { due: Due::At(wall_ms() + HOUR_MS), payload, ..PutBody::default() };
            let key = number.to_string();
            quiet.put("quiet/far", &key, &put, PutQuery::default(), None).expect("the log gets its files");
        }
    };
    bulk(&quiet, 0);
    let (status, said) = ready(&server.url);
    assert_eq!((status, &said["status"]), (200, &"ok".into()), "{said}");
    let open = silent.load(Ordering::SeqCst);
    assert!(open <= LIMIT as usize / 16, "{open} connections for one of the scopes");

    server.kill();
    let server = home.start_as(&mut command());
    let (noisy, quiet) = (client(&server.url, NOISY), client(&server.url, QUIET));
    bulk(&quiet, BULK.0);
    noisy.pause_target("noisy/hooks").expect("paused");
}
