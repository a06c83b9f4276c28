//! `tickwheel export`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tickwheel_api::{ExportEnd, ExportQuery, Problem};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;
use tickwheel_queue::Queue;
use tickwheel_server::transfer::Exporter;

use crate::output::{STDOUT, say, stdout};
use crate::portable::blocks::Blocks;
use crate::portable::database;
use crate::portable::directory;
use crate::portable::progress::Progress;
use crate::portable::reading::told;
use crate::portable::unfinished::{self, Unfinished};
use crate::remote::Remote;
use crate::values;

/// The number of consecutive tries without progress after which the export fails.
const TRIES: u32 = 3;
/// The wait before the next try.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Write all tasks, dead tasks, settings and schedules as lines of JSON
///
/// `tickwheel import` reads the lines, on this machine or on another. Leases are not exported: a leased task is exported as a live task.
/// Ended tasks are not exported. The file is called FILE.unfinished until it is complete. Each page of tasks shows one moment. A task that
/// changes during the export may be in the file twice or not at all, so stop workers and producers before you move to another machine.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel export -o all.ndjson                        all that the server has
  tickwheel export -o all.ndjson --resume               go on with one that was interrupted
  tickwheel export --queue close | gzip > close.ndjson.gz
  tickwheel export --data ./tickwheel-data -o all.ndjson    without a server
  tickwheel export --postgres postgres://tickwheel@db/tickwheel -o all.ndjson")]
pub(crate) struct Export {
    /// Where the lines go: a file, or - for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Export only the tasks, settings and schedules of this queue
    #[arg(long, value_name = "QUEUE", value_parser = values::queue)]
    queue: Option<String>,
    /// Continue FILE.unfinished after its last complete page
    #[arg(long)]
    resume: bool,
    /// Export this data directory; no server may use it meanwhile
    #[arg(long, value_name = "DIR", group = "local")]
    data: Option<PathBuf>,
    /// Export the tasks in this PostgreSQL; no server may use it meanwhile
    ///
    /// Parts that the URL leaves out come from the variables of psql, such as PGPASSWORD, and from ~/.pgpass
    #[arg(long, value_name = "URL", group = "local")]
    postgres: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

impl Export {
    /// Writes the lines.
    ///
    /// # Errors
    /// The source or the target fails.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let is_stdout = self.output.as_os_str() == "-";
        if is_stdout && self.resume {
            bail!("--resume goes on with a file: name it with --output");
        }
        let (end, progress) = if is_stdout {
            let (end, progress, mut out) = self.export(stdout(), None)?;
            out.flush().context(STDOUT)?;
            (end, progress)
        } else {
            let (file, cursor) = match self.resume {
                true => Unfinished::resume(&self.output).map(|(file, cursor)| (file, Some(cursor)))?,
                false => (Unfinished::create(&self.output)?, None),
            };
            let name = file.name().display().to_string();
            let (end, progress, file) = match self.export(file, cursor) {
                Ok(done) => done,
                Err(error) if unfinished::remove_empty(&self.output)? => return Err(error),
                Err(error) => return Err(error.context(format!("{name} is not whole; go on with --resume"))),
            };
            file.finish()?;
            (end, progress)
        };
        say(&format!("{}; the file has {}", progress, told(end)));
        Ok(ExitCode::SUCCESS)
    }

    fn export<W: Write>(&self, out: W, cursor: Option<String>) -> Result<(ExportEnd, String, W)> {
        let mut progress = Progress::new("tasks exported");
        let mut blocks = Blocks::new(out, cursor);
        match (&self.data, &self.postgres) {
            (Some(directory), _) => {
                self.copy_queue(&directory::open(directory)?, &mut blocks, &mut progress)?;
            }
            (None, Some(url)) => self.copy_queue(&database::open(url)?, &mut blocks, &mut progress)?,
            (None, None) => self.copy_server(&self.remote.client()?, &mut blocks, &mut progress)?,
        }
        let end = blocks.end().context("the export has no end")?;
        let told = progress.told(blocks.tasks());
        Ok((end, told, blocks.finish()?))
    }

    fn query(&self, cursor: Option<&str>) -> ExportQuery {
        ExportQuery { queue: self.queue.clone(), cursor: cursor.map(str::to_owned) }
    }

    /// Copies the lines of a queue without a server, and closes the queue.
    fn copy_queue<W: Write>(
        &self,
        queue: &Queue,
        blocks: &mut Blocks<W>,
        progress: &mut Progress,
    ) -> Result<()> {
        let told = |problem: Box<Problem>| anyhow::anyhow!(problem.detail);
        let exporter = Exporter::new(queue.clone(), &self.query(blocks.cursor())).map_err(told);
        let written = exporter.and_then(|mut exporter| {
            directory::wait_for(async {
                while let Some(lines) = exporter.next().await.map_err(told)? {
                    blocks.push(&lines)?;
                    progress.at(blocks.tasks());
                }
                anyhow::Ok(())
            })?
        });
        queue.close();
        written
    }

    /// Copies the lines of a server's answer. If the answer breaks off, the function asks the server again, from the last complete page on.
    fn copy_server<W: Write>(
        &self,
        client: &Client,
        blocks: &mut Blocks<W>,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut tries = 0;
        loop {
            let before = blocks.cursor().map(str::to_owned);
            let broken = match client.export(&self.query(before.as_deref())) {
                Ok(mut answer) => read_to_end(&mut answer, blocks, progress)?,
                // The server would refuse the same first request, or the same bad cursor, again.
                Err(error) if before.is_none() || is_for_good(&error) => return Err(error.into()),
                Err(error) => Some(anyhow::Error::from(error)),
            };
            if blocks.end().is_some() {
                return Ok(());
            }
            tries = if blocks.cursor() == before.as_deref() { tries + 1 } else { 0 };
            let broken = broken.unwrap_or_else(|| anyhow::anyhow!("the answer broke off"));
            if tries >= TRIES || blocks.cursor().is_none() {
                return Err(broken);
            }
            say(&format!("{broken:#}; going on behind {} tasks", blocks.tasks()));
            blocks.drop_rest();
            std::thread::sleep(TRY_AGAIN);
        }
    }
}

/// Whether the server would refuse the same request later, too.
fn is_for_good(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| matches!(problem.status, 400..=428 | 430..=499))
}

/// Copies one answer. Returns the error that broke it off, if there was one.
fn read_to_end<W: Write>(
    answer: &mut impl std::io::Read,
    blocks: &mut Blocks<W>,
    progress: &mut Progress,
) -> Result<Option<anyhow::Error>> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match answer.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(read) => blocks.push(&piece[..read])?,
            Err(error) => return Ok(Some(anyhow::Error::from(error).context("the answer broke off"))),
        }
        progress.at(blocks.tasks());
    }
}
