//! Signatures, verified by the libraries that receivers use: `standardwebhooks` and `svix` of PyPI.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

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

/// Runs the libraries with these secrets; `None`: they are not installed.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn verified(secrets: &[&str], headers: &BTreeMap<String, String>, body: &[u8]) -> Option<Vec<String>> {
    let can_import = Command::new("python3").args(["-c", "import standardwebhooks, svix"]).output();
    if !can_import.is_ok_and(|done| done.status.success()) {
        let text = "python3 has no standardwebhooks and svix: pip install standardwebhooks svix";
        assert!(std::env::var_os("TICKWHEEL_REQUIRE_ALL").is_none(), "{text}");
        eprintln!("SKIPPED: {text}");
        return None;
    }
    let said = serde_json::json!({ "secrets": secrets, "headers": headers, "body": STANDARD.encode(body) });
    let mut command = Command::new("python3");
    let mut python = command
        .args(["-c", VERIFY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it ran before");
    python.stdin.take().expect("a pipe").write_all(said.to_string().as_bytes()).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn the_libraries_of_receivers_verify_all_forms_with_each_secret_of_a_rotation() {
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
        let Some(results) = verified(&[first, second, &other], &headers, &body) else { return };
        let is_good: Vec<_> = results.iter().map(|result| result == "good").collect();
        assert_eq!(is_good, [true, true, true, true, false, false], "{form:?}: {results:?}");
        let changed = [&body[..], b" "].concat();
        let results = verified(&[first], &headers, &changed).expect("it ran before");
        assert!(results.iter().all(|result| result.starts_with("bad")), "{results:?}");
    }
}
