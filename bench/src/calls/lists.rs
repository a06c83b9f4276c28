//! Lists: of what is dead, of what a filter finds, of jobs.

use anyhow::ensure;

use super::bodies;
use super::cases::Scene;
use super::watched::Take;

/// Tasks that a filter has to look at, more than a call changes itself.
const TASKS: usize = 20_000;
/// As many jobs that are over can be looked at.
const JOBS: usize = 100;

/// All of them.
pub(super) fn lists(rounds: u64, take: Take<'_>) -> anyhow::Result<()> {
    let mut scene = Scene::new(rounds)?;
    filtered(&mut scene, take)?;
    dead(&mut scene, take)?;
    jobs(&mut scene, take)
}

/// One task in twenty has the tag, and all have the most tags there may be.
fn filtered(scene: &mut Scene, take: Take<'_>) -> anyhow::Result<()> {
    let tags = bodies::tags();
    for part in 0..TASKS / 5_000 {
        let batch = bodies::batch(5_000, |index| {
            let index = part * 5_000 + index;
            let tags = if index % 20 == 0 { &tags } else { "\"tags\":[]" };
            bodies::put_line(&format!("{index}"), &bodies::put(tags))
        });
        scene.once(("POST", "/v1/queues/filtered/batch"), &batch, 200)?;
    }
    let path = format!("/v1/queues/filtered/tasks?limit=1000&tag={:0>120}", 31);
    scene.rounds(take, "list-tagged", ("GET", &path), "", 200)?;
    let path = "/v1/queues/filtered/tasks?limit=1000&state=leased";
    scene.rounds(take, "list-none", ("GET", path), "", 200)
}

/// A thousand dead tasks with the reasons of their failures.
fn dead(scene: &mut Scene, take: Take<'_>) -> anyhow::Result<()> {
    let batch = bodies::batch(1_000, |index| {
        let once = format!("{{\"delay\":\"0s\",\"retry\":{{\"max_attempts\":1}},{}}}", bodies::tags());
        bodies::put_line(&format!("{index}"), &once)
    });
    scene.once(("POST", "/v1/queues/dead/batch"), &batch, 200)?;
    let lease = "{\"max\":1000,\"lease\":\"1h\"}";
    let leased = scene.once(("POST", "/v1/queues/dead/lease"), lease, 200)?;
    let tokens = bodies::tokens_of(&leased);
    // The last ones may be due a millisecond later.
    ensure!(tokens.len() > 900, "{} tasks were leased", tokens.len());
    for tokens in tokens.chunks(500) {
        let tokens = bodies::tokens(tokens);
        let nack = format!("{},\"reason\":\"{}\"}}", &tokens[..tokens.len() - 1], "x".repeat(1_000));
        scene.once(("POST", "/v1/queues/dead/nack"), &nack, 200)?;
    }
    scene.rounds(take, "list-dead", ("GET", "/v1/queues/dead/dead?limit=1000"), "", 200)?;
    let listed = scene.once(("GET", "/v1/queues/dead/dead?limit=1000"), "", 200)?;
    ensure!(
        listed.matches("\"reason\"").count() >= tokens.len(),
        "they are dead and their failures are shown"
    );
    Ok(())
}

/// As many jobs as there may be.
fn jobs(scene: &mut Scene, take: Take<'_>) -> anyhow::Result<()> {
    for _ in 0..JOBS {
        let body = "{\"filter\":{},\"dry_run\":true}";
        scene.once(("POST", "/v1/queues/filtered/cancel"), body, 202)?;
        while scene.once(("GET", "/v1/jobs"), "", 200)?.contains("\"state\":\"running\"") {}
    }
    scene.rounds(take, "jobs-all", ("GET", "/v1/jobs"), "", 200)
}
