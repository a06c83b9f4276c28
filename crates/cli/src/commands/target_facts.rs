//! A target as a table for people: one line for each fact.

use serde_json::{Map, Value};
use tickwheel_api::{PushCounts, SecretBody, SigningBody, TargetView, time};

use crate::output::Row;

/// One line of the table.
pub(super) struct Fact {
    name: String,
    value: String,
}

impl Row for Fact {
    const HEADER: &'static [&'static str] = &["MEMBER", "VALUE"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&Map::from_iter([(self.name.clone(), self.value.clone().into())]))
            .expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.name.clone(), self.value.clone()]
    }
}

/// The state of a target and its settings. Secrets are named, and not shown.
pub(super) fn facts(view: &TargetView) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| facts.push(Fact { name: name.to_owned(), value });
    add("queue", view.queue.clone());
    add("kind", view.target.kind.name().to_owned());
    add("state", view.state.name().to_owned());
    if let Some(since) = view.since_ms {
        add("since", time::format(since));
    }
    if let Some(next_try) = view.next_try_ms {
        add("next try", time::format(next_try));
    }
    if let Some(reason) = &view.reason {
        add("reason", reason.clone());
    }
    add("in flight", view.in_flight.to_string());
    let PushCounts { acked, failed, dead, given_back, blocked } = view.attempts;
    add(
        "attempts",
        format!("acked {acked}, failed {failed}, dead {dead}, given back {given_back}, blocked {blocked}"),
    );
    add("version", view.version.to_string());
    for (name, value) in settings(view) {
        if name == "signing" {
            view.target.signing.iter().for_each(|signing| add("signing", signing_text(signing)));
        } else if name != "kind" {
            add(&name, text(&value));
        }
    }
    facts
}

fn settings(view: &TargetView) -> Map<String, Value> {
    serde_json::from_slice(&view.target.to_json()).expect("the settings are a JSON object")
}

fn signing_text(signing: &SigningBody) -> String {
    let secret = match &signing.secret {
        SecretBody::Text(_) => "set".to_owned(),
        SecretBody::Name(name) => named(name),
        SecretBody::Set { id } => set(id.as_deref()),
    };
    match signing.until_ms {
        Some(until) => format!("{secret}, until {}", time::format(until)),
        None => secret,
    }
}

fn named(name: &str) -> String {
    format!("the server's secret {name}")
}

fn set(id: Option<&str>) -> String {
    id.map_or("set".to_owned(), |id| format!("set, id {id}"))
}

/// A setting in words. An object that stands for a secret is named as such.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(members) if members.get("set") == Some(&Value::Bool(true)) => {
            set(members.get("id").and_then(Value::as_str))
        }
        Value::Object(members) => match members.get("name") {
            Some(Value::String(name)) if members.len() == 1 => named(name),
            _ => members.iter().map(member).collect::<Vec<_>>().join(", "),
        },
        other => other.to_string(),
    }
}

fn member((name, value): (&String, &Value)) -> String {
    format!("{name}: {}", text(value))
}

#[cfg(test)]
mod tests {
    use tickwheel_api::{TargetBody, TargetState};

    use super::*;

    fn shown(settings: &str) -> Vec<String> {
        let view = TargetView {
            queue: "orders".to_owned(),
            target: TargetBody::parse(settings.as_bytes()).expect(settings),
            version: 7,
            state: TargetState::Open,
            since_ms: Some(1_893_456_000_000),
            next_try_ms: Some(1_893_456_008_000),
            reason: Some("http 503".to_owned()),
            in_flight: 2,
            attempts: PushCounts { acked: 5, given_back: 1, ..PushCounts::default() },
        };
        facts(&view).into_iter().map(|fact| format!("{}={}", fact.name, fact.value)).collect()
    }

    #[test]
    fn secrets_are_named_and_not_shown() {
        let lines = shown(concat!(
            r#"{"kind":"webhook","url":"https://a.example/x","headers":{"shop":"eu"},"dead_on":[400,422],"#,
            r#""signing":[{"secret":{"set":true,"id":"5e884898"}},{"secret":{"name":"old"},"until":"2030-01-01T00:00:00Z"}],"#,
            r#""auth":{"basic":{"user":"u","password":{"set":true}}}}"#,
        ));
        for line in [
            "queue=orders",
            "state=open",
            "since=2030-01-01T00:00:00.000Z",
            "next try=2030-01-01T00:00:08.000Z",
            "reason=http 503",
            "in flight=2",
            "attempts=acked 5, failed 0, dead 0, given back 1, blocked 0",
            "version=7",
            "url=https://a.example/x",
            "headers=shop: eu",
            "dead_on=400, 422",
            "signing=set, id 5e884898",
            "signing=the server's secret old, until 2030-01-01T00:00:00.000Z",
            "auth=basic: password: set, user: u",
        ] {
            assert!(lines.iter().any(|shown| shown == line), "{line} is not in {lines:#?}");
        }
    }

    #[test]
    fn a_secret_that_is_written_out_is_not_shown_either() {
        let lines = shown(
            r#"{"kind":"webhook","url":"https://a.example/x","signing":[{"secret":"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}]}"#,
        );
        assert!(!lines.concat().contains("whsec_"), "{lines:#?}");
    }
}
