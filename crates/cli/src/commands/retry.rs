//! How often and how soon a task is tried again, as the command line says it: of a task, or of a queue.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};
use tickwheel_api::{RetryBody, duration};

use crate::values::{self, Setting};

/// A task's own policy, whole: whatever is not named is as it is by default, whatever the queue says.
#[derive(Args, Debug)]
pub(super) struct TaskRetry {
    /// Dead after so many attempts, leases that ran out among them [default: tried for ever]
    #[arg(long, value_name = "N", value_parser = values::attempts, help_heading = OF_TASK)]
    max_attempts: Option<u32>,
    /// Whether the wait after a nack doubles from attempt to attempt: exponential or fixed [default: exponential]
    #[arg(long, value_name = "KIND", value_parser = kind, help_heading = OF_TASK)]
    backoff: Option<&'static str>,
    /// How long the first wait is [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_base: Option<u64>,
    /// How long the longest wait is [default: 10m, or as long as the first]
    #[arg(long, value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_max: Option<u64>,
    /// Up to so much of a wait is left out by chance, from 0 to 1 [default: 0.5, and 0 if it is fixed]
    #[arg(long, value_name = "PART", value_parser = part, allow_hyphen_values = true, help_heading = OF_TASK)]
    backoff_jitter: Option<f64>,
}

const OF_TASK: &str = "Retry policy of the task, in the place of the queue's as a whole";
const OF_QUEUE: &str = "Retry policy of tasks that have none of their own";

impl TaskRetry {
    /// The policy; `None` if nothing is named.
    ///
    /// # Errors
    /// Its members do not go together.
    pub(super) fn policy(&self) -> Result<Option<RetryBody>> {
        let named = QueueRetry {
            max_attempts: self.max_attempts.map(Setting::To),
            backoff: self.backoff.map(Setting::To),
            backoff_base: self.backoff_base.map(Setting::To),
            backoff_max: self.backoff_max.map(Setting::To),
            backoff_jitter: self.backoff_jitter.map(Setting::To),
        };
        named.over(None)
    }
}

/// The policy of a queue, of which each member can be changed by itself.
#[derive(Args, Debug)]
pub(super) struct QueueRetry {
    /// Dead after so many attempts, leases that ran out among them
    #[arg(long, value_name = "N", value_parser = |text: &str| values::setting(text, values::attempts), help_heading = OF_QUEUE)]
    max_attempts: Option<Setting<u32>>,
    /// Whether the wait after a nack doubles from attempt to attempt: exponential or fixed [default: exponential]
    #[arg(long, value_name = "KIND", value_parser = |text: &str| values::setting(text, kind), help_heading = OF_QUEUE)]
    backoff: Option<Setting<&'static str>>,
    /// How long the first wait is [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::delay), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_base: Option<Setting<u64>>,
    /// How long the longest wait is [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::delay), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_max: Option<Setting<u64>>,
    /// Up to so much of a wait is left out by chance, from 0 to 1 [default: 0.5, and 0 if it is fixed]
    #[arg(long, value_name = "PART", value_parser = |text: &str| values::setting(text, part), allow_hyphen_values = true, help_heading = OF_QUEUE)]
    backoff_jitter: Option<Setting<f64>>,
}

const EXPONENTIAL: &str = "exponential";

fn kind(text: &str) -> Result<&'static str, String> {
    [EXPONENTIAL, "fixed"]
        .into_iter()
        .find(|kind| *kind == text)
        .ok_or_else(|| "it takes exponential or fixed".to_owned())
}

fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "it takes a number from 0 to 1".to_owned())
}

impl QueueRetry {
    /// The policy that is `before` with what is named in its place; `None` if nothing is named.
    ///
    /// # Errors
    /// Its members do not go together.
    pub(super) fn over(&self, before: Option<RetryBody>) -> Result<Option<RetryBody>> {
        let before = before.unwrap_or_default();
        let usual = RetryBody::default();
        let Value::Object(mut policy) = serde_json::to_value(before).expect("plain JSON") else {
            unreachable!("a policy is an object")
        };
        if before.max_ms == usual.max_ms.max(before.base_ms) {
            // Nobody has named it: it follows from the first wait.
            policy.remove("max");
        }
        let mut is_named = false;
        let mut put = |name: &str, said: Option<Option<Value>>, policy: &mut Map<String, Value>| {
            let Some(to) = said else { return };
            is_named = true;
            match to {
                Some(value) => policy.insert(name.to_owned(), value),
                None => policy.remove(name),
            };
        };
        let ms = |named: Option<Setting<u64>>| {
            named.map(|to| to.value().map(|ms| Value::from(duration::format(ms))))
        };
        put("max_attempts", self.max_attempts.map(|to| to.value().map(Value::from)), &mut policy);
        let kind = self.backoff.map(|to| to.value().unwrap_or(EXPONENTIAL));
        if kind.is_some_and(|kind| (kind == EXPONENTIAL) != before.exponential) {
            // Each kind has its own.
            policy.remove("jitter");
        }
        put("backoff", self.backoff.map(|to| to.value().map(Value::from)), &mut policy);
        put("base", ms(self.backoff_base), &mut policy);
        put("max", ms(self.backoff_max), &mut policy);
        put("jitter", self.backoff_jitter.map(|to| to.value().map(Value::from)), &mut policy);
        if !is_named {
            return Ok(None);
        }
        let policy = Value::Object(policy).to_string();
        serde_json::from_str(&policy).map(Some).context("the back-off makes no sense")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        retry: QueueRetry,
    }

    fn over(words: &str, before: Option<RetryBody>) -> Result<Option<RetryBody>> {
        let words = ["program"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(words)?.retry.over(before)
    }

    #[test]
    fn what_is_named_takes_the_place_of_what_was() {
        let usual = RetryBody::default();
        assert_eq!(over("", Some(usual)).expect("nothing is named"), None);
        let five = over("--max-attempts 5", None).expect("a policy");
        assert_eq!(five, Some(RetryBody { max_attempts: Some(5), ..usual }));
        let fixed = over("--backoff fixed --backoff-base 20m", five).expect("a policy").expect("is named");
        let wanted = RetryBody {
            exponential: false,
            base_ms: 1_200_000,
            max_ms: 1_200_000,
            jitter_percent: 0,
            ..five.expect("above")
        };
        assert_eq!(fixed, wanted, "a longer wait makes the longest longer");
        assert_eq!(
            over("--max-attempts none --backoff none --backoff-base none --backoff-max none", Some(fixed))
                .expect("a policy"),
            Some(usual)
        );
        let longer =
            over("--backoff-base 40m", Some(fixed)).expect("nobody named the longest").expect("is named");
        assert_eq!((longer.base_ms, longer.max_ms), (2_400_000, 2_400_000));
        let shorter = over("--backoff-base 1s --backoff exponential", Some(longer)).expect("a policy");
        assert_eq!(
            shorter,
            Some(RetryBody { max_attempts: Some(5), ..usual }),
            "and grows to what it grows to by default"
        );
        let by_chance = RetryBody { jitter_percent: 20, ..fixed };
        let same = over("--backoff fixed", Some(by_chance)).expect("a policy").expect("is named");
        assert_eq!(same.jitter_percent, 20, "the kind is as it was");
        let never_by_chance = over("--backoff-jitter 0", None).expect("a policy").expect("is named");
        assert_eq!(never_by_chance.jitter_percent, 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let said = |words: &str| format!("{:#}", over(words, None).expect_err(words));
        assert!(said("--backoff linear").contains("exponential or fixed"));
        assert!(said("--backoff-jitter 2").contains("from 0 to 1"));
        assert!(
            said("--backoff-base 1m --backoff-max 1s").contains("1s is shorter than the first wait of 1m")
        );
    }
}
