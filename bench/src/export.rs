//! Export and import over HTTP beside plain lists and plain batches: tasks in a second, of one client with one connection, in rounds that alternate.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::report::Report;
use crate::scratch::Scratch;
use crate::web::{WebClient, WebServer};

/// The options of this measurement.
#[derive(clap::Args, Debug)]
pub(crate) struct ExportArguments {
    /// Where the data goes, on the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = "target")]
    dir: PathBuf,
    /// Rounds. Each fills two new directories and reads each of them twice.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Far tasks in a directory.
    #[arg(long, default_value_t = 200_000)]
    tasks: u64,
    /// Bytes of a payload.
    #[arg(long, default_value_t = 200)]
    payload_bytes: usize,
}

/// Lines in a request, of a batch and of an import: as many as a server takes.
const LINES: u64 = 10_000;
/// Tasks on a page of a list: as many as a server gives.
const PAGE: usize = 1_000;
const QUEUE: &str = "/v1/queues/bench";

/// Runs the rounds.
pub(crate) fn run(arguments: &ExportArguments) -> anyhow::Result<Report> {
    let scratch = Scratch::new(&arguments.dir, "bench-export")?;
    let mut report = Report::default();
    for number in 0..arguments.rounds {
        let round = round(arguments, scratch.path(), number % 2 == 1)?;
        let mut add = |kind: &str, metric: &str, figure| {
            report.add("tickwheel", kind, arguments.tasks, metric, figure);
        };
        for (kind, rate) in
            [("list", round.list), ("export", round.export), ("batch", round.batch), ("import", round.import)]
        {
            add(kind, "tasks_s", rate);
        }
        let (export, import) = (round.export / round.list, round.import / round.batch);
        add("export-to-list", "ratio", export);
        add("import-to-batch", "ratio", import);
        eprintln!("round {number}: export {export:.2} of a list, import {import:.2} of a batch");
    }
    Ok(report)
}

/// Tasks in a second.
#[derive(Debug, Default)]
struct Round {
    batch: f64,
    import: f64,
    list: f64,
    export: f64,
}

/// One round. `turned` measures in the opposite order, which takes turns.
fn round(arguments: &ExportArguments, dir: &Path, turned: bool) -> anyhow::Result<Round> {
    let (tasks, mut round) = (arguments.tasks, Round::default());
    let mut sides = [("batch", false), ("import", true)];
    if turned {
        sides.reverse();
    }
    for (name, imports) in sides {
        let data = dir.join(name);
        let server = WebServer::start(&data)?;
        let mut client = WebClient::connect(server.address)?;
        let filled = fill(&mut client, arguments, imports)?;
        *(if imports { &mut round.import } else { &mut round.batch }) = filled;
        let mut reads = [false, true];
        if turned {
            reads.reverse();
        }
        // The one that was filled by an import is read as well, so that neither reads only what the other has warmed.
        for exports in reads {
            let (read, span) = if exports { export(&mut client)? } else { list(&mut client)? };
            ensure!(read == tasks, "{read} of {tasks} tasks were read");
            let rate = tasks as f64 / span.as_secs_f64();
            // The mean of both directories.
            *(if exports { &mut round.export } else { &mut round.list }) += rate / 2.0;
        }
        drop((client, server));
        std::fs::remove_dir_all(&data).context("remove a directory")?;
    }
    Ok(round)
}

/// Fills a directory; tasks in a second of waiting for answers. What this client does with them is not measured.
fn fill(client: &mut WebClient, arguments: &ExportArguments, imports: bool) -> anyhow::Result<f64> {
    let (tasks, mut span) = (arguments.tasks, Duration::ZERO);
    let payload = "x".repeat(arguments.payload_bytes.saturating_sub(2));
    for from in (0..tasks).step_by(usize::try_from(LINES)?) {
        let to = tasks.min(from + LINES);
        let lines =
            if imports { import_lines(from, to, tasks, &payload) } else { batch_lines(from, to, &payload) };
        let begun = Instant::now();
        if imports {
            let answer = client.post("/v1/import?quiet=true", lines.as_bytes())?;
            span += begun.elapsed();
            let added = format!("\"added\":{}", to - from);
            ensure!(contains(answer, added.as_bytes()), "not all of an import was taken");
        } else {
            let answer = client.post(&format!("{QUEUE}/batch"), lines.as_bytes())?;
            span += begun.elapsed();
            let taken = answer.split(|byte| *byte == b'\n').filter(|line| contains(line, b"\"status\":201"));
            ensure!(taken.count() as u64 == to - from, "not all of a batch was taken");
        }
    }
    Ok(tasks as f64 / span.as_secs_f64())
}

fn batch_lines(from: u64, to: u64, payload: &str) -> String {
    let line = |n| {
        format!(
            "{{\"op\":\"put\",\"key\":\"order:{n}\",\"at\":\"2090-01-01T00:00:00.000Z\",\"payload\":\"{payload}\"}}\n"
        )
    };
    (from..to).map(line).collect()
}

fn import_lines(from: u64, to: u64, tasks: u64, payload: &str) -> String {
    let line = |n| {
        format!(
            "{{\"task\":{{\"queue\":\"bench\",\"key\":\"order:{n}\",\"id\":{},\"due_at\":\"2090-01-01T00:00:00.000Z\",\"put_at\":\"2020-01-01T00:00:00.000Z\",\"state\":\"scheduled\",\"payload\":\"{payload}\"}}}}\n",
            n + 1
        )
    };
    let head = format!(
        "{{\"export\":{{\"format\":1,\"at\":\"2030-01-01T00:00:00.000Z\",\"release\":\"0\",\"ids_below\":{}}}}}\n",
        tasks + 1
    );
    std::iter::once(head).chain((from..to).map(line)).collect()
}

/// Reads all tasks page by page; how many, and how long it took to get them.
fn list(client: &mut WebClient) -> anyhow::Result<(u64, Duration)> {
    let (mut read, mut span, mut cursor) = (0, Duration::ZERO, String::new());
    loop {
        let begun = Instant::now();
        let page = client.get(&format!("{QUEUE}/tasks?limit={PAGE}{cursor}"))?;
        span += begun.elapsed();
        read += page.windows(6).filter(|window| *window == b"\"key\":").count() as u64;
        let Some(next) = after(page, b"\"next_cursor\":\"") else { return Ok((read, span)) };
        cursor = format!("&cursor={next}");
    }
}

/// Reads an export; how many tasks its end counts, and how long it took to get them.
fn export(client: &mut WebClient) -> anyhow::Result<(u64, Duration)> {
    let begun = Instant::now();
    let lines = client.get("/v1/export")?;
    let span = begun.elapsed();
    let end = lines.len().saturating_sub(200);
    let count = after(&lines[end..], b"\"tasks\":").context("the export has no end")?;
    Ok((count.parse().with_context(|| format!("`{count}` is no number"))?, span))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the text after `part`, up to a quote, a comma or a brace.
fn after(text: &[u8], part: &[u8]) -> Option<String> {
    let at = text.windows(part.len()).position(|window| window == part)? + part.len();
    let text = text[at..].split(|byte| matches!(byte, b'"' | b',' | b'}')).next()?;
    String::from_utf8(text.to_vec()).ok()
}
