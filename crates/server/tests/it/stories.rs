//! `GET .../story`: what happened to a task, what comes, and why it does not run now.

use serde_json::{Value, json};

use crate::served::Served;

const TASK: &str = "/v1/queues/close/tasks/order:1";
const STORY: &str = "/v1/queues/close/tasks/order:1/story";

fn words(events: &Value) -> Vec<&str> {
    events.as_array().expect("a list").iter().map(|event| event["what"].as_str().expect("a word")).collect()
}

fn why(served: &Served) -> String {
    served.expect(200, "GET", STORY, "")["why"].as_str().expect("a sentence").to_owned()
}

#[test]
fn the_story_follows_the_task_from_its_put_to_its_end() {
    let served = Served::memory();
    served.call("GET", STORY, "").assert_problem(404, "not-found", "nothing was put");
    served.call("PUT", TASK, r#"{"delay":"1h","expire_after":"1d","retry":{"max_attempts":3,"backoff":"fixed","base":"10s","jitter":0}}"#);
    let told = served.expect(200, "GET", STORY, "");
    assert_eq!((words(&told["events"]), words(&told["next"])), (vec!["put"], vec!["due", "expires"]));
    assert_eq!(told["complete"], true);
    assert!(why(&served).ends_with(", in 1h."), "{}", why(&served));
    served.advance("1h");
    let body = json!({"worker": "mailer-1", "lease": "1m"}).to_string();
    let leased = served.expect(200, "POST", "/v1/queues/close/lease", &body);
    let told = served.expect(200, "GET", STORY, "");
    assert_eq!(words(&told["events"]), ["put", "due", "leased"]);
    assert_eq!((&told["events"][2]["by"], &told["events"][2]["attempt"]), (&json!("mailer-1"), &json!(1)));
    assert_eq!(words(&told["next"]), ["lease_ends", "expires"]);
    assert!(why(&served).starts_with("The worker `mailer-1` has the task"), "{}", why(&served));
    let nack = json!({"tokens": [leased["tasks"][0]["token"]], "reason": "no paper"}).to_string();
    served.expect(200, "POST", "/v1/queues/close/nack", &nack);
    let told = served.expect(200, "GET", STORY, "");
    assert_eq!(
        (&told["events"][1]["what"], &told["events"][1]["reason"]),
        (&json!("nacked"), &json!("no paper"))
    );
    assert!(
        why(&served).starts_with("Attempt 1 failed with the reason `no paper`, and the task is due again at"),
        "{}",
        why(&served)
    );
    served.expect(200, "POST", "/v1/queues/close/tasks/order:1/run", "");
    let told = served.expect(200, "GET", STORY, "");
    assert_eq!((words(&told["events"])[1], &told["events"][1]["at"]), ("changed", &Value::Null));
    assert_eq!(told["complete"], false, "it is not kept when");
    let leased = served.expect(200, "POST", "/v1/queues/close/lease", "");
    let ack = json!({"tokens": [leased["tasks"][0]["token"]]}).to_string();
    served.expect(200, "POST", "/v1/queues/close/ack", &ack);
    let told = served.expect(200, "GET", STORY, "");
    assert_eq!((words(&told["events"]), &told["next"]), (vec!["done"], &json!([])));
    assert_eq!(told["why"], "The task is done: it was acked.");
}

#[test]
fn a_ready_task_says_what_holds_it_up() {
    let served = Served::memory();
    served.call("PUT", TASK, r#"{"group":"g"}"#);
    assert!(why(&served).contains("no worker asks"), "{}", why(&served));
    served.expect(200, "POST", "/v1/queues/close/pause", "");
    assert!(
        why(&served).contains("its queue is paused until `tickwheel queues resume close`."),
        "{}",
        why(&served)
    );
    served.expect(200, "POST", "/v1/queues/close/pause", r#"{"for":"1h"}"#);
    assert!(why(&served).contains("its queue is paused until 2"), "{}", why(&served));
    assert!(why(&served).contains("Z, and `tickwheel queues resume close` ends the pause at once."));
    served.expect(200, "POST", "/v1/queues/close/resume", "");
    served.call("PUT", "/v1/queues/close/tasks/first", r#"{"group":"g","priority":1}"#);
    served.expect(200, "POST", "/v1/queues/close/lease", "");
    for (settings, what) in [
        (r#"{"max_in_flight":1}"#, "its queue has 1 of 1 tasks in flight"),
        (r#"{"max_in_flight_per_group":1}"#, "its group `g` has 1 of 1 tasks in flight"),
    ] {
        served.expect(200, "PUT", "/v1/queues/close", settings);
        assert!(why(&served).contains(what), "{settings}: {}", why(&served));
    }
    served.expect(200, "PUT", "/v1/queues/close", r#"{"rate":"1/m","burst":1}"#);
    served.call("PUT", "/v1/queues/close/tasks/quick", r#"{"priority":1}"#);
    served.expect(200, "POST", "/v1/queues/close/lease", "");
    let rate = "the rate of its queue, 1/m, allows the next delivery in ";
    assert!(why(&served).contains(rate), "{}", why(&served));
    served.expect(200, "PUT", "/v1/queues/close", "{}");
    served.call("PUT", "/v1/queues/close/tasks/ahead", r#"{"priority":1}"#);
    assert!(why(&served).contains("1 task may be ahead of it"), "{}", why(&served));
}
