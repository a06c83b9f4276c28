//! `tickwheel target`.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tickwheel_api::{
    AttemptBody, AttemptOutcome, AttemptsQuery, ProblemKind, RotateBody, RotatedBody, TargetBody,
    TargetTestBody, TargetView, duration, time,
};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use super::target_facts::facts;
use super::target_options::{Members, options_of};
use crate::missing;
use crate::output::{Format, Row, print_line, say};
use crate::remote::Remote;
use crate::values;

/// Make, test and change the target of a queue: the place to which the server sends its due tasks
///
/// With a target the server itself is the worker of the queue. It sends each due task to a webhook or a broker, and the task is done when the other
/// side has confirmed it. Rate, limits and pause of the queue hold for its target, too.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel target set orders --url 'https://shop.example/hooks/{queue}' --new-secret
  tickwheel target set orders --connection main --topic due --concurrency 256
  tickwheel target set orders --file target.json
  tickwheel target set orders --timeout 30s         changes one setting of the target that the queue has
  tickwheel target test orders && tickwheel target resume orders
  tickwheel target attempts orders --limit 20
  tickwheel target rotate orders --overlap 24h
  tickwheel targets                                 those of all queues")]
pub(crate) struct Target {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Give a queue a target, replace it, or change some of its settings
    ///
    /// With --url, --connection or --file, the queue gets the target that the command line says, and a setting that it does not name has its default.
    /// Without them, the command changes the target that the queue has, and a setting that it does not name stays. Tasks under way to the target
    /// before are settled.
    Set(Box<Set>),
    /// Show the settings and the state of a target; secrets are not shown
    Show(Show),
    /// Take the target of a queue away; tasks under way are settled first, and the tasks of the queue stay
    Delete(Delete),
    /// Send nothing more to the target; workers may still lease the tasks of the queue
    Pause(Name),
    /// End a pause, or enable a target that was disabled
    Resume(Name),
    /// Make a new secret that signs, and print it once
    Rotate(Rotate),
    /// Send one message that is not a task, and show the result
    ///
    /// The exit code is 0 if the other side confirmed the message, and 1 if it did not. Nothing is stored, and no number changes.
    Test(Name),
    /// Show the last attempts to send tasks, the newest first
    ///
    /// The server keeps the last 1,000 of each target in memory.
    Attempts(Attempts),
}

#[derive(Args, Debug)]
struct Name {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
}

#[derive(Args, Debug)]
struct Set {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    members: Members,
    /// Only if the target has this version
    #[arg(long, visible_alias = "if-match", value_name = "VERSION", value_parser = values::version)]
    if_version: Option<u64>,
}

#[derive(Args, Debug)]
struct Show {
    #[command(flatten)]
    name: Name,
    /// Print the settings alone, as JSON that `target set --file` takes
    #[arg(long)]
    settings: bool,
}

#[derive(Args, Debug)]
struct Delete {
    #[command(flatten)]
    name: Name,
    /// Only if the target has this version
    #[arg(long, visible_alias = "if-match", value_name = "VERSION", value_parser = values::version)]
    if_version: Option<u64>,
}

#[derive(Args, Debug)]
struct Rotate {
    #[command(flatten)]
    name: Name,
    /// How long the secrets of before sign, too, up to 30d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = values::delay)]
    overlap: u64,
}

#[derive(Args, Debug)]
struct Attempts {
    #[command(flatten)]
    name: Name,
    /// The largest number of attempts to list, up to 1000
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::lease_max)]
    limit: usize,
}

/// The number of random bytes in a secret that signs. The standard of webhooks allows 24 to 64.
const SECRET_BYTES: usize = 32;

impl Target {
    /// Runs the subcommand and prints the result.
    ///
    /// # Errors
    /// The settings are not valid, there is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { verb, remote, format } = self;
        let client = remote.client()?;
        match verb {
            Verb::Set(set) => set.run(&client, &format)?,
            Verb::Show(Show { name: Name { queue }, settings }) => {
                show(&missing::in_queue(&client, &queue, client.target(&queue))?, settings, &format)?;
            }
            Verb::Delete(Delete { name: Name { queue }, if_version }) => {
                client.delete_target(&queue, if_version)?;
                format.print([Deleted { queue }])?;
            }
            Verb::Pause(Name { queue }) => format.print([Shown::of(client.pause_target(&queue)?)])?,
            Verb::Resume(Name { queue }) => format.print([Shown::of(client.resume_target(&queue)?)])?,
            Verb::Rotate(Rotate { name: Name { queue }, overlap }) => {
                let rotated = client.rotate_target(&queue, &RotateBody { overlap_ms: overlap })?;
                let until = time::format(rotated.until_ms);
                format.print([rotated])?;
                say(&format!(
                    "give the secret to the receiver before {until}: until then the secrets of before sign, too\n\
                     the secret is not shown again"
                ));
            }
            Verb::Test(Name { queue }) => return test(&client, &queue, &format),
            Verb::Attempts(Attempts { name: Name { queue }, limit }) => {
                let attempts = client.attempts(&queue, &AttemptsQuery { limit })?;
                if attempts.is_empty() {
                    say("the server has sent nothing to this target since it started");
                } else {
                    format.print(attempts)?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Set {
    fn run(self, client: &Client, format: &Format) -> Result<()> {
        let Self { name: Name { queue }, members, if_version } = self;
        let words = members.words();
        let new_secret = members.wants_new_secret().then(new_secret).transpose()?;
        let (target, if_match) = if members.is_whole() {
            (members.made(new_secret.as_deref())?, if_version)
        } else {
            let place = members.place();
            let now = client.target(&queue).map_err(|error| match (&error, place) {
                (ClientError::Problem(problem), Some(option))
                    if problem.kind() == Some(ProblemKind::NoTarget) =>
                {
                    anyhow!("{option} is a setting of a target in a broker, and the queue `{queue}` has no target; add --connection NAME (`tickwheel targets` lists the connections)")
                }
                _ => error.into(),
            })?;
            // A change by another caller between the two calls is refused by the server.
            let if_match = if_version.or(Some(now.version));
            (members.changed(now.target, new_secret.as_deref())?, if_match)
        };
        let put = client.put_target(&queue, &target, if_match);
        let view = put.map_err(|error| match (other_kind(client, &target, &error), words) {
            (Some(told), _) => anyhow!(told),
            (None, Some(words)) => words.refusal(error).into(),
            (None, None) => error.into(),
        })?;
        let shown = Shown { view, new_secret };
        let is_json = format.is_json();
        let secret = shown.new_secret.clone();
        format.print([shown])?;
        if let Some(secret) = secret {
            if !is_json {
                print_line(&format!("secret: {secret}"))?;
            }
            say("give the secret to the receiver; it is not shown again");
        }
        Ok(())
    }
}

/// Returns the message for a target that the server refused because its connection is of another kind; `None`: the reason is another one.
fn other_kind(client: &Client, target: &TargetBody, error: &ClientError) -> Option<String> {
    let name = target.connection.as_deref()?;
    let is_refused =
        matches!(error, ClientError::Problem(problem) if problem.kind() == Some(ProblemKind::BadRequest));
    // Only the server knows the kinds. A token with a scope does not see them.
    let connections = if is_refused { client.targets().ok()?.connections } else { return None };
    let kind = connections.into_iter().find(|row| row.name == name)?.kind;
    (kind != target.kind).then(|| {
        format!(
            "the connection `{name}` is of the kind `{}`, which takes {}; the options are those of the kind `{}` ({})",
            kind.name(),
            options_of(kind),
            target.kind.name(),
            options_of(target.kind)
        )
    })
}

/// A secret that signs: `whsec_` and the base64 of random bytes.
fn new_secret() -> Result<String> {
    let mut random = [0; SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|error| anyhow!("the system has no random bytes: {error}"))?;
    Ok(format!("whsec_{}", STANDARD.encode(random)))
}

fn show(view: &TargetView, settings: bool, format: &Format) -> Result<()> {
    if settings {
        let text = String::from_utf8(view.target.to_json()).context("the settings are not UTF-8")?;
        return print_line(&text);
    }
    if format.is_json() {
        return format.print([Shown::of(view.clone())]);
    }
    format.print(facts(view))
}

/// Sends the message. The exit code says whether it arrived.
fn test(client: &Client, queue: &str, format: &Format) -> Result<ExitCode> {
    let result = client.test_target(queue)?;
    let is_delivered = result.outcome == AttemptOutcome::Acked;
    let answer = result.answer.clone().filter(|answer| !is_delivered && !answer.is_empty());
    format.print([result])?;
    if let Some(answer) = answer {
        say(&format!("the answer begins: {answer}"));
    }
    Ok(if is_delivered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A target after a change.
struct Shown {
    view: TargetView,
    /// The secret that this command made.
    new_secret: Option<String>,
}

impl Shown {
    fn of(view: TargetView) -> Self {
        Self { view, new_secret: None }
    }
}

impl Row for Shown {
    const HEADER: &'static [&'static str] = &["QUEUE", "KIND", "STATE", "IN FLIGHT", "VERSION", "REASON"];

    fn json(&self) -> Vec<u8> {
        let mut view = serde_json::to_value(&self.view).expect("an answer is plain JSON");
        if let (Value::Object(members), Some(secret)) = (&mut view, &self.new_secret) {
            // The member has the name that it has in the answer to a rotation.
            members.insert("secret".to_owned(), json!(secret));
        }
        serde_json::to_vec(&view).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let TargetView { queue, target, version, state, reason, in_flight, .. } = &self.view;
        vec![
            queue.clone(),
            target.kind.name().to_owned(),
            state.name().to_owned(),
            in_flight.to_string(),
            version.to_string(),
            reason.clone().unwrap_or_default(),
        ]
    }
}

struct Deleted {
    queue: String,
}

impl Row for Deleted {
    const HEADER: &'static [&'static str] = &["QUEUE", "RESULT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&json!({ "queue": self.queue, "result": "deleted" })).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.queue.clone(), "deleted".to_owned()]
    }
}

impl Row for RotatedBody {
    const HEADER: &'static [&'static str] = &["SECRET", "ID", "OLD ONES UNTIL"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.secret.clone(), self.id.clone(), time::format(self.until_ms)]
    }
}

impl Row for TargetTestBody {
    const HEADER: &'static [&'static str] = &["OUTCOME", "STATUS", "TOOK", "REASON"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.outcome.name().to_owned(),
            status(self.status),
            duration::format(self.took_ms),
            self.reason.clone().unwrap_or_default(),
        ]
    }
}

impl Row for AttemptBody {
    const HEADER: &'static [&'static str] = &["AT", "KEY", "ATTEMPT", "OUTCOME", "STATUS", "TOOK", "REASON"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            time::format(self.at_ms),
            self.key.clone(),
            self.attempt.to_string(),
            self.outcome.name().to_owned(),
            status(self.status),
            duration::format(self.took_ms),
            self.reason.clone().unwrap_or_default(),
        ]
    }
}

fn status(status: Option<u16>) -> String {
    status.map(|status| status.to_string()).unwrap_or_default()
}
