//! The commands. Each command has one file with its arguments, its help and its action. A new command needs a file, a `mod` line and a line
//! in `commands!`.

pub(crate) mod ack;
pub(crate) mod backup;
pub(crate) mod backup_options;
pub(crate) mod bench;
pub(crate) mod bench_beanstalk;
#[cfg(feature = "bridge")]
pub(crate) mod bridge;
#[cfg(not(feature = "bridge"))]
#[path = "commands/no_bridge.rs"]
pub(crate) mod bridge;
pub(crate) mod cancel;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod export;
pub(crate) mod extend;
pub(crate) mod find;
pub(crate) mod forecast;
pub(crate) mod get;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod jobs;
pub(crate) mod lease;
pub(crate) mod leases;
pub(crate) mod limits;
pub(crate) mod ls;
pub(crate) mod man;
mod many;
pub(crate) mod moving;
pub(crate) mod nack;
pub(crate) mod next;
pub(crate) mod patch;
mod payload;
pub(crate) mod postgres_options;
pub(crate) mod purge;
pub(crate) mod put;
pub(crate) mod queues;
pub(crate) mod redrive;
pub(crate) mod release;
pub(crate) mod replay;
pub(crate) mod restore;
mod retry;
pub(crate) mod run;
pub(crate) mod salvage;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod story;
pub(crate) mod target;
mod target_facts;
mod target_options;
mod target_words;
pub(crate) mod targets;
pub(crate) mod token;
mod tokens;
pub(crate) mod top;
mod when;
mod which;
pub(crate) mod why;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// Declares the commands, in the order of the help.
macro_rules! commands {
    ($($(#[$attribute:meta])* $Name:ident($arguments:ty),)*) => {
        #[derive(Subcommand, Debug)]
        pub(crate) enum Command {
            $($(#[$attribute])* $Name($arguments),)*
        }

        impl Command {
            /// Runs the command.
            ///
            /// # Errors
            /// The command failed. The caller prints the error.
            pub(crate) fn run(self) -> Result<ExitCode> {
                match self {
                    $($(#[$attribute])* Self::$Name(command) => command.run(),)*
                }
            }
        }
    };
}

commands! {
    Serve(Box<serve::Serve>),
    Put(Box<put::Put>),
    Get(get::Get),
    Story(story::Story),
    Why(why::Why),
    Ls(ls::Ls),
    Find(find::Find),
    Patch(Box<patch::Patch>),
    Move(Box<moving::Move>),
    Run(run::Run),
    Release(release::Release),
    Cancel(Box<cancel::Cancel>),
    Purge(purge::Purge),
    Jobs(jobs::Jobs),
    Lease(lease::Lease),
    Leases(leases::Leases),
    Ack(ack::Ack),
    Nack(nack::Nack),
    Extend(extend::Extend),
    Dead(Box<dead::Dead>),
    Redrive(Box<redrive::Redrive>),
    Queues(queues::Queues),
    Drain(drain::Drain),
    Resume(drain::Resume),
    Health(health::Health),
    Forecast(forecast::Forecast),
    Top(top::Top),
    Schedules(schedules::Schedules),
    Next(next::Next),
    Targets(targets::Targets),
    Target(target::Target),
    Token(token::Token),
    Config(config::Config),
    Cluster(cluster::Cluster),
    Doctor(doctor::Doctor),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Salvage(salvage::Salvage),
    Export(export::Export),
    Import(import::Import),
    Replay(replay::Replay),
    Bridge(bridge::Bridge),
    Bench(bench::Bench),
    Demo(demo::Demo),
    Completions(completions::Completions),
    Man(man::Man),
}
