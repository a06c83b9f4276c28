//! `tickwheel bridge rabbitmq`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpLogin};
use tickwheel_push::bridge::{self, BridgeError, BridgePlan, ExchangeType, KeySource};
use tickwheel_push::broker::Link;
use tickwheel_push::webhook::TlsPlan;
use tickwheel_queue::QueueName;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::serve::end_with_the_engine;
use crate::bridge::{Address, Keeper, Management, ManagementUrl, Migration, Names, Progress, Step, advice};
use crate::output::{print_line, say};
use crate::remote::{RABBITMQ_PASSWORD_VARIABLE, Remote};

/// The variable with the URL of the broker.
const URL_VARIABLE: &str = "TICKWHEEL_RABBITMQ_URL";

/// Delay the messages of another broker
#[derive(Args, Debug)]
pub(crate) struct Bridge {
    #[command(subcommand)]
    from: Source,
}

#[derive(Subcommand, Debug)]
enum Source {
    Rabbitmq(Box<Rabbitmq>),
}

/// Delay the messages of RabbitMQ, in place of its plugin for delayed messages
///
/// Publishers go on publishing to the exchange, with the header `x-delay`. The bridge makes it a fanout exchange with one queue, reads that
/// queue, and keeps each message until it is due. Then the message is published to the exchange EXCHANGE.due, to which the consumers bind
/// their queues. A message is acked when it is durable here. The bridge runs until SIGTERM or Ctrl-C, and says first which declares change.
///
/// With --migrate it runs no bridge. It gives the bindings of the old exchange to EXCHANGE.due, and ends.
#[derive(Args, Debug)]
#[command(
    group = ArgGroup::new("keeper").required(true).multiple(true).args(["data", "connection", "migrate"]),
    after_help = "\
Examples:
  tickwheel bridge rabbitmq --url amqp://shop@rabbit.example/shop --exchange orders --data /var/lib/tickwheel-bridge
  tickwheel bridge rabbitmq --url amqp://shop@rabbit.example/shop --exchange orders --type topic --connection main
                                                         messages wait on a server, whose configuration has
                                                         [push.connections.main]
  tickwheel bridge rabbitmq --url amqp://shop@rabbit.example/shop --exchange orders --migrate
                                                         shows which bindings EXCHANGE.due lacks; --yes makes them

The password is in the variable TICKWHEEL_RABBITMQ_PASSWORD or in --password-file."
)]
struct Rabbitmq {
    /// The URL of the broker: amqp://USER@HOST:PORT/VHOST, or amqps:// for TLS
    ///
    /// The names are percent-encoded. A password in it is used, but every user of a machine can read command lines
    #[arg(long, value_name = "URL", env = URL_VARIABLE, hide_env_values = true)]
    url: Address,
    /// A file with the password of the user; without this option the variable TICKWHEEL_RABBITMQ_PASSWORD is used
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// A PEM file with the root certificates to trust for amqps; without this option, the roots that browsers trust
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The exchange to which publishers send delayed messages
    #[arg(long, value_name = "NAME")]
    exchange: String,
    /// The type of the exchange EXCHANGE.due: the `x-delayed-type` of the old exchange
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = Type::Direct)]
    r#type: Type,
    /// The queue that the bridge makes and reads [default: tickwheel.EXCHANGE]
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// The source of the key of a message; a second message with a key replaces the first, if that is not due yet
    ///
    /// header: the header `tickwheel-key`. message-id: this header, or else the property `message_id`
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t = KeyFrom::Header)]
    key: KeyFrom,
    /// Keep the messages in this directory, in this process; it is made if it does not exist. No server can use the directory meanwhile
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep the messages on the server of --server, which publishes due messages by this connection of its configuration
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    connection: Option<String>,
    /// Give the bindings of the old exchange to EXCHANGE.due, by the management API of the broker, and end
    ///
    /// Without --yes the command changes nothing, and prints the steps. It never deletes anything, and leaves out steps that were made
    /// already
    #[arg(long)]
    migrate: bool,
    /// Make the steps of --migrate
    #[arg(long, requires = "migrate")]
    yes: bool,
    /// The old exchange of --migrate [default: EXCHANGE]
    #[arg(long, value_name = "NAME", requires = "migrate")]
    old_exchange: Option<String>,
    /// The management API of --migrate: http://HOST:PORT or https://HOST:PORT [default: port 15672 of the broker, or 15671 for amqps]
    ///
    /// A user and a password in it go before those of --url
    #[arg(long, value_name = "URL", requires = "migrate")]
    management_url: Option<ManagementUrl>,
    #[command(flatten)]
    remote: Remote,
}

/// The types of an exchange, as the option names them.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Direct,
    Topic,
    Fanout,
    Headers,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Topic => "topic",
            Self::Fanout => "fanout",
            Self::Headers => "headers",
        }
    }
}

impl From<Type> for ExchangeType {
    fn from(named: Type) -> Self {
        match named {
            Type::Direct => Self::Direct,
            Type::Topic => Self::Topic,
            Type::Fanout => Self::Fanout,
            Type::Headers => Self::Headers,
        }
    }
}

/// The source of a key, as the option names it.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum KeyFrom {
    Header,
    MessageId,
}

impl From<KeyFrom> for KeySource {
    fn from(named: KeyFrom) -> Self {
        match named {
            KeyFrom::Header => Self::Header,
            KeyFrom::MessageId => Self::MessageId,
        }
    }
}

impl Bridge {
    /// Runs the bridge until a signal stops it.
    ///
    /// # Errors
    /// The bridge cannot begin its work.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Source::Rabbitmq(rabbitmq) = self.from;
        if rabbitmq.migrate {
            return rabbitmq.migrate().map(|()| ExitCode::SUCCESS);
        }
        end_with_the_engine();
        crate::open_files::raise_limit();
        let runtime = Runtime::new().context("start the threads of the bridge")?;
        let ran = runtime.block_on(rabbitmq.run());
        runtime.shutdown_background();
        ran.map(|()| ExitCode::SUCCESS)
    }
}

impl Rabbitmq {
    async fn run(self) -> Result<()> {
        // The program takes over the signals before it opens anything.
        let on = |kind| signal(kind).context("listen for signals");
        let (mut terminate, mut interrupt) = (on(SignalKind::terminate())?, on(SignalKind::interrupt())?);
        let plan = self.plan()?;
        let name = QueueName::new(&format!("rabbit/{}", self.exchange))
            .with_context(|| format!("the exchange `{}` makes no name of a queue here", self.exchange))?;
        let link = Arc::new(Link::new(AmqpDial::new(self.login()?)));
        let keeper = match (&self.data, &self.connection) {
            (Some(directory), _) => Keeper::here(directory, &name, &plan, Arc::clone(&link)).await?,
            (None, Some(connection)) => {
                let client = self.remote.async_client()?;
                let (keeper, said) = Keeper::server(client, &name, connection, &plan).await?;
                say(&said);
                keeper
            }
            (None, None) => bail!("add --data or --connection"),
        };
        let bridge = bridge::Bridge::open(plan.clone(), link, keeper.store());
        let mut progress = Progress::new(bridge.figures());
        let stop = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let ran = tokio::select! {
            ran = bridge.run(stop) => ran,
            () = progress.run(&keeper, || self.announce(&plan)) => unreachable!("the progress has no end"),
        };
        let counts = progress.end(&keeper).await;
        keeper.close().await;
        match ran {
            Ok(()) => print_line(&format!("stopped: {counts}")),
            Err(BridgeError::Undeclared(reason)) => Err(anyhow!(
                "the broker refuses the exchanges and queues of the bridge: {reason}; {}",
                advice(&plan, &self.exchange, &self.queue(), &reason)
            )),
        }
    }

    /// Prints the steps that give the bindings of the old exchange to the exchange of due messages, and makes them with --yes.
    fn migrate(&self) -> Result<()> {
        let plan = self.plan()?;
        let names = Names {
            old: self.old_exchange.clone().unwrap_or_else(|| self.exchange.clone()),
            exchange: self.exchange.clone(),
            due: plan.due_exchange(),
            kind: self.r#type.name(),
            queue: self.queue(),
            refused: plan.refused_queue(),
        };
        let api = self.management()?;
        let migration = Migration::find(&api, &self.url.vhost, names)?;
        let mut failures = 0;
        for step in &migration.steps {
            if !self.yes {
                print_line(&step.to_string())?;
            } else if let Err(error) = step.run(&api) {
                if matches!(step, Step::Declare { .. }) {
                    // Each other step needs the exchange.
                    return Err(error.context(format!("failed to {step}")));
                }
                say(&format!("failed to {step}: {error:#}"));
                failures += 1;
            } else {
                print_line(&step.done())?;
            }
        }
        for note in &migration.notes {
            say(&format!("note: {note}"));
        }
        let count = migration.steps.len();
        if failures > 0 {
            bail!(
                "{failures} of {count} steps failed; correct that at the broker, and run the command again"
            );
        }
        match (count, self.yes) {
            (0, _) => say("nothing to do"),
            (_, false) => say(&format!("nothing was changed; add --yes to make the steps ({count})")),
            (_, true) => say(&format!("all steps were made ({count})")),
        }
        say(&migration.next());
        Ok(())
    }

    /// Connects to the management API.
    fn management(&self) -> Result<Management> {
        let url = self.management_url.clone().unwrap_or_else(|| ManagementUrl::beside(&self.url));
        if url.has_password() || self.url.has_password() {
            warn_of_password();
        }
        if self.url.is_tls && !url.is_tls {
            say(
                "warning: the password goes to the management API without TLS; use an https:// URL with --management-url",
            );
        }
        let login = url.login(&self.url, self.password_elsewhere()?).map_err(no_password)?;
        let roots = self.ca.as_ref().filter(|_| url.is_tls).map(|path| roots(path)).transpose()?;
        Management::open(url, &self.url.vhost, login, roots.as_deref())
    }

    /// Says what is declared, and what changes for publishers and consumers. The first line is for a program that waits for the start.
    fn announce(&self, plan: &BridgePlan) {
        let (exchange, queue, due, named) =
            (&self.exchange, self.queue(), plan.due_exchange(), self.r#type.name());
        // The bridge goes on without a reader.
        let _ = print_line(&format!("bridging {exchange} to {due} at {}", self.url));
        say(&format!(
            "declared: the exchange {exchange} (fanout), its queue {queue} (quorum), the exchange {due} ({named}), and the queue {} for messages that \
             cannot be kept\n\
             publishers: declare {exchange} with the type `fanout` and without arguments, or passively; nothing else changes\n\
             consumers: bind your queues to {due} (type `{named}`), with the same binding keys as before",
            plan.refused_queue()
        ));
    }

    /// The password that is not in a URL.
    fn password_elsewhere(&self) -> Result<Option<String>> {
        Ok(match &self.password_file {
            Some(path) => Some(password(path)?),
            None => env::var(RABBITMQ_PASSWORD_VARIABLE).ok().filter(|password| !password.is_empty()),
        })
    }

    fn queue(&self) -> String {
        self.queue.clone().unwrap_or_else(|| format!("tickwheel.{}", self.exchange))
    }

    fn plan(&self) -> Result<BridgePlan> {
        let mut plan = BridgePlan::new(&self.exchange, self.r#type.into(), &self.queue())?;
        plan.key = self.key.into();
        Ok(plan)
    }

    /// The settings of the connection.
    fn login(&self) -> Result<AmqpConnection> {
        let Address { is_tls, endpoint, vhost, .. } = &self.url;
        if self.url.has_password() && env::var_os(URL_VARIABLE).is_none() {
            warn_of_password();
        }
        let (user, password) = self.url.login(self.password_elsewhere()?).map_err(no_password)?;
        let tls = match (is_tls, &self.ca) {
            (false, Some(_)) => bail!("--ca has no effect without TLS; write amqps:// in --url"),
            (false, None) => None,
            (true, ca) => {
                let roots_pem = ca.as_ref().map(|path| roots(path)).transpose()?;
                let tls = TlsPlan { roots_pem, ..TlsPlan::default() };
                Some(tls.config().context("failed to take the roots of --ca")?)
            }
        };
        Ok(AmqpConnection {
            endpoints: vec![endpoint.clone()],
            vhost: vhost.clone(),
            login: AmqpLogin::Password { user, password },
            tls,
            name: format!("tickwheel bridge: {}", self.exchange),
        })
    }
}

fn warn_of_password() {
    say(&format!(
        "warning: every user of this machine can read the password in the command line; use {RABBITMQ_PASSWORD_VARIABLE} or --password-file"
    ));
}

/// Makes an error of the reason why there is no password.
fn no_password(why: String) -> anyhow::Error {
    anyhow!("{why}; give it in the variable {RABBITMQ_PASSWORD_VARIABLE} or with --password-file")
}

/// Reads a file with root certificates.
fn roots(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}

/// Reads a password from a file.
fn password(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        bail!("{} has no password", path.display());
    }
    Ok(text.to_owned())
}
