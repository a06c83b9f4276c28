//! `tickwheel-bench`: our figure, the limit of the machine and the ratio of the two, from one run.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its terminal")]

mod backup;
mod beanstalk;
mod calls;
mod count;
mod cpu;
mod embedded;
mod export;
mod figures;
mod goal;
mod http;
mod machine;
mod page;
mod plot;
mod postgres;
mod push;
mod random;
mod report;
mod rss;
mod sample;
mod scratch;
mod shards;
mod slope;
mod store;
mod table;
mod timer;
mod versions;
mod web;
mod wheel;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// Measures Tickwheel beside the limit of the machine it runs on. CSV on standard output, talk on standard error.
#[derive(Parser, Debug)]
#[command(name = "tickwheel-bench")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand, Debug)]
enum Bench {
    /// Durable tasks beside the disk's own syncs and a peer: puts, cancels, drains, look-ups, memory, bytes written, reopening.
    Store(store::StoreArguments),
    /// The wheel beside its peers and the limits: processor time of this thread for each operation.
    Wheel(wheel::WheelArguments),
    /// Timers that run, beside their peers: contention, lateness, idle threads, memory.
    Timer(timer::TimerArguments),
    /// The HTTP rim beside the queue alone: processor time for each task in batches, and how late tasks reach workers.
    Http(http::HttpArguments),
    /// The door for clients of beanstalkd beside beanstalkd: throughput, lateness, memory, restarts, wake-ups.
    Beanstalk(beanstalk::BeanstalkArguments),
    /// Durable puts beside a backup: the latency of the slow ones, in rounds that alternate with quiet ones.
    Backup(backup::BackupArguments),
    /// Exports beside lists and imports beside batches, over HTTP: tasks in a second.
    Export(export::ExportArguments),
    /// Targets of queues beside the bare client of each broker: messages delivered in a second, lateness, and a target that is down.
    Push(push::PushArguments),
    /// A queue on PostgreSQL beside the database alone and a table of jobs: puts, due to acked, one put, a snapshot held open.
    Postgres(postgres::PostgresArguments),
    /// Two shards beside one in a process, on a disk: tasks in batches, put, and due to acked, with the time of the load apart.
    Shards(shards::ShardsArguments),
    /// How long each call keeps a thread that serves others, with its largest and worst input: processor time between two turns of a probe.
    Calls(calls::CallsArguments),
    /// The tables of a page, in Markdown, from the CSV of a run.
    Table(TableArguments),
    /// Cost against the number of timers, as SVG, from the CSV of a run.
    Plot {
        /// The CSV.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// One sample of `wheel`, which starts this program again for each.
    #[command(hide = true)]
    WheelSample(wheel::SampleArguments),
    /// One sample of `timer`, likewise.
    #[command(hide = true)]
    TimerSample(timer::SampleArguments),
    /// One store of `store`, likewise.
    #[command(hide = true)]
    StoreSample(store::SampleArguments),
    /// One process of `http`.
    #[command(hide = true, subcommand)]
    HttpPart(http::Part),
    /// The receiver of the webhooks of `push`.
    #[command(hide = true)]
    PushReceiver {
        /// Where it listens.
        address: std::net::SocketAddr,
    },
    /// A store that is filled until its process is killed.
    #[command(hide = true)]
    StoreFill(store::FillArguments),
}

#[derive(clap::Args, Debug)]
struct TableArguments {
    /// The CSV.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Put those of this page into it, in the place of the old ones, instead of printing all.
    #[arg(long, value_name = "PAGE")]
    into: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().bench {
        Bench::Store(arguments) => measured(|| store::run(&arguments)),
        Bench::Wheel(arguments) => measured(|| wheel::run(&arguments)),
        Bench::Timer(arguments) => measured(|| timer::run(&arguments)),
        Bench::Http(arguments) => measured(|| http::run(&arguments)),
        Bench::Beanstalk(arguments) => measured(|| beanstalk::run(&arguments)),
        Bench::Backup(arguments) => measured(|| backup::run(&arguments)),
        Bench::Export(arguments) => measured(|| export::run(&arguments)),
        Bench::Push(arguments) => measured(|| push::run(&arguments)),
        Bench::Postgres(arguments) => measured(|| postgres::run(&arguments)),
        Bench::Shards(arguments) => measured(|| shards::run(&arguments)),
        Bench::Calls(arguments) => measured(|| calls::run(&arguments)),
        Bench::PushReceiver { address } => push::receive(address),
        Bench::HttpPart(part) => http::part(&part),
        Bench::Table(arguments) => {
            let figures = figures::Figures::load(&arguments.files)?;
            match arguments.into {
                None => print!("{}", table::markdown(&figures, &page::PAGES)),
                Some(path) => {
                    let page = page::of_file(&path)?;
                    let text =
                        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
                    let tables = table::markdown(&figures, std::slice::from_ref(page));
                    std::fs::write(&path, table::put_into(&text, &tables)?)
                        .with_context(|| format!("write {}", path.display()))?;
                }
            }
            Ok(())
        }
        Bench::Plot { files } => {
            print!("{}", plot::svg(&figures::Figures::load(&files)?)?);
            Ok(())
        }
        Bench::WheelSample(arguments) => {
            print!("{}", wheel::sample_here(&arguments)?);
            Ok(())
        }
        Bench::TimerSample(arguments) => {
            print!("{}", timer::sample_here(&arguments)?);
            Ok(())
        }
        Bench::StoreSample(arguments) => {
            print!("{}", store::sample_here(&arguments)?);
            Ok(())
        }
        Bench::StoreFill(arguments) => store::fill_here(&arguments),
    }
}

/// The machine before it, its figures, and the load after it.
fn measured(run: impl FnOnce() -> anyhow::Result<report::Report>) -> anyhow::Result<()> {
    eprintln!("{}", machine::describe());
    eprintln!("{}", machine::huge_pages());
    // The program's own place says nothing.
    eprintln!("tickwheel-bench {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "));
    print!("{}", run()?.csv());
    eprintln!("{}", machine::load());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever brings new figures makes the page anew, and nobody edits one of its figures.
    #[test]
    fn the_pages_and_the_plot_are_those_of_the_data() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/performance");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        let mut all = 0;
        for page in &page::PAGES {
            let files = data_of(&folder.join("data"), page.name);
            all += files.len();
            if files.is_empty() {
                continue;
            }
            let figures = figures::Figures::load(&files).expect("figures");
            let (name, name_svg) = (format!("{}.md", page.name), format!("{}.svg", page.name));
            let text = read(&name);
            let made = table::put_into(&text, &table::markdown(&figures, std::slice::from_ref(page)))
                .expect("a place for the tables");
            assert!(text == made, "run `scripts/bench table ... --into docs/performance/{name}`");
            if folder.join(&name_svg).exists() {
                let drawn = plot::svg(&figures).expect("a plot");
                let drawn_again = "run `scripts/bench plot ... > docs/performance/";
                assert!(read(&name_svg) == drawn, "{drawn_again}{name_svg}`");
            }
        }
        assert_eq!(all, data_of(&folder.join("data"), "").len(), "data that belongs to no page");
        assert!(folder.join("wheels.svg").exists(), "the plot is gone");
    }

    #[test]
    fn a_sample_is_asked_for_in_words_that_it_understands() {
        let load = timer::Load::QUICK.words();
        let words = ["tickwheel-bench", "timer-sample", "--impl=timer", "--workload=idle"];
        let words = words.map(str::to_owned).into_iter().chain(load.clone());
        let Bench::TimerSample(asked) = Arguments::try_parse_from(words).expect("it understands").bench
        else {
            panic!("another command")
        };
        assert_eq!(asked.load.words(), load);
    }

    /// The CSV of a page.
    fn data_of(folder: &std::path::Path, page: &str) -> Vec<PathBuf> {
        let files = std::fs::read_dir(folder).expect("the data of the pages");
        let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "csv"));
        files.retain(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(page)));
        files
    }
}
