//! `docs/reference/http.md`: the description of the HTTP API as a page in Markdown. It is made and compared by tests only.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use super::bodies::schemas;
use super::operation::{Content, Needs, Operation};
use super::parameter::{Parameter, parameters};
use super::table::OPERATIONS;
use crate::EVENTS_CONTENT_TYPE;
use crate::declare::{Member, Schema};

/// The reference of the HTTP API in Markdown: every route and every body.
fn reference() -> String {
    let mut page = String::from(
        "# The HTTP API, route by route\n\n\
         This page is made from the same code as `GET /openapi.json`, and a test compares the two. It lists all routes and bodies. [Problems](problems.md) has all errors,\n\
         and [the calls at a glance](calls.md) are the short form. Every `GET` also works as `HEAD`. A parameter or a member that a route does not list is refused.\n\n\
         - [Routes](#routes)\n- [Bodies of requests and answers](#bodies-of-requests-and-answers)\n- [Problems](#problems)\n\n## Routes\n",
    );
    let known = parameters();
    for operation in &OPERATIONS {
        route(&mut page, operation, &known);
    }
    page.push_str("\n## Bodies of requests and answers\n");
    for schema in schemas() {
        body(&mut page, &schema);
    }
    page.push_str(
        "\n## Problems\n\nErrors are answered as `application/problem+json` (RFC 9457): a [Problem](#problem). [Problems](problems.md) lists all kinds, with what to do and an example of each. \
         `GET` of the `type` of a problem returns its meaning and its remedy.\n",
    );
    page
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a string takes all");
}

fn route(page: &mut String, operation: &Operation, known: &[Parameter]) {
    let Operation { method, path, .. } = operation;
    line(page, format_args!("\n### `{method} {path}`\n\n{}. {}\n", operation.what(), whom(operation.needs)));
    for name in operation.query.iter().chain(operation.headers) {
        let parameter =
            known.iter().find(|known| known.name == *name && !known.is_in_path()).expect("each is described");
        let kind = if operation.headers.contains(name) { "header" } else { "parameter" };
        let must = if operation.query_required && kind == "parameter" { " (required)" } else { "" };
        line(page, format_args!("- {kind} `{name}`{must}: {}", parameter.what));
    }
    if let Some(sent) = &operation.body {
        let how = if sent.lines { ", one on each line" } else { "" };
        let may = if sent.required { "" } else { " (optional)" };
        line(page, format_args!("- body: {}{how}{may}", link(sent.schema)));
    }
    for answer in operation.answers {
        let given = match answer.content {
            Content::Json("RedrivenOneOrMany") => {
                format!("{}, {} or {}", link("Stored"), link("Redriven"), link("BulkRedriven"))
            }
            Content::Json(schema) => link(schema),
            Content::JsonOrPage(schema) => format!("{} or `text/html`", link(schema)),
            Content::Lines(schema) => format!("{}, one on each line", link(schema)),
            Content::Events(schemas) => {
                let schemas: Vec<_> = schemas.iter().map(|schema| link(schema)).collect();
                format!("`{EVENTS_CONTENT_TYPE}`, the data of an event: {}", schemas.join(" or "))
            }
            Content::Text(kinds) => format!("`{}`", kinds.join("` or `")),
            Content::OpenApi => "OpenAPI 3.1".to_owned(),
        };
        line(page, format_args!("- {}: {given}. {}", answer.status, answer.what));
    }
    let problems = operation.problems.iter().map(|kind| {
        let name = kind.path();
        format!("[{name}](problems.md#{name})")
    });
    let problems: Vec<_> = problems.collect();
    if !problems.is_empty() {
        line(
            page,
            format_args!("- problems, beside those that every route can have: {}", problems.join(", ")),
        );
    }
}

fn whom(needs: Needs) -> String {
    match needs {
        Needs::Nothing => "Needs no token.".to_owned(),
        Needs::Token => "Needs any token.".to_owned(),
        Needs::In(right) | Needs::Somewhere(right) => format!("Needs `{}`.", right.name()),
        Needs::Everywhere(right) => format!("Needs `{}`, and a token without a scope.", right.name()),
    }
}

/// A link to the heading of a schema.
fn link(schema: &str) -> String {
    format!("[{schema}](#{})", schema.to_ascii_lowercase())
}

fn body(page: &mut String, schema: &Schema) {
    line(page, format_args!("\n### {}\n\n{}\n", schema.name, schema.what));
    if schema.members.is_empty() {
        return;
    }
    line(page, format_args!("| member | | |\n|---|---|---|"));
    for member in &schema.members {
        let Member { name, required, schema, what } = member;
        let always = if *required { ", always" } else { "" };
        line(page, format_args!("| `{name}` | {}{always} | {what} |", kind(schema)));
    }
}

/// The type of a value in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return link(reference.rsplit('/').next().unwrap_or_default());
    }
    if let Some(several) = schema["anyOf"].as_array() {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        if words.iter().any(|word| word.as_str().is_some_and(|word| word.starts_with("/problems/"))) {
            return "one of [these](problems.md)".to_owned();
        }
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" ");
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some("duration-text")) => "duration".to_owned(),
        (_, Some("date-time")) => "RFC 3339".to_owned(),
        (Some("integer"), _) => match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
            (Some(min), Some(max)) if max < crate::text::portable::INTEGER_MAX => {
                format!("integer, {min} to {max}")
            }
            _ => "integer".to_owned(),
        },
        (Some("string"), _) => match schema["maxLength"].as_u64() {
            Some(max) => format!("text, up to {max} bytes"),
            None => "text".to_owned(),
        },
        (Some("array"), _) => format!("list of {}", kind(&schema["items"])),
        (Some(other), _) => other.to_owned(),
        (None, _) => "any JSON".to_owned(),
    }
}

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "reference", "http.md"].iter().collect()
}

#[test]
fn the_page_is_that_of_this_version() {
    let written = std::fs::read_to_string(path()).expect("the page is there");
    let differs = reference().lines().zip(written.lines()).position(|(made, written)| made != written);
    assert!(
        written == reference(),
        "docs/reference/http.md is another from line {} on; `cargo test -p tickwheel-api --lib write_the_page -- --ignored` writes it",
        differs.map_or(0, |line| line + 1)
    );
}

#[test]
#[ignore = "it writes the page"]
fn write_the_page() {
    std::fs::write(path(), reference()).expect("written");
}
