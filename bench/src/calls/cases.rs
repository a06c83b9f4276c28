//! The calls, each with the largest and worst input of its kind.

use std::path::Path;

use anyhow::ensure;

use super::beanstalk::Door;
use super::bodies;
use super::watched::{Take, Watched};
use crate::scratch::Scratch;
use crate::web::WebClient;

/// A server and a connection to it.
pub(super) struct Scene {
    watched: Watched,
    client: WebClient,
    pub(super) rounds: u64,
}

impl Scene {
    pub(super) fn new(rounds: u64) -> anyhow::Result<Self> {
        let watched = Watched::start(None)?;
        let client = WebClient::connect(watched.http)?;
        Ok(Self { watched, client, rounds })
    }

    /// Makes the call once, not measured. Its answer has to have this status.
    pub(super) fn once(
        &mut self,
        (method, path): (&str, &str),
        body: &str,
        status: u16,
    ) -> anyhow::Result<String> {
        let answered = self.client.call(method, path, "", body.as_bytes())?;
        let answer = String::from_utf8_lossy(self.client.answer());
        ensure!(answered == status, "{method} {path} was answered {answered}, not {status}: {answer:.400}");
        Ok(answer.into_owned())
    }

    /// Measures one call.
    pub(super) fn one(&mut self, call: (&str, &str), body: &str, status: u16) -> anyhow::Result<f64> {
        let Self { watched, client, .. } = self;
        let (method, path) = call;
        let mut answered = 0;
        let us = watched.longest_us(|| {
            answered = client.call(method, path, "", body.as_bytes())?;
            Ok(())
        })?;
        let answer = String::from_utf8_lossy(client.answer());
        ensure!(answered == status, "{method} {path} was answered {answered}, not {status}: {answer:.400}");
        Ok(us)
    }

    /// Measures the same call in each round.
    pub(super) fn rounds(
        &mut self,
        take: Take<'_>,
        name: &str,
        call: (&str, &str),
        body: &str,
        status: u16,
    ) -> anyhow::Result<()> {
        for _ in 0..self.rounds {
            take(name, self.one(call, body, status)?);
        }
        Ok(())
    }
}

/// What a call costs that has next to nothing to do, and the description of the server, which is made at the first call for it.
pub(super) fn small(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    for _ in 0..rounds {
        let mut scene = Scene::new(1)?;
        scene.rounds(take, "openapi-first", ("GET", "/openapi.json"), "", 200)?;
        scene.rounds(take, "openapi", ("GET", "/openapi.json"), "", 200)?;
        let put = bodies::put("\"payload\":1");
        scene.once(("PUT", "/v1/queues/q/tasks/k"), &put, 201)?;
        scene.rounds(take, "put-small", ("PUT", "/v1/queues/q/tasks/k"), &put, 200)?;
    }
    Ok(())
}

/// Bodies of 1 MiB, and the tasks that they make.
pub(super) fn one_task(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let mut scene = Scene::new(rounds)?;
    let puts = [
        ("names", bodies::names()),
        ("numbers", bodies::numbers()),
        ("escapes", bodies::escapes()),
        ("base64", bodies::base64()),
        ("timeline", bodies::timeline()),
        ("timeline-bare", bodies::timeline_bare()),
    ];
    for (name, body) in &puts {
        let path = format!("/v1/queues/q/tasks/{name}");
        scene.once(("PUT", &path), body, 201)?;
        scene.rounds(take, &format!("put-{name}"), ("PUT", &path), body, 200)?;
        scene.rounds(take, &format!("get-{name}"), ("GET", &path), "", 200)?;
    }
    let nothing = bodies::nothing_known();
    for (name, method, path) in [
        ("settings", "PUT", "/v1/queues/q"),
        ("lease", "POST", "/v1/queues/q/lease"),
        ("cancel", "POST", "/v1/queues/q/cancel"),
        ("pause", "POST", "/v1/queues/q/pause"),
        ("redrive", "POST", "/v1/queues/q/dead/redrive"),
        ("schedule", "PUT", "/v1/queues/q/schedules/s"),
    ] {
        scene.rounds(take, &format!("refused-{name}"), (method, path), &nothing, 400)?;
    }
    let tokens = bodies::too_many_tokens();
    scene.rounds(take, "refused-tokens", ("POST", "/v1/queues/q/ack"), &tokens, 400)
}

/// Pages of a thousand tasks, leases of as many, their ends, and work on many at once.
pub(super) fn many_tasks(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let mut scene = Scene::new(rounds)?;
    let kinds = [
        ("small", "\"payload\":1".to_owned()),
        ("1k", format!("\"payload\":\"{}\"", "x".repeat(1_000))),
        ("tags", bodies::tags()),
    ];
    for (name, rest) in &kinds {
        let batch =
            bodies::batch(1_000, |index| bodies::put_line(&format!("{index:0>40}"), &bodies::put(rest)));
        scene.once(("POST", &format!("/v1/queues/list-{name}/batch")), &batch, 200)?;
        let path = format!("/v1/queues/list-{name}/tasks?limit=1000");
        scene.rounds(take, &format!("list-{name}"), ("GET", &path), "", 200)?;
    }
    for _ in 0..rounds {
        for (name, rest) in &kinds {
            let batch = bodies::batch(1_000, |index| {
                bodies::put_line(&format!("{index}"), &format!("{{\"delay\":\"0s\",{rest}}}"))
            });
            scene.once(("POST", "/v1/queues/lease/batch"), &batch, 200)?;
            let path = "/v1/queues/lease/lease";
            take(
                &format!("lease-{name}"),
                scene.one(("POST", path), "{\"max\":1000,\"lease\":\"1h\"}", 200)?,
            );
            let tokens = bodies::tokens(&bodies::tokens_of(&String::from_utf8_lossy(scene.client.answer())));
            let end = if *name == "tags" { "nack" } else { "ack" };
            take("extend", scene.one(("POST", "/v1/queues/lease/extend"), &tokens, 200)?);
            take(end, scene.one(("POST", &format!("/v1/queues/lease/{end}")), &tokens, 200)?);
            scene.once(("POST", "/v1/queues/lease/purge"), "{}", 200)?;
        }
        let ids: Vec<String> = (1..=1_000).map(|id| id.to_string()).collect();
        let ids = format!("{{\"ids\":[{}]}}", ids.join(","));
        take("redrive", scene.one(("POST", "/v1/queues/lease/dead/redrive"), &ids, 200)?);
        let batch = bodies::batch(10_000, |index| {
            bodies::put_line(&format!("{index}"), &bodies::put("\"payload\":1"))
        });
        scene.once(("POST", "/v1/queues/bulk/batch"), &batch, 200)?;
        let path = "/v1/queues/bulk/cancel";
        take("cancel-dry", scene.one(("POST", path), "{\"filter\":{},\"dry_run\":true}", 200)?);
        let path = "/v1/queues/bulk/move";
        take("move", scene.one(("POST", path), "{\"filter\":{},\"by\":\"1h\"}", 200)?);
        take("purge", scene.one(("POST", "/v1/queues/bulk/purge"), "{}", 200)?);
    }
    let batch = bodies::batch(9_999, |index| {
        bodies::put_line(&format!("{index}"), &format!("{{\"delay\":\"{index}m\"}}"))
    });
    scene.once(("POST", "/v1/queues/forecast/batch"), &batch, 200)?;
    let path = "/v1/forecast?queue=forecast&bucket=1m&span=10079m";
    scene.rounds(take, "forecast", ("GET", path), "", 200)?;
    scene.rounds(take, "jobs", ("GET", "/v1/jobs"), "", 200)
}

/// Batches: many small lines, a few large ones, and lines that are refused at once.
pub(super) fn batches(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let mut scene = Scene::new(rounds)?;
    let small =
        bodies::batch(10_000, |index| bodies::put_line(&format!("{index}"), &bodies::put("\"payload\":1")));
    let names = bodies::names();
    let large = bodies::batch(8, |index| bodies::put_line(&format!("{index}"), &names[..]));
    let middle = bodies::put(&format!("\"payload\":[{}0]", "0,".repeat(7_500)));
    let middle = bodies::batch(500, |index| bodies::put_line(&format!("{index}"), &middle));
    let refused = bodies::batch(10_000, |index| format!("{{\"no\":{index}}}"));
    let path = ("POST", "/v1/queues/q/batch");
    scene.rounds(take, "batch-small", path, &small, 200)?;
    scene.rounds(take, "batch-15k", path, &middle, 200)?;
    scene.rounds(take, "batch-1m", path, &large, 200)?;
    scene.rounds(take, "batch-refused", path, &refused, 200)?;
    scene.rounds(take, "batch-blank", path, &"\n".repeat(8 << 20), 200)
}

/// Schedules: zones that are read anew, previews, and a page of a thousand.
pub(super) fn schedules(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    /// One for each round, so that each is read from its file.
    const ZONES: [&str; 12] = [
        "Europe/Berlin",
        "America/New_York",
        "Asia/Tokyo",
        "Australia/Sydney",
        "Africa/Cairo",
        "America/Sao_Paulo",
        "Asia/Tehran",
        "Europe/Lisbon",
        "America/St_Johns",
        "Africa/Casablanca",
        "Pacific/Auckland",
        "Asia/Gaza",
    ];
    let mut scene = Scene::new(rounds)?;
    let path = "/v1/queues/q/schedules/rare";
    for (round, zone) in (0..rounds).zip(ZONES) {
        let body = format!("{{\"cron\":\"59 59 23 29 2 *\",\"tz\":\"{zone}\",\"payload\":1}}");
        let status = if round == 0 { 201 } else { 200 };
        take("schedule-put", scene.one(("PUT", path), &body, status)?);
    }
    let preview = format!("{path}/preview?count=1000");
    scene.rounds(take, "preview-rare", ("GET", &preview), "", 200)?;
    let path = "/v1/queues/q/schedules/often";
    scene.once(("PUT", path), "{\"cron\":\"* * * * * *\",\"tz\":\"Europe/Berlin\",\"payload\":1}", 201)?;
    scene.rounds(take, "preview-often", ("GET", &format!("{path}/preview?count=1000")), "", 200)?;
    let body = format!("{{\"every\":\"1d\",\"payload\":\"{}\"}}", "x".repeat(14_000));
    for index in 0..1_000 {
        scene.once(("PUT", &format!("/v1/queues/many/schedules/{index}")), &body, 201)?;
    }
    let path = "/v1/queues/many/schedules?limit=1000";
    scene.rounds(take, "schedules", ("GET", path), "", 200)?;
    scene.rounds(take, "schedules-all", ("GET", "/v1/schedules?limit=1000"), "", 200)
}

/// Very many queues.
pub(super) fn queues(rounds: u64, queues: usize, take: Take<'_>) -> anyhow::Result<()> {
    let mut scene = Scene::new(rounds)?;
    scene.watched.fill_queues(queues)?;
    scene.rounds(take, "queues", ("GET", "/v1/queues"), "", 200)?;
    scene.rounds(take, "metrics", ("GET", "/metrics"), "", 200)?;
    let mut door = Door::connect(&scene.watched)?;
    for _ in 0..rounds {
        let us = scene.watched.longest_us(|| door.ask("list-tubes\r\n", 1))?;
        take("list-tubes", us);
        take("stats", scene.watched.longest_us(|| door.ask("stats\r\n", 1))?);
    }
    Ok(())
}

/// A call with the last of very many tokens.
pub(super) fn tokens(rounds: u64, tokens: usize, base: &Path, take: Take<'_>) -> anyhow::Result<()> {
    let scratch = Scratch::new(base, &format!("tickwheel-bench-calls-{}", std::process::id()))?;
    let path = scratch.path().join("tokens");
    let token = |index: usize| format!("{index:0>40}");
    let lines: Vec<String> = (0..tokens).map(|index| token(index) + " rights=read\n").collect();
    std::fs::write(&path, lines.concat())?;
    let watched = Watched::start(Some(&path))?;
    let mut client = WebClient::connect(watched.http)?;
    let header = format!("authorization: Bearer {}\r\n", token(tokens - 1));
    for _ in 0..rounds {
        let us = watched.longest_us(|| {
            let status = client.call("GET", "/v1/queues/q/tasks/k", &header, b"")?;
            ensure!(status == 404, "a task that is not there was answered {status}");
            Ok(())
        })?;
        take("token", us);
    }
    Ok(())
}
