//! `POST /v1/import`: lines of an export, streamed in.

use std::pin::pin;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use tickwheel_api::{
    BATCH_CONTENT_TYPE, BadRequest, ExportLine, ExportTask, ImportCounts, ImportEnd, ImportQuery, ImportRow,
    Problem,
};
use tickwheel_queue::{Due, Put, QueueName, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::{LONG_BYTES, aside};
use crate::doors::http::answer;
use crate::doors::http::body::BODY_BYTES_MAX;
use crate::doors::http::call::Call;
use crate::doors::http::lines::Line;
use crate::doors::http::paced_lines::{Form, LINES_TIME_MAX, PacedLines};
use crate::doors::http::problem;
use crate::doors::http::routes::handlers;
use crate::doors::http::rows::{Row, Rows};
use crate::service::app::App;
use crate::service::caller::Caller;
use crate::transfer::{Importer, Stop};
use crate::translate;

handlers! {
    Import => import,
}

/// The longest line. It is longer than the body of a put, because the payload is in base64 and a task has further
/// members.
const LINE_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// A longer file needs several requests, each with the header as its first line.
const FORM: Form = Form { name: "import", header_lines: 1, line_bytes_max: LINE_BYTES_MAX };

/// `POST`: NDJSON in. The answer has a line for each task that was not simply added, and a last line. All lines
/// before a refused one are stored, and no line after it.
///
/// As in a batch, the lines run on a task of their own. A request that sends too little gives its permit to a
/// waiting one.
async fn import(call: Call) -> Result<Response, Refusal> {
    let query = ImportQuery::parse(call.query())?;
    let Call { caller, parts, body, .. } = call;
    if caller.app().admission.drain().is_on() {
        return Err(Problem::server_draining().into());
    }
    let lines = PacedLines::begin(&parts.headers, body, &caller, FORM).await?;
    let (rows, results) = mpsc::unbounded_channel();
    let import = Import { caller, query, rows, importer: None };
    tokio::spawn(import.run(lines));
    Ok(answer::of(Body::new(Rows::new(results)), BATCH_CONTENT_TYPE))
}

struct Import {
    caller: Caller,
    query: ImportQuery,
    rows: mpsc::UnboundedSender<Row>,
    /// `None`: the header has not arrived yet.
    importer: Option<Importer>,
}

impl Import {
    async fn run(mut self, mut lines: PacedLines) {
        let rows = self.rows.clone();
        let mut late = pin!(sleep(LINES_TIME_MAX));
        let stopped = tokio::select! {
            stopped = self.all(&mut lines) => stopped,
            // The client has left: lines that were not sent to the queue yet are not applied.
            () = rows.closed() => return,
            () = &mut late => {
                let problem = problem::body_too_slow(LINES_TIME_MAX);
                Err(self.ended(problem).await)
            }
        };
        let has_rest = stopped.is_err();
        self.send_rows();
        self.send_end(stopped);
        lines.end(has_rest, &rows, late, &self.caller).await;
    }

    async fn all(&mut self, lines: &mut PacedLines) -> Result<(), Stop> {
        loop {
            let line = match lines.next().await {
                Err(problem) => return Err(self.ended(problem).await),
                Ok(None) => return self.finish().await,
                Ok(Some(line)) => line,
            };
            let begun = Instant::now();
            lines.charge(&self.caller, &line).await;
            self.line(lines.number(), line).await?;
            if !self.query.quiet {
                self.send_rows();
            }
            lines.worked_since(begun);
        }
    }

    /// The number, in its file, of the line with this number in its request. The header has none in the file.
    fn in_file(&self, number: u64) -> u64 {
        (self.query.first_line + number).saturating_sub(2)
    }

    /// Ends the import for a fault of the request, not of a line. The taken lines are stored. A line that was read and
    /// not taken yet is the next one.
    async fn ended(&mut self, problem: Problem) -> Stop {
        let Some(importer) = &mut self.importer else {
            return Stop { line: self.query.first_line, problem: problem.into() };
        };
        match importer.finish().await {
            Ok(()) => Stop { line: importer.next_line(), problem: problem.into() },
            Err(stop) => stop,
        }
    }

    async fn finish(&mut self) -> Result<(), Stop> {
        match &mut self.importer {
            Some(importer) => importer.finish().await,
            None => Err(Stop { line: 1, problem: Problem::bad_request(&no_header()).at_line(1).into() }),
        }
    }

    async fn line(&mut self, number: u64, line: Line) -> Result<(), Stop> {
        let read = match line {
            Line::TooLong => Err(Problem::body_too_large(LINE_BYTES_MAX as u64).into()),
            Line::Text(text) => parse(Arc::clone(self.caller.app()), text).await,
        };
        if self.importer.is_none() {
            return self.header(read);
        }
        let number = self.in_file(number);
        let importer = self.importer.as_mut().expect("it was just looked at");
        let allowed = read.and_then(|line| allowed(&self.caller, &line).map(|()| line));
        match allowed {
            Ok(ExportLine::Header(_)) => {
                let hint = "a file has one header, its first line; send each file by itself";
                let refused = BadRequest::body("is a second header", hint);
                importer.refuse(number, Problem::bad_request(&refused).into()).await
            }
            Ok(line @ ExportLine::Queue(_)) => {
                // A target with an order needs the settings that it found.
                let _one_by_one = self.caller.app().admission.settings().lock().await;
                importer.take(number, line).await
            }
            Ok(line) => importer.take(number, line).await,
            Err(problem) => importer.refuse(number, problem).await,
        }
    }

    /// Reads the header, the first line of each request.
    fn header(&mut self, read: Result<ExportLine, Box<Problem>>) -> Result<(), Stop> {
        let refused = |problem: Box<Problem>| Stop { line: 1, problem: problem.at_line(1).into() };
        let ExportLine::Header(header) = read.map_err(refused)? else {
            return Err(refused(Problem::bad_request(&no_header()).into()));
        };
        self.importer = Some(self.caller.importer(&self.query, &header).map_err(refused)?);
        Ok(())
    }

    fn send_rows(&mut self) {
        let rows = self.importer.as_mut().map(Importer::rows).unwrap_or_default();
        for row in rows.into_iter().filter(|_| !self.query.quiet) {
            // `run` notices it if the client has left.
            let _sent = self.rows.send(Row::Result(ImportRow::Line(row).to_line()));
        }
    }

    fn send_end(&self, stopped: Result<(), Stop>) {
        let (next_line, problem) = match stopped {
            Ok(()) => (self.importer.as_ref().map_or(self.query.first_line, Importer::next_line), None),
            Err(Stop { line, problem }) => (line.max(self.query.first_line), Some(problem)),
        };
        if let Some(kind) = problem.as_ref().and_then(|problem| problem.kind()) {
            self.caller.app().observed.refusals().count(kind);
        }
        let counts = self.importer.as_ref().map_or_else(ImportCounts::default, Importer::counts);
        let end = ImportRow::End(Box::new(ImportEnd {
            next_line,
            counts,
            problem: problem.map(|problem| *problem),
        }));
        let _sent = self.rows.send(Row::Result(end.to_line()));
    }
}

/// Parses a line. A long line is parsed on another thread.
async fn parse(app: Arc<App>, text: Vec<u8>) -> Result<ExportLine, Box<Problem>> {
    let read = if *app.admission.lax_json() { ExportLine::parse } else { ExportLine::parse_portable };
    let line = match text.len() {
        ..=LONG_BYTES => read(&text),
        _ => aside(move || read(&text)).await?,
    };
    line.map_err(|refused| Problem::bad_request(&refused).into())
}

fn no_header() -> BadRequest {
    let hint = "the first line of an export is its header, `{\"export\": {...}}`; send it in front of each part of the file";
    BadRequest::body("is no header of an export", hint)
}

/// Whether the caller may write this line.
fn allowed(caller: &Caller, line: &ExportLine) -> Result<(), Box<Problem>> {
    let queue = match line {
        ExportLine::Task(task) => {
            admit(caller, task)?;
            &task.queue
        }
        ExportLine::Queue(queue) => &queue.queue,
        ExportLine::Schedule(schedule) => &schedule.queue,
        ExportLine::Header(_) | ExportLine::Cursor(_) | ExportLine::End(_) => return Ok(()),
    };
    let name = QueueName::new(queue).map_err(|error| translate::name_refused(&error))?;
    Ok(caller.may(Right::Admin, &name)?)
}

/// Whether the server takes new tasks, and the quota of the token allows this one.
fn admit(caller: &Caller, task: &ExportTask) -> Result<(), Box<Problem>> {
    let name = QueueName::new(&task.queue).map_err(|error| translate::name_refused(&error))?;
    let due = Timestamp::from_ms(task.due_at_ms).filter(|_| task.death.is_none());
    let mut put = Put { due: due.map_or(Due::Now, Due::At), ..Put::without_key(&name) };
    caller.admit(&mut put).map_err(Problem::from)?;
    if put.may_add { Ok(()) } else { Err(Problem::token_full().into()) }
}
