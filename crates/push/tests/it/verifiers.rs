//! Signatures, verified by the libraries that receivers use: `standardwebhooks` and `svix` of PyPI and of npm.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::kit::foreign;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use tickwheel_push::Message;
use tickwheel_push::webhook::{BodyForm, RequestPlan, SigningKey, Url, new_secret};
use tickwheel_queue::{Queue, QueueName};

const VERIFY: &str = r#"
import base64, json, sys
from standardwebhooks import Webhook as Standard
from svix.webhooks import Webhook as Svix
said = json.load(sys.stdin)
body = base64.b64decode(said["body"])
for secret in said["secrets"]:
    for library in (Standard, Svix):
        try:
            library(secret).verify(body, said["headers"])
            print("good")
        except Exception as error:
            print("bad:", error)
"#;

const VERIFY_IN_NODE: &str = r#"
const { Webhook: Standard } = require("standardwebhooks");
const { Webhook: Svix } = require("svix");
const said = JSON.parse(require("fs").readFileSync(0, "utf8"));
const body = Buffer.from(said.body, "base64").toString();
for (const secret of said.secrets) {
    for (const Library of [Standard, Svix]) {
        try {
            new Library(secret).verify(body, said.headers);
            console.log("good");
        } catch (error) {
            console.log("bad:", error.message);
        }
    }
}
"#;

/// Runs the libraries with these secrets.
fn verified(
    mut command: Command,
    secrets: &[&str],
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> Vec<String> {
    let said = serde_json::json!({ "secrets": secrets, "headers": headers, "body": STANDARD.encode(body) });
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("its libraries were loaded before");
    program.stdin.take().expect("a pipe").write_all(said.to_string().as_bytes()).expect("it reads");
    let output = program.wait_with_output().expect("it ends");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_libraries_of_python_verify_all_forms_with_each_secret_of_a_rotation() {
    each_form_is_verified(|| foreign::python(VERIFY, "standardwebhooks, svix")).await;
}

#[tokio::test]
async fn the_libraries_of_node_verify_all_forms_with_each_secret_of_a_rotation() {
    each_form_is_verified(|| foreign::node(VERIFY_IN_NODE, "svix")).await;
}

async fn each_form_is_verified(program: impl Fn() -> Option<Command>) {
    let queue = Queue::options().open_memory().expect("a queue");
    let name = QueueName::new("close").expect("a name");
    let secrets = [new_secret().expect("random numbers"), new_secret().expect("random numbers")];
    let other = new_secret().expect("random numbers");
    let keys: Vec<_> = secrets.iter().map(|secret| SigningKey::parse(secret).expect("a key")).collect();
    for form in [BodyForm::Payload, BodyForm::Envelope, BodyForm::CloudEvents] {
        let url = Url::parse("https://shop.example/hooks/{queue}").expect("a URL");
        let plan = RequestPlan::new("POST", url, form, &[], None).expect("a plan");
        let request = plan.request(&Message::test(&queue, &name), &keys).expect("a request");
        let (head, body) = request.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let headers = head.headers.iter();
        let headers: BTreeMap<String, String> = headers
            .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
            .collect();
        let [first, second] = [&secrets[0], &secrets[1]];
        let Some(command) = program() else { return };
        let results = verified(command, &[first, second, &other], &headers, &body);
        let is_good: Vec<_> = results.iter().map(|result| result == "good").collect();
        assert_eq!(is_good, [true, true, true, true, false, false], "{form:?}: {results:?}");
        let changed = [&body[..], b" "].concat();
        let results = verified(program().expect("it ran before"), &[first], &headers, &changed);
        assert!(results.iter().all(|result| result.starts_with("bad")), "{results:?}");
    }
}
