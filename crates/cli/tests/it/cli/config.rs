//! `config`, `serve --config`, and `top`.

use rustix::process::Signal;

use crate::cli::run::run;
use crate::server::{Server, tickwheel};

#[test]
fn a_server_does_what_its_file_says_unless_the_command_line_says_otherwise() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("tickwheel.toml");
    let path = file.to_str().expect("UTF-8");
    let page = run(&["config"]);
    assert_eq!(page.code, 0, "{}", page.err);
    std::fs::write(&file, &page.out).expect("written");
    let good = run(&["config", "--check", path]);
    assert!(good.code == 0 && good.err.contains("is in order: 0 keys"), "{}", good.err);

    std::fs::write(&file, "memory = true\nvirtual_clock = true\nlevels = \"7s\"\nlisten = \"127.0.0.1:1\"\n")
        .expect("written");
    let server = Server::start(&["--config", path, "--listen", "127.0.0.1:0"]);
    let put = run(&["put", "close", "order:1", "--level", "1", "--server", &server.url]);
    assert_eq!(put.code, 0, "the level is that of the file: {}", put.err);
    let beyond = run(&["put", "close", "order:2", "--level", "2", "--server", &server.url]);
    assert!(beyond.err.contains("is not from 1 to 1"), "{}", beyond.err);
    assert!(server.stop(Signal::TERM).success());

    std::fs::write(&file, "listen = \"nowhere\"\n").expect("written");
    for words in [["config", "--check", path], ["serve", "--config", path]] {
        let refused = run(&words);
        assert!(
            refused.code == 1 && refused.err.contains("`listen`: invalid value 'nowhere'"),
            "{}",
            refused.err
        );
        assert!(refused.err.contains(path), "{}", refused.err);
    }
    std::fs::write(&file, "ack = \"sometimes\"\n\nlisten = 1\n").expect("written");
    let refused = run(&["config", "--check", path]);
    for what in ["2 faults", "line 1: `ack`", "[possible values: fsync, os, memory]", "line 3: `listen`"] {
        assert!(refused.code == 1 && refused.err.contains(what), "{what}: {}", refused.err);
    }
    std::fs::write(&file, "otlp_endpoint = \"collector\"\n").expect("written");
    let refused = run(&["config", "--check", path]);
    assert!(refused.code == 1 && refused.err.contains("--otlp-endpoint"), "{}", refused.err);
    std::fs::write(&file, "tls_key = \"key.pem\"\n").expect("written");
    let refused = run(&["config", "--check", path]);
    assert!(refused.code == 1 && refused.err.contains("add --tls-cert"), "{}", refused.err);
    let connection = "[push.connections.main]\nkind = \"redis\"\naddresses = [\"127.0.0.1:1\"]\n";
    std::fs::write(&file, connection).expect("written");
    let good = run(&["config", "--check", path]);
    assert!(good.code == 0 && good.err.contains("is in order: 1 connection (main: redis)"), "{}", good.err);
    std::fs::write(&file, format!("{connection}password_file = \"/no/such/file\"\n")).expect("written");
    for words in [["config", "--check", path], ["serve", "--config", path]] {
        let refused = run(&words);
        let what = "[push.connections.main]: failed to read `password_file` /no/such/file: No such file";
        assert!(refused.code == 1 && refused.err.contains(what), "{}", refused.err);
    }
    std::fs::write(&file, format!("{connection}vhost = \"shop\"\nuser = \"u\"\n")).expect("written");
    for words in [["config", "--check", path], ["serve", "--config", path]] {
        let refused = run(&words);
        for what in [
            "2 faults",
            "line 4: [push.connections.main]: `vhost` is for",
            "line 5: [push.connections.main]: `user` has no",
        ] {
            assert!(refused.code == 1 && refused.err.contains(what), "{what}: {}", refused.err);
        }
    }
    let roots = "tls = true\ncertificates = \"own\"\n[push.tls.own]\nca = \"/no/such/ca.pem\"\n";
    std::fs::write(&file, format!("{connection}{roots}")).expect("written");
    let refused = run(&["config", "--check", path]);
    let what = "[push.tls.own]: cannot read /no/such/ca.pem: No such file";
    assert!(refused.code == 1 && refused.err.contains(what), "{}", refused.err);
    let nowhere = run(&["serve", "--config", "no-such-file.toml"]);
    assert!(nowhere.code == 1 && nowhere.err.contains("no-such-file.toml"), "{}", nowhere.err);
}

#[test]
fn top_tells_what_happened_in_between() {
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0"]);
    for key in ["a", "b"] {
        assert_eq!(run(&["put", "close", key, "--in", "30m", "--server", &server.url]).code, 0);
    }
    let seen = run(&["top", "--times", "2", "--every", "100ms", "--server", &server.url]);
    let lines = seen.lines();
    assert_eq!(lines.len(), 2, "{}", seen.out);
    let picture: serde_json::Value = serde_json::from_str(lines[1]).expect("JSON");
    assert_eq!(picture["queues"][0]["scheduled"], 2);
    assert_eq!(
        (&picture["figures"]["scheduled"], &picture["rates"]["scheduled"]),
        (&2.0.into(), &0.0.into())
    );
    let refused = run(&["top", "--every", "1ms"]);
    assert!(refused.code == 2 && refused.err.contains("100ms to 1h"), "{}", refused.err);
}

#[test]
fn a_call_is_sent_again_until_the_server_is_there() {
    let address = format!("127.0.0.1:{}", tickwheel_testing::free_port());
    let url = format!("http://{address}");
    let once = run(&["queues", "--server", &url]);
    assert!(once.code == 1 && once.err.contains("no server answers"), "{}", once.err);
    assert!(once.err.ends_with("hint: --server or TICKWHEEL_SERVER names another server\n"), "{}", once.err);
    let mut waiting = tickwheel(&["queues", "--retries", "20", "--server", &url]);
    let mut waiting = waiting.spawn().expect("run tickwheel");
    let server = Server::start(&["--memory", "--listen", &address]);
    assert!(waiting.wait().expect("it ends").success(), "it found the server");
    drop(server);
}

#[test]
fn a_start_that_fails_is_told_as_the_log_is_written() {
    let told = |words: &[&str]| {
        let refused = run(&[&["serve", "--memory", "--log-format", "json"], words].concat());
        assert_eq!((refused.code, refused.out.as_str()), (1, ""));
        let last = refused.err.lines().last().expect("a line");
        serde_json::from_str::<serde_json::Value>(last).expect(last)
    };
    // This line is written under every filter of the log.
    for filter in ["warn", "off", "tickwheel_server=debug"] {
        let told = told(&["--listen", "0.0.0.0:0", "--log", filter]);
        assert_eq!((&told["message"], &told["level"]), (&"failed to start".into(), &"ERROR".into()));
        assert!(
            told["error"].as_str().is_some_and(|error| error.starts_with("other machines can")),
            "{told}"
        );
    }
    let told = told(&["--config", "no-such-file.toml"]);
    assert!(told["message"].as_str().is_some_and(|what| what.contains("no-such-file.toml")), "{told}");
}
