//! `/v1/queues/{q}/schedules`.

use serde_json::json;

use crate::served::{Served, on_any_port};
use tickwheel_server::{Config, Store};

const NIGHTLY: &str = "/v1/queues/reports/schedules/nightly";

fn keys(served: &Served, queue: &str) -> Vec<String> {
    let page = served.expect(200, "GET", &format!("/v1/queues/{queue}/tasks"), "");
    let tasks = page["tasks"].as_array().expect("an array");
    tasks.iter().map(|task| task["key"].as_str().expect("a key").to_owned()).collect()
}

/// A server whose clock begins in January 2030, a Tuesday.
fn at_new_year() -> Served {
    let served = Served::memory();
    let now = served.advance("1ms");
    let now_ms = tickwheel_api::time::parse(now["now"].as_str().expect("an instant")).expect("RFC 3339");
    served.advance(&format!("{}ms", 1_893_456_000_000 - now_ms));
    served
}

#[test]
fn a_schedule_is_put_shown_changed_and_deleted() {
    let served = at_new_year();
    let spec = r#"{"cron":"0 2 * * *","tz":"America/New_York","payload":{"report":"daily"},"tags":["r"]}"#;
    let reply = served.call("PUT", NIGHTLY, spec);
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(reply.header("location"), Some(NIGHTLY));
    let made = reply.json();
    assert_eq!(made["next_at"], "2030-01-01T07:00:00.000Z");
    assert_eq!(
        (&made["name"], &made["overlap"], &made["catch_up"]),
        (&"nightly".into(), &"allow".into(), &"once".into())
    );
    let etag = reply.header("etag").expect("a version").to_owned();
    let again = served.call("PUT", NIGHTLY, spec);
    assert_eq!((again.status, again.header("etag")), (200, Some(etag.as_str())), "the same again");
    served.advance("2d");
    assert_eq!(
        keys(&served, "reports"),
        ["nightly@2030-01-01T07:00:00.000Z", "nightly@2030-01-02T07:00:00.000Z"]
    );
    let leased = served.lease("reports", 1);
    assert_eq!((&leased[0]["payload"]["report"], &leased[0]["tags"][0]), (&"daily".into(), &"r".into()));
    let shown = served.expect(200, "GET", NIGHTLY, "");
    assert_eq!((&shown["made"], &shown["last_at"]), (&2.into(), &"2030-01-02T07:00:00.000Z".into()));
    let stale = [("if-match", "\"1\"")];
    served.call_with("PUT", NIGHTLY, &stale, spec).assert_problem(
        412,
        "version-mismatch",
        "the schedule has version",
    );
    let matching = [("if-match", etag.as_str())];
    let other = served.call_with("PUT", NIGHTLY, &matching, r#"{"every":"1h"}"#);
    assert_eq!((other.status, &other.json()["made"]), (200, &2.into()));
    assert_eq!(served.expect(200, "DELETE", NIGHTLY, "")["result"], "deleted");
    served.call("GET", NIGHTLY, "").assert_problem(404, "no-schedule", "nightly");
    served.call("DELETE", NIGHTLY, "").assert_problem(404, "no-schedule", "nightly");
    served.advance("5d");
    assert_eq!(keys(&served, "reports").len(), 2, "its tasks stay, and no more are made");
}

#[test]
fn a_preview_shows_the_changes_of_daylight_saving_time() {
    let served = at_new_year();
    served.expect(
        201,
        "PUT",
        NIGHTLY,
        r#"{"cron":"30 2 * * *","tz":"America/New_York","start":"2030-03-09T00:00:00Z"}"#,
    );
    let preview = served.expect(200, "GET", &format!("{NIGHTLY}/preview?count=3"), "");
    let shown = preview["occurrences"].as_array().expect("an array");
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[0]["local"], "2030-03-09T02:30:00-05:00");
    assert!(shown[0].get("note").is_none());
    assert_eq!(
        (&shown[1]["at"], &shown[1]["key"]),
        (&"2030-03-10T07:00:00.000Z".into(), &"nightly@2030-03-10T07:00:00.000Z".into())
    );
    assert!(shown[1]["note"].as_str().expect("a note").contains("does not exist"), "{}", shown[1]);
    let few = "/v1/queues/reports/schedules/few";
    served.expect(201, "PUT", few, r#"{"every":"1h","count":2}"#);
    let preview = served.expect(200, "GET", &format!("{few}/preview"), "");
    assert_eq!(preview["occurrences"].as_array().map(Vec::len), Some(2));
    assert!(preview["note"].as_str().expect("a note").contains("at most 2"), "{preview}");
    let path = format!("{few}/preview?count=0");
    served.call("GET", &path, "").assert_problem(400, "bad-request", "`0` is not a number from 1 to 1000");
}

#[test]
fn invalid_schedules_are_refused_with_the_member() {
    let served = at_new_year();
    for (body, what) in [
        ("", "has none of `cron`, `every` and `fixed_delay`"),
        (r#"{"cron":"0 0 30 2 *"}"#, "`cron`: `0 0 30 2 *` never fires"),
        (
            r#"{"cron":"61 * * * *"}"#,
            "`cron`: `61 * * * *` is no cron expression: minute, character 1: 61 is not",
        ),
        // The search for the next instant of this one held up the whole server.
        (r#"{"cron":", * * * *"}"#, "minute, character 1: there is nothing between two commas"),
        (r#"{"cron":"0 0 , * *"}"#, "day of month, character 5: there is nothing between two commas"),
        (r#"{"cron":"0 0 */2 * MON"}"#, "vixie's cron reads this as both, Kubernetes as either"),
        (r#"{"cron":"* * * * *","tz":"Mars/Olympus"}"#, "`tz`: `Mars/Olympus` is no time zone"),
        (r#"{"every":"1h","end":"2029-01-01T00:00:00Z"}"#, "leaves no occurrence ahead"),
        (r#"{"every":"10ms"}"#, "`every`: 10ms is not from 100ms"),
    ] {
        served.call("PUT", NIGHTLY, body).assert_problem(400, "bad-request", what);
    }
    let long = format!(r#"{{"every":"1h","payload":"{}"}}"#, "x".repeat(70_000));
    served.call("PUT", NIGHTLY, &long).assert_problem(400, "bad-request", "a schedule takes at most 65536");
    served.call("PUT", "/v1/queues/q/schedules/", "{}").assert_problem(400, "bad-name", "schedule name");
    served.call("POST", NIGHTLY, "{}").assert_problem(405, "bad-method", "POST");
    served.call("GET", "/v1/queues/q/schedules?cursor=xyz", "").assert_problem(400, "bad-request", "cursor");
}

#[test]
fn schedules_of_all_queues_are_listed_page_by_page() {
    let served = at_new_year();
    assert_eq!(served.expect(200, "GET", "/v1/schedules", ""), json!({"schedules": [], "next_cursor": null}));
    for place in ["q/schedules/b", "q/schedules/a%20-", "r/schedules/a", "p/schedules/z"] {
        served.expect(201, "PUT", &format!("/v1/queues/{place}"), r#"{"every":"1h"}"#);
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.expect(200, "GET", &format!("/v1/schedules?limit=1{cursor}"), "");
        let of_page = page["schedules"].as_array().expect("an array");
        assert_eq!(of_page.len(), 1);
        found.extend(of_page.iter().map(|one| format!("{}:{}", one["queue"], one["name"]).replace('"', "")));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, ["p:z", "q:a -", "q:b", "r:a"]);
    for bad in ["cursor=61", "cursor=61-6g", "cursor=", "limit=0", "limit=1001", "queue=q"] {
        served.call("GET", &format!("/v1/schedules?{bad}"), "").assert_problem(400, "bad-request", "");
    }
}

/// The names on all pages of a list, and the number of pages.
fn all_pages(served: &Served, query: &str, mut between: impl FnMut(usize)) -> (Vec<String>, usize) {
    let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = served.expect(200, "GET", &format!("/v1/schedules?{query}{cursor}"), "");
        let of_page = page["schedules"].as_array().expect("an array");
        found.extend(of_page.iter().map(|one| format!("{}:{}", one["queue"], one["name"]).replace('"', "")));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (found, pages),
        }
        between(pages);
    }
}

#[test]
fn schedules_are_listed_by_prefix_and_by_a_part_of_their_names() {
    let served = at_new_year();
    for place in
        ["shop/a/schedules/nightly", "shop/b/schedules/hourly", "shop/schedules/x", "q/schedules/nightly"]
    {
        let place = place.replacen("shop/", "shop%2F", usize::from(place.matches('/').count() == 3));
        served.expect(201, "PUT", &format!("/v1/queues/{place}"), r#"{"every":"1h"}"#);
    }
    let of = |query: &str| all_pages(&served, query, |_| {});
    for sort in ["name", "next"] {
        let of = |query: &str| of(&format!("limit=1&sort={sort}&{query}")).0;
        assert_eq!(of("prefix=shop%2F"), ["shop/a:nightly", "shop/b:hourly"]);
        assert_eq!(of("prefix=shop"), ["shop:x", "shop/a:nightly", "shop/b:hourly"]);
        assert_eq!(of("name_contains=ight"), ["q:nightly", "shop/a:nightly"]);
        assert_eq!(of("name_contains=ight&prefix=s"), ["shop/a:nightly"]);
        assert_eq!(of("prefix=none"), [""; 0]);
    }
    for bad in ["prefix=-", "prefix=%C3%BC", "sort=due", "sort="] {
        let name = bad.split('=').next().expect("a name");
        served.call("GET", &format!("/v1/schedules?{bad}"), "").assert_problem(400, "bad-request", name);
    }
    let long = format!("/v1/schedules?name_contains={}", "x".repeat(201));
    served.call("GET", &long, "").assert_problem(400, "bad-request", "has 201 bytes");
    for other in ["prefix=q", "sort=next", "name_contains=x"] {
        let path = format!("/v1/queues/q/schedules?{other}");
        served.call("GET", &path, "").assert_problem(
            400,
            "bad-request",
            "is not a parameter of this request",
        );
    }
}

#[test]
fn schedules_are_listed_by_their_next_instants() {
    let served = at_new_year();
    for (place, spec) in [
        ("q/schedules/late", r#"{"every":"3h"}"#),
        ("r/schedules/soon", r#"{"every":"1h"}"#),
        ("p/schedules/then", r#"{"every":"2h"}"#),
        ("a/schedules/same", r#"{"every":"2h"}"#),
        ("a/schedules/once", r#"{"every":"1m","count":1}"#),
    ] {
        served.expect(201, "PUT", &format!("/v1/queues/{place}"), spec);
    }
    served.advance("30m");
    let order = ["r:soon", "a:same", "p:then", "q:late", "a:once"];
    for limit in [1, 2, 4, 5] {
        let (found, pages) = all_pages(&served, &format!("sort=next&limit={limit}"), |_| {});
        assert_eq!((found, pages), (order.map(str::to_owned).to_vec(), 5_usize.div_ceil(limit)), "{limit}");
    }
    // `r:soon` puts a task while the pages are read: it is listed again at its next place, and nothing is missed.
    let (found, _) = all_pages(&served, "sort=next&limit=2", |pages| {
        if pages == 1 {
            served.advance("1h");
        }
    });
    assert_eq!(found, ["r:soon", "a:same", "p:then", "r:soon", "q:late", "a:once"]);
    let page = served.expect(200, "GET", "/v1/schedules?sort=next&limit=1", "");
    let next = page["next_cursor"].as_str().expect("more");
    for (sort, cursor) in [("name", next), ("next", "61-61"), ("next", "n-61"), ("next", "nn-61-61")] {
        let path = format!("/v1/schedules?sort={sort}&cursor={cursor}");
        served.call("GET", &path, "").assert_problem(400, "bad-request", "is not a cursor of this list");
    }
}

/// More schedules than two pages of the engine.
#[test]
fn the_soonest_are_found_behind_any_number_of_others() {
    let served = at_new_year();
    for index in 0..=1_000 {
        let spec = format!(r#"{{"every":"{}s"}}"#, 5_000 - index);
        served.expect(201, "PUT", &format!("/v1/queues/q/schedules/{index:04}"), &spec);
    }
    let page = served.expect(200, "GET", "/v1/schedules?sort=next&limit=3", "");
    let names = |page: &serde_json::Value| -> Vec<serde_json::Value> {
        page["schedules"].as_array().expect("an array").iter().map(|one| one["name"].clone()).collect()
    };
    assert_eq!(names(&page), ["1000", "0999", "0998"]);
    let rest =
        format!("/v1/schedules?sort=next&limit=1000&cursor={}", page["next_cursor"].as_str().expect("more"));
    let rest = served.expect(200, "GET", &rest, "");
    let names = names(&rest);
    assert_eq!((names.len(), &names[0], &names[997]), (998, &json!("0997"), &json!("0000")));
    assert_eq!(rest["next_cursor"], json!(null));
}

#[test]
fn a_schedule_that_is_not_stored_has_a_preview() {
    let served = at_new_year();
    let preview =
        |spec: &str, query: &str| served.expect(200, "POST", &format!("/v1/schedules/preview{query}"), spec);
    for spec in [
        r#"{"cron":"30 2 * * *","tz":"America/New_York","start":"2030-03-09T00:00:00Z"}"#,
        r#"{"every":"1h","count":2}"#,
        r#"{"every":"90m","start":"2029-12-31T20:00:00Z"}"#,
        r#"{"fixed_delay":"1h"}"#,
        r#"{"fixed_delay":"1h","start":"2029-12-01T00:00:00Z"}"#,
        r#"{"every":"1h","end":"2030-01-01T02:30:00Z"}"#,
    ] {
        let unstored = preview(spec, "?count=3");
        served.expect(201, "PUT", NIGHTLY, spec);
        let mut stored = served.expect(200, "GET", &format!("{NIGHTLY}/preview?count=3"), "");
        for one in stored["occurrences"].as_array_mut().expect("an array") {
            let key = one["key"].as_str().expect("a key").trim_start_matches("nightly").to_owned();
            one["key"] = json!(key);
        }
        assert_eq!(unstored, stored, "{spec}");
        assert!(!unstored["occurrences"].as_array().expect("an array").is_empty(), "{spec}");
        served.expect(200, "DELETE", NIGHTLY, "");
    }
    // A put makes the task of a start of just now at once, so the preview begins with it.
    let just_now = preview(r#"{"every":"90m","start":"2029-12-31T23:59:59Z"}"#, "?count=1");
    assert_eq!(just_now["occurrences"][0]["at"], "2029-12-31T23:59:59.000Z");
    assert_eq!(preview(r#"{"every":"1h"}"#, "")["occurrences"].as_array().map(Vec::len), Some(5));
    assert_eq!(served.expect(200, "GET", "/v1/schedules", "")["schedules"], json!([]), "nothing is stored");
    for spec in [
        "",
        r#"{"cron":"0 0 30 2 *"}"#,
        r#"{"cron":"61 * * * *"}"#,
        r#"{"cron":"* * * * *","tz":"Mars/Olympus"}"#,
        r#"{"every":"1h","end":"2029-01-01T00:00:00Z"}"#,
        r#"{"every":"10ms"}"#,
        r#"{"every":"1h","paylod":1}"#,
        &format!(r#"{{"every":"1h","payload":"{}"}}"#, "x".repeat(70_000)),
    ] {
        let (put, preview) =
            (served.call("PUT", NIGHTLY, spec), served.call("POST", "/v1/schedules/preview", spec));
        preview.assert_problem(400, "bad-request", "");
        assert_eq!(preview.json(), put.json(), "{spec}");
    }
    let path = "/v1/schedules/preview?count=1001";
    served.call("POST", path, r#"{"every":"1h"}"#).assert_problem(400, "bad-request", "count");
}

#[test]
fn a_page_may_be_longer_than_a_page_of_the_engine() {
    let served = at_new_year();
    for index in 0..=600 {
        served.expect(201, "PUT", &format!("/v1/queues/q/schedules/{index:03}"), r#"{"every":"1h"}"#);
    }
    let page = served.expect(200, "GET", "/v1/schedules?limit=600", "");
    assert_eq!(page["schedules"].as_array().map(Vec::len), Some(600));
    let rest = format!("/v1/schedules?limit=600&cursor={}", page["next_cursor"].as_str().expect("more"));
    let rest = served.expect(200, "GET", &rest, "");
    assert_eq!((&rest["schedules"][0]["name"], &rest["next_cursor"]), (&json!("600"), &json!(null)));
}

#[test]
fn schedules_are_listed_by_name_page_by_page() {
    let served = at_new_year();
    for name in ["c", "a", "b%20%26"] {
        served.expect(201, "PUT", &format!("/v1/queues/q/schedules/{name}"), r#"{"every":"1h"}"#);
    }
    served.expect(201, "PUT", "/v1/queues/r/schedules/z", r#"{"every":"1h"}"#);
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.expect(200, "GET", &format!("/v1/queues/q/schedules?limit=1{cursor}"), "");
        let page_names = page["schedules"].as_array().expect("an array");
        names.extend(page_names.iter().map(|one| one["name"].as_str().expect("a name").to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b &", "c"]);
}

#[test]
fn a_fixed_delay_begins_when_the_task_before_has_ended() {
    let served = at_new_year();
    let crawl = "/v1/queues/sync/schedules/crawl";
    served.expect(201, "PUT", crawl, r#"{"fixed_delay":"1h"}"#);
    served.advance("5h");
    assert_eq!(keys(&served, "sync"), ["crawl@2030-01-01T01:00:00.000Z"]);
    let shown = served.expect(200, "GET", crawl, "");
    assert_eq!((&shown["running"], &shown["next_at"]), (&true.into(), &serde_json::Value::Null));
    let note = served.expect(200, "GET", &format!("{crawl}/preview"), "")["note"].clone();
    assert!(
        note.as_str().expect("a note").contains("when the task of the instant before it has ended"),
        "{note}"
    );
    let leased = served.lease("sync", 1);
    served.say("sync", "ack", &[&leased[0]["token"]]);
    assert_eq!(served.expect(200, "GET", crawl, "")["next_at"], "2030-01-01T06:00:00.000Z");
}

#[test]
fn a_schedule_outlives_its_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = || Config { virtual_clock: true, ..on_any_port(Store::Dir(directory.path().join("d"))) };
    let served = Served::start(config()).expect("started");
    served.expect(201, "PUT", "/v1/queues/q/schedules/s", r#"{"every":"1h","payload":[1]}"#);
    served.advance("90m");
    served.stop();
    let served = Served::start(config()).expect("started");
    let shown = served.expect(200, "GET", "/v1/queues/q/schedules/s", "");
    assert_eq!((&shown["made"], &shown["payload"]), (&1.into(), &serde_json::json!([1])));
    served.advance("1h");
    assert_eq!(keys(&served, "q").len(), 2);
}

#[test]
fn schedules_are_in_the_metrics() {
    let served = at_new_year();
    served.expect(201, "PUT", "/v1/queues/q/schedules/s", r#"{"every":"1h","overlap":"skip"}"#);
    assert_eq!(served.metric("tickwheel_schedules"), 1.0);
    for _ in 0..3 {
        served.advance("1h");
    }
    let page = served.call("GET", "/metrics", "").text();
    for line in [
        "tickwheel_occurrences_total{result=\"made\"} 1",
        "tickwheel_occurrences_total{result=\"skipped\"} 2",
        "tickwheel_waiting_occurrences 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    served.expect(200, "DELETE", "/v1/queues/q/schedules/s", "");
    assert_eq!(served.metric("tickwheel_schedules"), 0.0);
}
