//! The description of the HTTP API: every operation with its parameters, bodies, answers and problems.
//!
//! [`document`] returns it as OpenAPI 3.1, for programs. `docs/reference/http.md` is the same description for people, and a test compares the two.
//! Both are made from one table, [`OPERATIONS`], and from the limits and words that the readers of requests use. Tests of the server
//! compare the server with the description.

use serde_json::{Map, Value, json};

pub use super::operation::{Needs, Operation};
pub use super::table::{OPERATIONS, OperationId};
pub use crate::values::right::Right;

use super::bodies::schemas;
use super::operation::{Answer, Content};
use super::parameter;
use crate::declare::schema::of;
use crate::tasks::batch::BATCH_CONTENT_TYPE;
use crate::{EVENTS_CONTENT_TYPE, PROBLEM_CONTENT_TYPE, ProblemKind};

/// The description as OpenAPI 3.1. Cost: some milliseconds.
///
/// ```
/// let document = tickwheel_api::openapi::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert_eq!(document["paths"]["/v1/queues/{q}/lease"]["post"]["operationId"], "lease");
/// ```
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in &OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.to_ascii_lowercase()] = described(operation);
    }
    let mut schemas: Map<String, Value> =
        schemas().iter().map(|schema| (schema.name.to_owned(), schema.value())).collect();
    schemas.insert(
        "RedrivenOneOrMany".to_owned(),
        json!({ "anyOf": [of("Redriven"), of("BulkRedriven"), of("Stored")] }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tickwheel",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Does things later, exactly when due, and loses none.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        // A relative URL: the document describes the server that it was read from.
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": parameter::all(),
            "headers": parameter::answer_headers(),
            "securitySchemes": { "token": {
                "type": "http", "scheme": "bearer", "description": "Required if the server has tokens. A server without tokens allows every call.",
            } },
        },
    })
}

fn described(operation: &Operation) -> Value {
    let query = operation.query.iter().map(|name| match operation.query_required {
        true => parameter::required(name),
        false => parameter::reference_to(name, false),
    });
    let headers = operation.headers.iter().map(|name| parameter::reference_to(name, false));
    let path = operation.names().map(|name| parameter::reference_to(name, true));
    let parameters: Vec<_> = path.chain(query).chain(headers).collect();
    let mut responses: Map<String, Value> = Map::new();
    for answer in operation.answers {
        responses.insert(answer.status.to_string(), success(answer));
    }
    for (status, kinds) in operation.all_problems() {
        // A status may have both an answer and problems. In that case the problem is a second content type of the answer.
        responses
            .entry(status.to_string())
            .and_modify(|before| add_problem(before, &kinds))
            .or_insert_with(|| refusal(&kinds));
    }
    let mut described = json!({
        "operationId": operation.id.name(),
        "summary": operation.what(),
        "parameters": parameters,
        "responses": responses,
        "security": security(operation.needs),
    });
    if let Some(body) = &operation.body {
        let content = match body.lines {
            true => json!({ BATCH_CONTENT_TYPE: { "schema": lines_of(body.schema) } }),
            false => json!({ "application/json": { "schema": of(body.schema) } }),
        };
        described["requestBody"] = json!({ "required": body.required, "content": content });
    }
    described
}

fn security(needs: Needs) -> Value {
    match needs {
        Needs::Nothing => json!([]),
        // The empty requirement is for servers without tokens.
        _ => json!([{ "token": [] }, {}]),
    }
}

/// The schema of an NDJSON body. JSON Schema cannot describe the lines of a text, so the body is described as a list of the objects.
fn lines_of(schema: &str) -> Value {
    json!({ "type": "array", "items": of(schema), "description": "One JSON object on each line, without brackets and commas." })
}

fn success(answer: &Answer) -> Value {
    let content = match answer.content {
        Content::Json(schema) => json!({ "application/json": { "schema": of(schema) } }),
        Content::JsonOrPage(schema) => {
            json!({ "application/json": { "schema": of(schema) }, "text/html": { "schema": { "type": "string" } } })
        }
        Content::Lines(schema) => json!({ BATCH_CONTENT_TYPE: { "schema": lines_of(schema) } }),
        Content::Events(schemas) => {
            let data: Vec<_> = schemas.iter().map(|schema| of(schema)).collect();
            json!({ EVENTS_CONTENT_TYPE: { "schema": {
                "type": "array",
                "items": { "anyOf": data },
                "description": "Server-sent events. The data of each event is one JSON object.",
            } } })
        }
        Content::Text(kinds) => {
            kinds.iter().map(|kind| (*kind, json!({ "schema": { "type": "string" } }))).collect()
        }
        Content::OpenApi => json!({ "application/json": { "schema": { "type": "object" } } }),
    };
    let mut described = json!({ "description": answer.what, "content": content });
    if !answer.headers.is_empty() {
        described["headers"] = parameter::headers_of(answer.headers);
    }
    described
}

fn refusal(kinds: &[ProblemKind]) -> Value {
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title()).collect();
    json!({ "description": format!("A problem: {}.", titles.join("; ")), "content": { PROBLEM_CONTENT_TYPE: { "schema": problem(kinds) } } })
}

fn add_problem(answer: &mut Value, kinds: &[ProblemKind]) {
    answer["content"][PROBLEM_CONTENT_TYPE] = json!({ "schema": problem(kinds) });
}

/// The schema of a problem that has one of these kinds.
fn problem(kinds: &[ProblemKind]) -> Value {
    let types: Vec<_> = kinds.iter().map(|kind| kind.type_uri()).collect();
    json!({ "$ref": "#/components/schemas/Problem", "properties": { "type": { "enum": types } } })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All names to which a document refers.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    /// A body with more members would not fit into the slots of its reader.
    #[test]
    fn no_body_has_too_many_members() {
        let largest = schemas().iter().map(|schema| schema.members.len()).max();
        assert!(
            largest.is_some_and(|members| (20..=crate::declare::body::MEMBERS_MAX).contains(&members)),
            "{largest:?}"
        );
    }

    #[test]
    fn every_part_is_there_and_is_used() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} is nowhere");
        }
        for kind in ["schemas", "parameters", "headers"] {
            for name in document["components"][kind].as_object().expect("an object").keys() {
                let reference = format!("#/components/{kind}/{name}");
                assert!(found.contains(&reference), "nothing refers to {reference}");
            }
        }
    }

    #[test]
    fn a_path_has_each_method_once() {
        let places: BTreeSet<_> =
            OPERATIONS.iter().map(|operation| (operation.path, operation.method)).collect();
        assert_eq!(places.len(), OPERATIONS.len());
    }

    #[test]
    fn every_problem_can_be_met_or_is_about_the_path_itself() {
        let met: BTreeSet<_> = OPERATIONS
            .iter()
            .flat_map(|operation| operation.all_problems().into_values().flatten().map(ProblemKind::type_uri))
            .collect();
        let unmet: Vec<_> =
            ProblemKind::ALL.into_iter().filter(|kind| !met.contains(kind.type_uri())).collect();
        assert_eq!(unmet, [ProblemKind::BadMethod]);
    }
}
