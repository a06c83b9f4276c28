//! Compares every answer of every test with the server's own description.

use std::sync::LazyLock;

use serde_json::Value;
use tickwheel_api::{openapi, time};

use crate::raw::Reply;

static DOCUMENT: LazyLock<Value> = LazyLock::new(openapi::document);

/// Checks a complete answer. The tests themselves check paths and methods that are not described.
pub(crate) fn check(method: &str, target: &str, reply: &Reply) {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let Some(operation) = operation(method, path) else { return };
    let context =
        format!("{method} {path} answered {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    let response = &operation["responses"][reply.status.to_string()];
    assert!(response.is_object(), "this status is not described; {context}");
    for (name, _) in response["headers"].as_object().into_iter().flatten() {
        assert!(reply.header(&name.to_ascii_lowercase()).is_some(), "there is no {name}; {context}");
    }
    if method == "HEAD" {
        return;
    }
    let media = reply.header("content-type").unwrap_or_else(|| panic!("no content type; {context}"));
    let content = &response["content"][media];
    assert!(content.is_object(), "{media} is not described; {context}");
    let complain = |why: String| panic!("{why}; {context}");
    match media {
        "application/x-ndjson" => {
            for line in reply.lines() {
                matches(&line, &content["schema"]["items"], "").unwrap_or_else(complain);
            }
        }
        _ if media.ends_with("json") => {
            matches(&reply.json(), &content["schema"], "").unwrap_or_else(complain);
        }
        _ => {}
    }
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "get".to_owned() } else { method.to_ascii_lowercase() };
    let fits = |template: &str| {
        let (given, known): (Vec<_>, Vec<_>) = (path.split('/').collect(), template.split('/').collect());
        given.len() == known.len()
            && given.iter().zip(&known).all(|(given, known)| given == known || known.starts_with('{'))
    };
    let paths = DOCUMENT["paths"].as_object().expect("an object");
    paths.iter().find(|(template, _)| fits(template))?.1.get(method)
}

/// Whether a value conforms to a schema. An object may have no member that the schema does not name, so each answer
/// is described in full.
///
/// The function knows the keywords that the description uses, and fails if it meets another one. Patterns and lengths
/// concern requests only.
fn matches(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("`{place}` {what}: {value} is not {schema}"));
    if let Some(allowed) = schema.as_bool() {
        return if allowed { Ok(()) } else { wrong("may not be there") };
    }
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "description" | "examples" | "pattern" | "minLength" | "maxLength" | "contentEncoding" => {}
            "additionalProperties" | "required" => {}
            "$ref" => {
                let pointer = rule.as_str().expect("a text").trim_start_matches('#');
                matches(value, DOCUMENT.pointer(pointer).expect("it is there"), place)?;
            }
            // This rule says which members may occur together; the properties describe each member.
            "allOf" => {
                rule.as_array().expect("a list").iter().try_for_each(|part| matches(value, part, place))?
            }
            "oneOf" => {
                let options = rule.as_array().expect("a list").iter();
                if options.filter(|option| matches(value, option, place).is_ok()).count() != 1 {
                    return wrong("is not exactly one of these");
                }
            }
            "dependentRequired" => {
                for (name, others) in rule.as_object().expect("an object") {
                    let others = others
                        .as_array()
                        .expect("a list")
                        .iter()
                        .map(|other| other.as_str().expect("a text"));
                    if value.get(name).is_some() && others.into_iter().any(|other| value.get(other).is_none())
                    {
                        return wrong(&format!("has `{name}` without what goes with it"));
                    }
                }
            }
            "minProperties"
                if (value.as_object().map_or(0, serde_json::Map::len) as u64)
                    < rule.as_u64().expect("a number") =>
            {
                return wrong("has too few members");
            }
            "maxProperties"
                if (value.as_object().map_or(0, serde_json::Map::len) as u64)
                    > rule.as_u64().expect("a number") =>
            {
                return wrong("has too many members");
            }
            "uniqueItems" => {
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                if items.iter().enumerate().any(|(index, item)| items[..index].contains(item)) {
                    return wrong("has an item twice");
                }
            }
            "anyOf" => {
                let options = rule.as_array().expect("a list");
                if options.iter().all(|option| matches(value, option, place).is_err()) {
                    return wrong("is none of these");
                }
            }
            "type" => {
                let fits = match rule.as_str().expect("a text") {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("the type {other}"),
                };
                if !fits {
                    return wrong("has another type");
                }
            }
            "enum" if !rule.as_array().expect("a list").contains(value) => return wrong("is none of these"),
            "minimum" if value.as_f64() < rule.as_f64() => return wrong("is too small"),
            "maximum" if value.as_f64() > rule.as_f64() => return wrong("is too large"),
            "format" if rule == "date-time" && time::parse(value.as_str().unwrap_or_default()).is_err() => {
                return wrong("is no time");
            }
            "minItems"
                if (value.as_array().map_or(0, Vec::len) as u64) < rule.as_u64().expect("a number") =>
            {
                return wrong("is too short");
            }
            "maxItems" if value.as_array().map_or(0, Vec::len) as u64 > rule.as_u64().expect("a number") => {
                return wrong("is too long");
            }
            "enum" | "minimum" | "maximum" | "format" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => {}
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    matches(item, rule, &format!("{place}[{index}]"))?;
                }
            }
            "properties" => {
                let known = rule.as_object().expect("an object");
                let members = value.as_object().into_iter().flatten();
                for (name, member) in members {
                    match known.get(name) {
                        Some(schema) => matches(member, schema, &format!("{place}.{name}"))?,
                        // In addition to a reference, these members extend the referenced schema.
                        None if schema.get("$ref").is_some() || known.is_empty() => {}
                        // A rule of `allOf` or `oneOf` names only some members of its object.
                        None if schema.get("type").is_none() => {}
                        None => return wrong(&format!("has `{name}`, which is not described")),
                    }
                }
                for name in schema["required"].as_array().into_iter().flatten() {
                    if value.get(name.as_str().expect("a text")).is_none() {
                        return wrong(&format!("has no {name}"));
                    }
                }
            }
            other => panic!("the keyword {other} is not known here"),
        }
    }
    Ok(())
}

#[test]
fn an_undescribed_answer_is_found() {
    let schema = &DOCUMENT["components"]["schemas"]["QueueCounts"];
    let good = serde_json::json!({
        "queue": "q", "scheduled": 0, "ready": 0, "leased": 0, "dead": 0, "paused": false,
    });
    assert_eq!(matches(&good, schema, ""), Ok(()));
    for (name, value) in
        [("ready", "1".into()), ("ready", (-1).into()), ("more", 1.into()), ("paused", Value::Null)]
    {
        let mut bad = good.clone();
        bad[name] = value;
        assert!(matches(&bad, schema, "").is_err(), "{bad}");
    }
    let mut bad = good;
    bad.as_object_mut().expect("an object").remove("dead");
    assert!(matches(&bad, schema, "").is_err(), "{bad}");
}

#[test]
fn the_server_serves_its_description_and_a_page_for_each_problem() {
    let served = crate::served::Served::memory();
    assert_eq!(served.expect(200, "GET", "/openapi.json", ""), *DOCUMENT);
    for kind in tickwheel_api::ProblemKind::ALL {
        let page = served.expect(200, "GET", kind.type_uri(), "");
        assert_eq!((&page["type"], &page["status"]), (&kind.type_uri().into(), &kind.status().into()));
        assert!(page["remedy"].as_str().is_some_and(|text| text.ends_with('.')), "{page}");
    }
    served.expect(404, "GET", "/problems/no-such-problem", "");
}

/// The table names the parameters of an operation, and its handler reads them. A handler that does not read them would
/// ignore them all.
#[test]
fn each_operation_with_parameters_refuses_others() {
    let served = crate::served::Served::memory();
    let asked = openapi::OPERATIONS.iter().filter(|operation| !operation.query.is_empty());
    for operation in asked {
        let path = operation.path.replace("{q}", "q").replace("{key}", "k").replace("{name}", "n");
        let problem = served.expect(400, operation.method, &format!("{path}?nonsense=1"), "");
        assert_eq!(problem["parameter"], "nonsense", "{} {path}: {problem}", operation.method);
    }
}

/// Checks the data of a server-sent event.
pub(crate) fn check_event(topic: &str, data: &Value) {
    let name = match topic {
        "stats" => "StatsEvent",
        "queues" => "QueuesEvent",
        "jobs" => "JobsEvent",
        "wheel" => "WheelEvent",
        other => panic!("an event of the topic {other}"),
    };
    let schema = &DOCUMENT["components"]["schemas"][name];
    matches(data, schema, "").unwrap_or_else(|why| panic!("{why}; the event {topic}: {data}"));
}
