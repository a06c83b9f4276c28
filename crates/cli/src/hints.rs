//! Hints of the server in the words of the command line: a route of the API becomes the command that calls it.

/// The words of hints, and those of the command line for them. A longer text wins over its own beginning.
const WORDS: [(&str, &str); 41] = [
    ("POST /v1/queues/{q}/dead/redrive", "`tickwheel redrive`"),
    ("GET /v1/queues/{q}/dead/groups", "`tickwheel dead QUEUE --groups`"),
    ("GET /v1/queues/{q}/dead", "`tickwheel dead QUEUE`"),
    ("POST /v1/queues/{q}/purge", "`tickwheel purge`"),
    ("POST /v1/queues/{q}/cancel", "`tickwheel cancel`"),
    ("POST /v1/queues/{q}/resume", "`tickwheel queues resume QUEUE`"),
    (
        "POST /v1/queues/{q}/pause and /resume",
        "`tickwheel queues pause QUEUE` and `tickwheel queues resume QUEUE`",
    ),
    (
        "POST /v1/queues/{q}/drain and /resume",
        "`tickwheel queues drain QUEUE` and `tickwheel queues resume QUEUE`",
    ),
    ("POST /v1/queues/{q}/target/rotate", "`tickwheel target rotate QUEUE`"),
    (
        "PUT /v1/queues/{q}/target gives it one",
        "`tickwheel target set QUEUE --url URL` gives it one, and `tickwheel targets` shows which queues have one",
    ),
    ("PUT /v1/queues/{q}/target", "`tickwheel target set`"),
    ("GET /v1/queues/{q}/schedules", "`tickwheel schedules ls QUEUE`"),
    ("DELETE /v1/queues/{q}/schedules/{name}", "`tickwheel schedules delete`"),
    ("GET /v1/queues/{q}/tasks/{key}", "`tickwheel get`"),
    ("DELETE /v1/queues/{q}/tasks/{key}", "`tickwheel cancel QUEUE KEY`"),
    ("PATCH /v1/queues/{q}/tasks/{key}", "`tickwheel move QUEUE KEY`"),
    ("PATCH /v1/queues/{q} with `max_backlog`", "`tickwheel queues set QUEUE --max-backlog N`"),
    (
        "set `max_in_flight_per_group` to 1 first: PATCH /v1/queues/{q}",
        "set it first: `tickwheel queues set QUEUE --max-in-flight-per-group 1`; other orders need no such limit",
    ),
    (
        "write `\"max_in_flight_per_group\": 1`, or give the target another order",
        "the order `group` goes with `tickwheel queues set QUEUE --max-in-flight-per-group 1`; other orders need no such limit",
    ),
    ("PATCH /v1/queues/{q}", "`tickwheel queues set QUEUE`"),
    ("GET /v1/queues", "`tickwheel queues`"),
    ("GET /v1/backups/{id} (`tickwheel backup --list`)", "`tickwheel backup --list`"),
    ("DELETE /v1/backups/{id}", "`tickwheel backup --stop ID`"),
    ("GET /v1/backups", "`tickwheel backup --list`"),
    ("DELETE /v1/jobs/{id}", "`tickwheel jobs stop ID`"),
    ("GET /v1/jobs", "`tickwheel jobs`"),
    ("GET /v1/tasks?key=order:1", "`tickwheel find order:1`"),
    ("POST /v1/resume", "`tickwheel resume`"),
    ("it stands in the path: PUT /v1/queues/{q}/schedules/{name}", ARGUMENT),
    ("it stands in the path: PUT /v1/queues/{q}/tasks/{key}", ARGUMENT),
    ("it stands in the path: PUT /v1/queues/{q}/target", ARGUMENT),
    ("it stands in the path: POST /v1/queues/{q}/dead/redrive", ARGUMENT),
    ("it stands in the path: POST /v1/queues/{q}/batch", ARGUMENT),
    ("it stands in the path: POST /v1/queues/{q}/lease", ARGUMENT),
    ("it stands in the path: POST /v1/queues/{q}/ack", ARGUMENT),
    ("it stands in the path: PUT /v1/queues/{q}", ARGUMENT),
    ("take the task from it with `revoke=true`", "take the task away from it with --revoke"),
    ("`mode=create`", "`--mode create`"),
    (" and percent-encoded in the path", ""),
    (
        "send the whole `timeline` as it is to be, with all its instants",
        "replace the whole timeline with `tickwheel patch --timeline`, all its instants in it",
    ),
    (
        "send `Authorization: Bearer TOKEN`; the command line takes the token from TICKWHEEL_TOKEN or --token-file",
        "give the token in TICKWHEEL_TOKEN or with --token-file",
    ),
];

/// The hint about a member that an API call has in its path.
const ARGUMENT: &str = "it is an argument of the command";

/// The hint for a route that the server does not have.
const NO_ENDPOINT: &str =
    "the server may be of an earlier version than this program, or --server may name another kind of server";

/// Returns the hint of a server in the words of the command line.
pub(crate) fn in_commands(hint: &str) -> String {
    if hint.starts_with("paths begin with `/v1/`") {
        return NO_ENDPOINT.to_owned();
    }
    let mut text = String::with_capacity(hint.len());
    let mut rest = hint;
    while let Some(first) = rest.chars().next() {
        // At one place, the longest text wins, wherever it stands in the table.
        let known =
            WORDS.iter().filter(|(from, _)| rest.starts_with(from)).max_by_key(|(from, _)| from.len());
        match known {
            Some((from, to)) => {
                text.push_str(to);
                rest = &rest[from.len()..];
            }
            None => {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn routes_become_commands_and_other_text_stays() {
        for (hint, expected) in [
            (
                "GET /v1/queues/{q}/dead lists the dead tasks; one whose key a later task took is named by its id",
                "`tickwheel dead QUEUE` lists the dead tasks; one whose key a later task took is named by its id",
            ),
            (
                "repeat the call after its end: GET /v1/backups/{id} (`tickwheel backup --list`) shows it, DELETE /v1/backups/{id} stops it",
                "repeat the call after its end: `tickwheel backup --list` shows it, `tickwheel backup --stop ID` stops it",
            ),
            ("it stands in the path: PUT /v1/queues/{q}/target", ARGUMENT),
            (
                "cancel the live task first, or leave the dead one as it is",
                "cancel the live task first, or leave the dead one as it is",
            ),
        ] {
            assert_eq!(in_commands(hint), expected);
        }
    }

    /// The server's hints are literals in the sources of these packages. Each that names a route has to be known here.
    #[test]
    fn no_hint_of_the_server_names_a_route_on_the_command_line() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders: Vec<PathBuf> = ["api/src", "server/src"].map(|name| crates.join(name)).to_vec();
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.extend((name != "operations").then_some(path));
                    continue;
                }
                // The remedies of the page of problems are about the API, and the others are no hints.
                if ["problem_kind.rs", "stored.rs"].contains(&&*name) {
                    continue;
                }
                let text = fs::read_to_string(&path).expect("a text");
                let text = text.split("#[cfg(test)]").next().expect("split gives one");
                for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
                    let verbs = ["GET", "PUT", "POST", "PATCH", "DELETE"].map(|verb| format!("{verb} /v1/"));
                    let names_route = verbs.iter().any(|verb| line.contains(verb)) && line.contains('"');
                    if names_route {
                        seen += 1;
                        let told = in_commands(line);
                        assert!(!told.contains("/v1/"), "{}: {told}", path.display());
                    }
                }
            }
        }
        assert!(seen >= 30, "only {seen} hints were found");
    }
}
