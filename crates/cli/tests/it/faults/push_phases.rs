//! The server is killed at each phase of a delivery to Redis: before each piece of the talk with the broker, and as soon as the broker has the
//! message.

use std::process::Command;

use tickwheel_api::{PutBody, PutQuery, TargetBody, TargetKind};
use tickwheel_client::blocking::Client;

use crate::faults::needs::{Need, has, say};
use crate::faults::push::{live, until_empty};
use crate::faults::redis::Redis;
use crate::faults::report::wait_for;
use crate::faults::server::{Home, Server};
use crate::phases::{From, Phases};

const QUEUE: &str = "pushed";
const STREAM: &str = "due";

/// The moment at which the server is killed.
#[derive(Copy, Clone, Debug)]
enum Moment {
    /// The server or the broker has sent this piece, counted from 0, and the other side does not get it.
    Piece(usize),
    /// The broker has the message, and its confirm is on its way, or the end of the task.
    Written,
}

#[test]
fn no_phase_loses_a_message_and_only_a_lost_confirm_sends_it_again() {
    if !has("kills at each phase of a push", &[Need::Program("redis-server")]) {
        return;
    }
    let mut lost = Vec::new();
    while let Some(from) = killed_at(Moment::Piece(lost.len())) {
        lost.push(from);
    }
    assert!(lost.contains(&From::Client) && lost.contains(&From::Server), "{lost:?}");
    killed_at(Moment::Written);
    say(&format!("killed before {} pieces, and with the message in the broker", lost.len()));
}

/// Puts a task, kills the server at the moment, starts it again, and waits until the task is done. Returns the side whose piece was lost; `None`:
/// there was no such piece.
fn killed_at(moment: Moment) -> Option<From> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = Home::below(directory.path());
    let mut redis = Redis::stopped();
    redis.start();
    let nth = match moment {
        Moment::Piece(nth) => nth,
        Moment::Written => usize::MAX,
    };
    let phases = Phases::start(redis.address(), nth);
    phases.count_from_now();
    let config = directory.path().join("tickwheel.toml");
    let connection =
        format!("[push.connections.main]\nkind = \"redis\"\naddresses = [\"{}\"]\n", phases.address());
    std::fs::write(&config, connection).expect("a file");
    let command = || -> Command {
        let mut command = home.command(&[]);
        command.arg("--config").arg(&config);
        command
    };

    let server = home.start_as(&mut command());
    put(&server);
    let is_done = |server: &Server| {
        let client = Client::new(&server.url).expect("the server's own URL");
        live(&client.queue(QUEUE).expect("a healthy server").counts) == 0
    };
    let stopped = wait_for("the moment", || match moment {
        Moment::Piece(_) => phases.stopped().map(Some).or_else(|| is_done(&server).then_some(None)),
        Moment::Written => (redis.entries(STREAM).len() == 1).then_some(None),
    });
    assert_no_attempt_is_used_up(&server, moment);
    server.kill();
    phases.go_on();

    let server = home.start_as(&mut command());
    until_empty(&server, QUEUE);
    assert_no_attempt_is_used_up(&server, moment);
    let entries = redis.entries(STREAM).len();
    let may_come_twice = matches!(moment, Moment::Written) || stopped == Some(From::Server);
    assert!((1..=1 + usize::from(may_come_twice)).contains(&entries), "{moment:?}: {entries} entries");
    stopped
}

/// The counts are those since the start of this server.
fn assert_no_attempt_is_used_up(server: &Server, moment: Moment) {
    let client = Client::new(&server.url).expect("the server's own URL");
    let view = client.target(QUEUE).expect("a target");
    assert_eq!(view.attempts.failed + view.attempts.dead, 0, "{moment:?}: {view:?}");
}

fn put(server: &Server) {
    let client = Client::new(&server.url).expect("the server's own URL");
    let (connection, stream) = (Some("main".to_owned()), Some(STREAM.to_owned()));
    let target = TargetBody { connection, stream, ..TargetBody::of_kind(TargetKind::Redis) };
    client.put_target(QUEUE, &target, None).expect("a target");
    client.put(QUEUE, "order:1", &PutBody::default(), PutQuery::default(), None).expect("a put");
}
