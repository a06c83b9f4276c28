//! Bad arguments: the exit code is 2, stdout is empty, and stderr names the error, its place, and a correction.

use crate::cli::run::run;

#[test]
fn bad_arguments_are_usage_errors_with_a_hint() {
    let long_key = "k".repeat(257);
    let cases: [(&[&str], &[&str]); 35] = [
        (&["put", "q", "k", "--in", "30"], &["--in <DURATION>", "has no unit after 30", "`30m`"]),
        (&["put", "q", "k", "--in", "-5s"], &["--in <DURATION>", "is negative", "`0s`"]),
        (&["put", "q", "k", "--in", ""], &["--in <DURATION>"]),
        (&["put", "q", "k", "--at", "tomorrow"], &["--at <TIME>", "not an RFC 3339 time", "use --in"]),
        (&["put", "q", "k", "--at", "2017-10-02T11:26:33"], &["--at <TIME>", "no zone", "add `Z`"]),
        (&["put", "q", "k", "--at", "-1"], &["--at <TIME>", "not an RFC 3339 time"]),
        (&["put", "q", "k", "--in", "1s", "--at", "0"], &["cannot be used with"]),
        (&["put", "q", "k", "--payload", "1", "--payload-file", "-"], &["cannot be used with"]),
        (&["put", "q", "k", "--mode", "insert"], &["upsert, create, replace, debounce"]),
        (&["put", "q", "k", "--tag", ""], &["--tag <TAG>", "1 to 128"]),
        (&["put", "q", "k", "--level", "0"], &["--level <N>"]),
        (&["put", "q", "k", "--max-attempts", "0"], &["--max-attempts <N>"]),
        (&["serve", "--levels", "1s 5"], &["--levels <DELAYS>", "level 2"]),
        (&["redrive", "q"], &["which tasks?", "--all for every dead task of q"]),
        (
            &["put", "q", "k", "--if-match", "x"],
            &["--if-match <VERSION>", "the number that `put` and `get` print"],
        ),
        (&["put", "a b", "k"], &["<QUEUE>", "' ' at byte 1", "A-Z a-z 0-9"]),
        (&["put", "", "k"], &["<QUEUE>", "empty", "1 to 200 bytes"]),
        (&["put", "q", &long_key], &["<KEY>", "257 bytes", "1 to 256"]),
        (&["get", "q", "a\nb"], &["<KEY>", "'\\n' at byte 1"]),
        (&["put", "q"], &["<KEY>"]),
        (&["ls", "q", "--limit", "0"], &["--limit <N>", "from 1 to"]),
        (&["ls", "q", "--state", "late"], &["scheduled, ready, leased, dead"]),
        (&["ls", "q", "--limit", "5", "--all"], &["cannot be used with"]),
        (&["lease", "q", "--max", "1001"], &["--max <N>", "from 1 to 1000"]),
        (&["lease", "q", "--for", "10ms"], &["--for <DURATION>", "1s to 12h"]),
        (&["lease", "q", "--wait", "2m"], &["--wait <DURATION>", "at most 1m"]),
        (&["ack", "q", "a=b"], &["<TOKEN>", "32 characters of"]),
        (&["serve", "--listen", "8463"], &["--listen <ADDR:PORT|unix:PATH>"]),
        (
            &["serve", "--beanstalk", "localhost:11300"],
            &["--beanstalk <ADDR:PORT|unix:PATH|off>", "127.0.0.1:11300", "`off`", "localhost are not"],
        ),
        (&["bench", "beanstalk", "localhost", "0"], &["<PORT>", "from 1 to 65535"]),
        (
            &["bench", "beanstalk", "localhost", "1", "--vs", "localhost"],
            &["--vs <HOST:PORT>", "127.0.0.1:11300"],
        ),
        (
            &["bench", "beanstalk", "localhost", "1", "--mode", "lateness", "--connections", "3"],
            &["an even number", "tickwheel bench beanstalk"],
        ),
        (
            &["bench", "beanstalk", "localhost", "1", "--mode", "cycle", "--delay", "1"],
            &["leave --delay out"],
        ),
        (&["bench", "beanstalk", "localhost", "1", "--mode", "cycle", "--keep"], &["--keep is for"]),
        (&["bench", "beanstalk", "localhost", "1", "--payload", "15"], &["--payload <BYTES>", "from 16"]),
    ];
    for (words, expected) in cases {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}: {}", ran.err);
        for part in expected {
            assert!(ran.err.contains(part), "{words:?} should say {part}: {}", ran.err);
        }
    }
}

#[test]
fn bad_payloads_and_servers_are_errors_with_a_place() {
    let cases: [(&[&str], &[&str]); 7] = [
        (&["put", "q", "k", "--payload", "{\"a\":}"], &["--payload is not JSON", "line 1 column 6"]),
        (&["put", "q", "k", "--payload", "hello"], &["--payload is not JSON", "double quotes"]),
        (&["put", "q", "k", "--payload-file", "/no/such"], &["failed to open /no/such", "No such file"]),
        (&["put", "q", "k", "--payload-file", "/"], &["failed to read /", "directory"]),
        (&["put", "q", "k", "--content-type", "text/plain"], &["--content-type", "--payload-file"]),
        (&["queues", "--server", "ftp://box"], &["`ftp://box`", "none of `http://`, `https://` and `unix:`"]),
        (&["queues", "--server", "127.0.0.1:1"], &["`127.0.0.1:1`", "http://127.0.0.1:8463"]),
    ];
    for (words, expected) in cases {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{words:?}: {}", ran.err);
        for part in expected {
            assert!(ran.err.contains(part), "{words:?} should say {part}: {}", ran.err);
        }
    }
}

#[test]
fn a_refused_connection_names_the_address_and_a_way_out() {
    let free = format!("127.0.0.1:{}", tickwheel_testing::free_port());
    let url = format!("http://{free}");
    for words in [&["get", "q", "k"][..], &["put", "q", "k"], &["lease", "q"], &["queues"]] {
        let ran = run(&[words, &["--server", &url]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(ran.err.contains(&free), "{}", ran.err);
        assert!(ran.err.contains("tickwheel serve"), "{}", ran.err);
        assert_eq!(ran.err.matches("refused").count(), 1, "said once: {}", ran.err);
    }
}

#[test]
fn help_has_examples() {
    for command in [
        "serve", "put", "get", "ls", "patch", "move", "run", "cancel", "lease", "ack", "nack", "extend",
        "doctor", "backup", "restore", "replay",
    ] {
        let ran = run(&[command, "--help"]);
        assert_eq!(ran.code, 0);
        assert!(ran.out.contains("Example"), "{command}");
    }
}
