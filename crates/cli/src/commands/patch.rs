//! `tickwheel patch`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{PatchBody, PutAnswer, RetryBody, RevokeQuery, TermsPatch, time};

use super::payload::Payload;
use super::retry::TaskRetry;
use super::when::When;
use crate::cli::Cli;
use crate::output::{Format, Row};
use crate::remote::Remote;
use crate::values::{self, Setting};

/// Change a live task; the fields without an option stay as they are
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel patch close order:1 --payload '{\"order\":1,\"vip\":true}'
  tickwheel patch close order:1 --in 1h --priority 10 --if-match 41    only if it still is what I saw
  tickwheel patch mail digest:7 --tag eu --tag daily                  these tags in place of the old ones
  tickwheel patch mail digest:7 --no-tags --no-group --expire-after none")]
pub(crate) struct Patch {
    #[command(flatten)]
    task: OneTask,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    terms: Terms,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// The task, and the conditions for its change.
#[derive(Args, Debug)]
pub(super) struct OneTask {
    /// The queue
    #[arg(value_parser = values::queue)]
    pub(super) queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    pub(super) key: String,
    /// Change it only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    pub(super) if_match: Option<u64>,
    /// Also change a leased task, and take it from its worker
    #[arg(long)]
    pub(super) revoke: bool,
}

/// Changes other than time and payload.
#[derive(Args, Debug)]
struct Terms {
    /// A tag to find the task by, instead of all its present tags; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = values::tag)]
    tags: Vec<String>,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    /// The order among ready tasks: smaller goes first
    #[arg(long, value_name = "N")]
    priority: Option<u32>,
    /// Tasks of one group share a limit of their queue
    #[arg(long, value_name = "GROUP", value_parser = values::group)]
    group: Option<String>,
    /// Remove the group
    #[arg(long, conflicts_with = "group")]
    no_group: bool,
    #[command(flatten)]
    retry: TaskRetry,
    /// Remove the task's own retry policy; the policy of the queue applies
    #[arg(long, conflicts_with_all = ["max_attempts", "backoff", "backoff_base", "backoff_max", "backoff_jitter"])]
    no_retry: bool,
    /// The time after this patch at which the task becomes dead, unless it is leased then or done; `none`: never
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::delay))]
    expire_after: Option<Setting<u64>>,
}

impl Terms {
    fn patch(self) -> Result<TermsPatch> {
        let Self { tags, no_tags, priority, group, no_group, retry, no_retry, expire_after } = self;
        let policy: Option<RetryBody> = retry.policy()?;
        Ok(TermsPatch {
            tags: (no_tags || !tags.is_empty()).then_some(tags),
            priority,
            group: if no_group { Some(None) } else { group.map(Some) },
            retry: if no_retry { Some(None) } else { policy.map(Some) },
            expire_after_ms: expire_after.map(Setting::value),
        })
    }
}

impl Patch {
    /// Sends the patch and prints the task.
    ///
    /// # Errors
    /// The payload is not valid, there is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let due = self.when.due();
        let body = PatchBody {
            due,
            timeline: self.when.timeline()?,
            payload: self.payload.named()?,
            terms: self.terms.patch()?,
        };
        if body == PatchBody::default() {
            let what = "what is to change? name a time (--in, --at, --level), --timeline, --payload, --tag, --priority, --group, a retry policy \
                        or --expire-after";
            Cli::misused("patch", what);
        }
        self.task.send(&self.remote, &self.format, &body)
    }
}

impl OneTask {
    /// Sends a patch of the task and prints the task.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(super) fn send(self, remote: &Remote, format: &Format, body: &PatchBody) -> Result<ExitCode> {
        let query = RevokeQuery { revoke: self.revoke };
        let task = remote.client()?.patch(&self.queue, &self.key, body, query, self.if_match)?;
        format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for PutAnswer {
    const HEADER: &'static [&'static str] = &["QUEUE", "KEY", "DUE AT", "STATE", "VERSION"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let state = self.state.name().to_owned();
        vec![
            self.queue.clone(),
            self.key.clone(),
            time::format(self.due_at_ms),
            state,
            self.version.to_string(),
        ]
    }
}
