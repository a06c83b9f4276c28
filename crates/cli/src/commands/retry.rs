//! Options for the retry policy of a task or of a queue.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};
use tickwheel_api::{RetryBody, duration};

use crate::values::{self, Setting};

/// The whole retry policy of one task. A member without an option has its default; the policy of the queue has no effect on this task.
#[derive(Args, Debug)]
pub(super) struct TaskRetry {
    /// Number of attempts after which a task is dead; a lease that ends without an ack counts as an attempt, too [default: no limit]
    #[arg(long, value_name = "N", value_parser = values::attempts, help_heading = OF_TASK)]
    max_attempts: Option<u32>,
    /// Whether the wait after a nack doubles from attempt to attempt: exponential or fixed [default: exponential]
    #[arg(long, value_name = "KIND", value_parser = kind, help_heading = OF_TASK)]
    backoff: Option<&'static str>,
    /// The first wait [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_base: Option<u64>,
    /// The longest wait [default: 10m, or the first wait if that is longer]
    #[arg(long, value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_max: Option<u64>,
    /// Each wait is shortened by a random part of it, at most this part, from 0 to 1 [default: 0.5, or 0 for a fixed wait]
    #[arg(long, value_name = "PART", value_parser = part, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_jitter: Option<f64>,
}

const OF_TASK: &str = "Retry policy of the task, in the place of the queue's as a whole";
const OF_QUEUE: &str = "Retry policy of tasks that have none of their own";

impl TaskRetry {
    /// The policy; `None` if no option is named.
    ///
    /// # Errors
    /// The members contradict each other.
    pub(super) fn policy(&self) -> Result<Option<RetryBody>> {
        let named = QueueRetry {
            retry: None,
            max_attempts: self.max_attempts.map(Setting::To),
            backoff: self.backoff.map(Setting::To),
            backoff_base: self.backoff_base.map(Setting::To),
            backoff_max: self.backoff_max.map(Setting::To),
            backoff_jitter: self.backoff_jitter.map(Setting::To),
        };
        let Some(policy) = named.patch() else { return Ok(None) };
        serde_json::from_value(policy).map(Some).context("the back-off makes no sense")
    }
}

/// The retry policy of a queue. Each member can be changed separately.
#[derive(Args, Debug)]
pub(super) struct QueueRetry {
    /// `none`: no policy; a task whose attempt failed is ready again at once
    #[arg(long, value_name = "none", value_parser = nothing, help_heading = OF_QUEUE,
        conflicts_with_all = ["max_attempts", "backoff", "backoff_base", "backoff_max", "backoff_jitter"])]
    retry: Option<()>,
    /// Number of attempts after which a task is dead; a lease that ends without an ack counts as an attempt, too
    #[arg(long, value_name = "N", value_parser = |text: &str| values::setting(text, values::attempts), help_heading = OF_QUEUE)]
    max_attempts: Option<Setting<u32>>,
    /// Whether the wait after a nack doubles from attempt to attempt: exponential or fixed [default: exponential]
    #[arg(long, value_name = "KIND", value_parser = |text: &str| values::setting(text, kind), help_heading = OF_QUEUE)]
    backoff: Option<Setting<&'static str>>,
    /// The first wait [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::delay), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_base: Option<Setting<u64>>,
    /// The longest wait [default: 10m, or the first wait if that is longer]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::delay), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_max: Option<Setting<u64>>,
    /// Each wait is shortened by a random part of it, at most this part, from 0 to 1 [default: 0.5, or 0 for a fixed wait]
    #[arg(long, value_name = "PART", value_parser = |text: &str| values::setting(text, part), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_jitter: Option<Setting<f64>>,
}

fn nothing(text: &str) -> Result<(), String> {
    if text == "none" {
        Ok(())
    } else {
        Err("it takes none; the other options name the members of a policy".to_owned())
    }
}

fn kind(text: &str) -> Result<&'static str, String> {
    ["exponential", "fixed"]
        .into_iter()
        .find(|kind| *kind == text)
        .ok_or_else(|| "it takes exponential or fixed".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "it takes a number from 0 to 1".to_owned())
}

impl QueueRetry {
    /// The members with an option as a patch of settings; `null` for no policy; `None` if no option is given.
    pub(super) fn patch(&self) -> Option<Value> {
        if self.retry.is_some() {
            return Some(Value::Null);
        }
        let mut members = Map::new();
        let mut put = |name: &str, said: Option<Value>| {
            members.extend(said.map(|value| (name.to_owned(), value)));
        };
        let ms = |named: Option<Setting<u64>>| {
            named.map(|to| to.value().map_or(Value::Null, |ms| duration::format(ms).into()))
        };
        put("max_attempts", self.max_attempts.map(|to| to.value().into()));
        put("backoff", self.backoff.map(|to| to.value().into()));
        put("base", ms(self.backoff_base));
        put("max", ms(self.backoff_max));
        put("jitter", self.backoff_jitter.map(|to| to.value().into()));
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct OfTask {
        #[command(flatten)]
        retry: TaskRetry,
    }

    #[derive(Parser)]
    struct OfQueue {
        #[command(flatten)]
        retry: QueueRetry,
    }

    fn words(text: &str) -> impl Iterator<Item = &str> {
        ["program"].into_iter().chain(text.split_whitespace())
    }

    fn policy(text: &str) -> Result<Option<RetryBody>> {
        OfTask::try_parse_from(words(text))?.retry.policy()
    }

    #[test]
    fn a_task_has_a_whole_policy_or_none() {
        let usual = RetryBody::default();
        assert_eq!(policy("").expect("nothing is named"), None);
        assert_eq!(
            policy("--max-attempts 5").expect("one"),
            Some(RetryBody { max_attempts: Some(5), ..usual })
        );
        let fixed = policy("--backoff fixed --backoff-base 20m").expect("one").expect("is named");
        assert_eq!((fixed.exponential, fixed.max_ms, fixed.jitter_percent), (false, 1_200_000, 0));
        let said = |text: &str| format!("{:#}", policy(text).expect_err(text));
        assert!(said("--backoff linear").contains("exponential or fixed"));
        assert!(said("--backoff-jitter 2").contains("from 0 to 1"));
        assert!(
            said("--backoff-base 1m --backoff-max 1s").contains("1s is shorter than the first wait of 1m")
        );
    }

    #[test]
    fn a_queue_gets_a_patch_of_the_named_members() {
        let patch = |text: &str| {
            let line = OfQueue::try_parse_from(words(text)).expect(text);
            line.retry.patch().map(|value| value.to_string())
        };
        assert_eq!((patch(""), patch("--retry none").as_deref()), (None, Some("null")));
        assert!(OfQueue::try_parse_from(words("--retry 5")).is_err());
        let said = patch("--max-attempts none --backoff fixed --backoff-base 20m --backoff-jitter 0.5");
        assert_eq!(
            said.as_deref(),
            Some(r#"{"backoff":"fixed","base":"20m","jitter":0.5,"max_attempts":null}"#)
        );
    }
}
