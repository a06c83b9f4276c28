//! Effects on rules, for tests.

use std::sync::Arc;

use tickwheel_engine::{
    QueueName, QueueRecord, QueueSettings, Retry, Rule, RuleEffect, RuleName, TargetRecord,
};

pub(super) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a queue name")
}

/// Returns the effect that sets a rule: at most `max_in_flight` tasks of this queue are leased at a time.
#[must_use]
pub fn sample_rule(queue: &str, max_in_flight: u64) -> RuleEffect {
    let settings = QueueSettings { max_in_flight: Some(max_in_flight), ..QueueSettings::default() };
    let record = QueueRecord { settings, ..QueueRecord::default() };
    (RuleName::Queue(queue_name(queue)), Some(Arc::new(Rule::Queue(record))))
}

/// Returns the effect that sets a rule: this queue has a target with a value of this many bytes.
#[must_use]
pub fn sample_target(queue: &str, bytes: usize) -> RuleEffect {
    let retry = Some(Retry { max_attempts: Some(16), backoff: None });
    let target = Some(Arc::new(TargetRecord { value: vec![7; bytes].into(), retry }));
    let record = QueueRecord { target, ..QueueRecord::default() };
    (RuleName::Queue(queue_name(queue)), Some(Arc::new(Rule::Queue(record))))
}

/// Returns the effect that sets a rule: the job `id` has this value.
#[must_use]
pub fn sample_job(id: u64, value: &[u8]) -> RuleEffect {
    (RuleName::Job(id), Some(Arc::new(Rule::Job(value.into()))))
}
