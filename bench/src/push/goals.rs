//! The goals of targets, on two cores and loopback.

use crate::figures::Figures;
use crate::goal::{self, Goal, Wanted, goal};

const fn rate(kind: &'static str, least: f64, says: &'static str) -> Goal {
    goal(kind, ("push-rate", "messages_s"), Wanted::AtLeast(least), says)
}

const fn ratio(kind: &'static str, says: &'static str) -> Goal {
    goal(kind, ("push-rate", "messages_s/bare"), Wanted::AtLeast(0.5), says)
}

const GOALS: [Goal; 13] = [
    rate("webhook", 5_000.0, "webhooks a second"),
    ratio("webhook", "webhooks / hyper alone"),
    rate("kafka", 30_000.0, "records of Kafka a second"),
    ratio("kafka", "records of Kafka / krafka alone"),
    rate("nats", 30_000.0, "messages of NATS a second"),
    ratio("nats", "messages of NATS / async-nats alone"),
    rate("redis", 30_000.0, "entries of Redis a second"),
    ratio("redis", "entries of Redis / the crate redis alone"),
    rate("amqp", 15_000.0, "messages of RabbitMQ a second"),
    ratio("amqp", "messages of RabbitMQ / lapin alone"),
    ratio("beanstalk", "jobs of beanstalkd / a raw socket"),
    goal("webhook", ("push-lateness", "p99_ms"), Wanted::AtMost(20.0), "ms from due to confirmed, p99"),
    goal(
        "webhook",
        ("push-outage", "cpu_percent"),
        Wanted::AtMost(1.0),
        "% of a core while the target is down",
    ),
];

/// Returns a line for each goal that was measured.
pub(super) fn summary(figures: &Figures) -> String {
    goal::summary(figures, &GOALS, |_, _, _, _, _| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    #[test]
    fn each_kind_has_its_own_goal() {
        let mut report = Report::default();
        for (kind, rate, ratio) in [("kafka", 29_999.0, 0.5), ("amqp", 29_999.0, 0.4)] {
            report.add(kind, "push-rate", 150, "messages_s", rate);
            report.add(kind, "push-rate", 150, "messages_s/bare", ratio);
        }
        report.add("webhook", "push-outage", 100_000, "cpu_percent", 1.0);
        report.add("control-sleep", "push-lateness", 1_000, "p99_ms", 30.0);
        let summary = summary(&Figures::read(&report.csv()).expect("its own lines"));
        let words: Vec<_> = summary.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(words, ["missed", "met", "met", "missed", "met"], "{summary}");
    }
}
