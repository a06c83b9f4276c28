//! The server seen by browsers, and by proxies in front of it.

use std::fs;

use tickwheel_api::ConsoleMode;
use tickwheel_server::{Config, Tokens};

use crate::raw::Reply;
use crate::served::{Served, virtual_memory};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

/// Sends a request as a browser or a proxy does; the API's description does not include such requests.
fn get(served: &Served, path: &str, host: &str, headers: &str) -> Reply {
    let mut connection = served.connect();
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").as_bytes());
    connection.reply()
}

#[test]
fn browsers_get_a_page_and_programs_the_usual_answers() {
    for tokens in [Tokens::default(), Tokens::parse("secret").expect("tokens")] {
        let config = Config { tokens, console: ConsoleMode::Off, ..virtual_memory() };
        let served = Served::start(config).expect("started");
        assert_ne!(get(&served, "/console/", "localhost", BROWSER).status, 200, "it is off");
        {
            let path = "/problems/busy";
            let page = get(&served, path, "localhost", BROWSER);
            assert_eq!(
                (page.status, page.header("content-type")),
                (200, Some("text/html; charset=utf-8")),
                "{path}"
            );
            let policy = page.header("content-security-policy").expect("a policy");
            assert!(policy.starts_with("default-src 'none';"), "{policy}");
            assert!(page.text().contains("Tickwheel server"), "{}", page.text());
            for header in
                [("x-content-type-options", "nosniff"), ("cache-control", "no-store"), ("vary", "accept")]
            {
                assert_eq!(page.header(header.0), Some(header.1), "{path}");
            }
            assert_eq!(get(&served, path, "evil.example", BROWSER).status, 421);
        }
        get(&served, "/problems/none", "localhost", BROWSER).header("content-type").expect("a problem");
        let program = "Authorization: Bearer secret\r\nAccept: */*\r\n";
        assert_eq!(get(&served, "/problems/busy", "localhost", program).json()["status"], 429);
    }
}

/// The pages of the console need no token, because they contain no secrets. Their files are kept, and nothing else is.
#[test]
fn a_browser_gets_the_console() {
    for tokens in [Tokens::default(), Tokens::parse("secret").expect("tokens")] {
        let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
        for (path, to) in [("/", "console/"), ("/console", "console/")] {
            let moved = get(&served, path, "localhost", BROWSER);
            assert_eq!((moved.status, moved.header("location")), (307, Some(to)), "{path}");
        }
        let page = get(&served, "/console/q/close/tasks", "localhost", BROWSER);
        let text = page.text();
        let (_, rest) = text.split_once("src=\"../../").expect("a script");
        let script = format!("/console/{}", rest.split_once('"').expect("a value").0);
        let file = get(&served, &script, "localhost", "Accept: */*\r\n");
        let zipped = get(&served, &script, "localhost", "Accept: */*\r\nAccept-Encoding: br, gzip\r\n");
        assert_eq!(zipped.header("content-encoding"), Some("gzip"));
        assert!(zipped.body.len() < file.body.len() && file.text().contains("import"), "{}", file.text());
        for (reply, kept) in [
            (&page, "no-cache"),
            (&file, "public, max-age=31536000, immutable"),
            (&zipped, "public, max-age=31536000, immutable"),
        ] {
            assert_eq!((reply.status, reply.header("cache-control")), (200, Some(kept)));
            let policy = reply.header("content-security-policy").expect("a policy");
            assert!(policy.contains("script-src 'self';") && policy.contains("trusted-types"), "{policy}");
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
                ("vary", "accept, accept-encoding"),
            ] {
                assert_eq!(reply.header(name), Some(value), "{name}");
            }
            let known = format!("If-None-Match: {}\r\n", reply.header("etag").expect("a tag"));
            let headers = match std::ptr::eq(reply, &page) {
                true => format!("{known}{BROWSER}"),
                false => format!(
                    "{known}Accept-Encoding: {}\r\n",
                    reply.header("content-encoding").unwrap_or("br")
                ),
            };
            let path = if std::ptr::eq(reply, &page) { "/console/" } else { &script };
            let again = get(&served, path, "localhost", &headers);
            assert_eq!((again.status, again.body.len()), (304, 0), "{headers}");
        }
        for path in ["/console//etc/passwd", "/console/%2e%2e/v1/queues", "/console/a/0123456789abcdef/x"] {
            let page = get(&served, path, "localhost", BROWSER);
            assert_eq!(
                (page.status, page.header("content-type")),
                (200, Some("text/html; charset=utf-8")),
                "{path}"
            );
        }
        let mut connection = served.connect();
        let head = "Host: localhost\r\nAuthorization: Bearer secret\r\nContent-Length: 0\r\n";
        for (method, status) in [("HEAD", 200), ("OPTIONS", 404), ("POST", 404)] {
            connection.send(format!("{method} /console/ HTTP/1.1\r\n{head}{BROWSER}\r\n").as_bytes());
            // An answer to HEAD has no body, so the next answer on this connection follows its head.
            let reply = if method == "HEAD" { connection.head() } else { connection.reply() };
            assert_eq!(reply.status, status, "{method}");
        }
        // A program that asks for a file that is not there gets no page in its place.
        let program = "Authorization: Bearer secret\r\nAccept: */*\r\n";
        get(&served, "/console/nothing.js", "localhost", program).assert_problem(404, "no-endpoint", "");
        assert_eq!(get(&served, "/console/", "evil.example", BROWSER).status, 421);
    }
}

#[test]
fn the_index_leads_to_the_parts_of_the_server() {
    for (console, tokens) in [
        (ConsoleMode::On, Tokens::default()),
        (ConsoleMode::ReadOnly, Tokens::parse("secret").expect("tokens")),
        (ConsoleMode::Off, Tokens::parse("secret").expect("tokens")),
    ] {
        let served = Served::start(Config { console, tokens, ..virtual_memory() }).expect("started");
        let index = get(&served, "/", "localhost", "Accept: */*\r\n");
        assert_eq!((index.status, index.header("vary")), (200, Some("accept")));
        assert_eq!(index.header("content-type"), Some("application/json"));
        let found = index.json();
        assert_eq!(
            (&found["name"], &found["version"]),
            (&"tickwheel".into(), &env!("CARGO_PKG_VERSION").into())
        );
        assert_eq!(found.get("console").is_some(), console != ConsoleMode::Off, "{found}");
        let secret = "Authorization: Bearer secret\r\n";
        for part in ["openapi", "health", "ready", "metrics", "console"] {
            let Some(path) = found.get(part).and_then(|path| path.as_str()) else { continue };
            let reply = get(&served, &format!("/{path}"), "localhost", &format!("{secret}{BROWSER}"));
            assert_eq!(reply.status, 200, "{part}");
        }
        let browser = get(&served, "/", "localhost", BROWSER);
        match console {
            ConsoleMode::Off => assert_eq!(browser.json(), found),
            _ => assert_eq!((browser.status, browser.header("location")), (307, Some("console/"))),
        }
        served.call("POST", "/", "").assert_problem(405, "bad-method", "POST");
        assert_eq!(get(&served, "/", "evil.example", "").status, 421);
        let whoami = get(&served, "/v1/whoami", "localhost", secret).json();
        assert_eq!(whoami["console"], console.name(), "{whoami}");
    }
}

/// An author of the pages changes a file and loads the page again.
#[test]
fn the_console_of_a_directory_is_read_at_each_request() {
    let around = tempfile::tempdir().expect("a directory");
    let assets = around.path().join("assets");
    let config = || Config { console_dir: Some(assets.clone()), ..virtual_memory() };
    let Err(error) = Served::start(config()) else { panic!("there is no page") };
    assert!(
        error.to_string().contains("index.html") && error.to_string().contains("--console-dir"),
        "{error}"
    );
    fs::create_dir(&assets).expect("a directory");
    fs::write(assets.join("index.html"), "<script src=\"./main.js\"></script>").expect("written");
    fs::write(around.path().join("secret.js"), "secret").expect("written");
    std::os::unix::fs::symlink("../secret.js", assets.join("out.js")).expect("a link");
    let served = Served::start(config()).expect("started");
    let page = get(&served, "/console/horizon", "localhost", BROWSER);
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-cache")));
    let text = page.text();
    let script = text.split('"').nth(1).expect("an address");
    for contents in ["first", "second"] {
        fs::write(assets.join("main.js"), contents).expect("written");
        let file = get(&served, &format!("/console/{script}"), "localhost", "Accept-Encoding: gzip\r\n");
        assert_eq!((file.status, file.text().as_ref()), (200, contents));
        assert_eq!(file.header("cache-control"), Some("no-cache"));
        assert!(file.header("content-security-policy").is_some_and(|policy| policy.contains("'self'")));
        let known = format!("If-None-Match: {}\r\n", file.header("etag").expect("a tag"));
        assert_eq!(get(&served, "/console/main.js", "localhost", &known).status, 304);
    }
    for name in ["out.js", "../secret.js", "%2e%2e/secret.js", "none.js"] {
        let reply = get(&served, &format!("/console/{name}"), "localhost", "");
        reply.assert_problem(404, "no-endpoint", "is not served");
        assert!(!reply.text().contains(around.path().to_str().expect("UTF-8")), "{}", reply.text());
    }
}

#[test]
fn a_proxy_that_keeps_the_host_needs_an_allowed_name() {
    let strict = Served::memory();
    get(&strict, "/v1/queues", "tasks.example", "").assert_problem(421, "foreign-host", "not allowed");
    let config = Config { allow_hosts: vec!["tasks.example".to_owned()], ..virtual_memory() };
    let served = Served::start(config).expect("started");
    assert_eq!(get(&served, "/v1/queues", "tasks.example", "").status, 200);
    let refused = get(&served, "/v1/queues", "evil.example", "");
    refused.assert_problem(421, "foreign-host", "another");
    assert!(refused.text().contains("--allow-host"), "{}", refused.text());
    for (origin, status) in [("https://tasks.example", 201), ("https://evil.example", 403)] {
        let mut connection = served.connect();
        connection.send(
            format!("PUT /v1/queues/q/tasks/a HTTP/1.1\r\nHost: tasks.example\r\nOrigin: {origin}\r\nContent-Length: 0\r\n\r\n")
                .as_bytes(),
        );
        assert_eq!(connection.reply().status, status, "{origin}");
    }
    let bad = Config { allow_hosts: vec!["https://tasks.example".to_owned()], ..virtual_memory() };
    let Err(error) = Served::start(bad) else { panic!("a URL was taken") };
    assert!(
        error.to_string().contains("`https://tasks.example` is no name of a host: it is a URL"),
        "{error}"
    );
}

#[test]
fn readiness_needs_no_token() {
    let served =
        Served::start(Config { tokens: Tokens::parse("secret").expect("tokens"), ..virtual_memory() })
            .expect("started");
    for headers in ["", "Authorization: Bearer unknown\r\n", "Authorization: Bearer secret\r\n"] {
        let ready = get(&served, "/readyz", "localhost", headers);
        assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()), "{headers}");
    }
}
