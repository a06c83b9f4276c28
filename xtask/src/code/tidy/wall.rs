//! The wall between the doors of the server and its queue: doors reach it by the service alone, which checks each right.

use crate::code::arrows::{is_of_name, without_tests};
use crate::finding::Finding;
use crate::root::Text;

const SERVER: &str = "crates/server/src/";
/// The server opens and closes the queue, and no door can reach it.
const OWNER: &str = "server.rs";
const QUEUE: &str = "Queue";

/// The rule for one file. Tests in doors follow it as well; tests elsewhere may hold a queue.
pub(super) fn check(text: &Text, findings: &mut Vec<Finding>) {
    let file = text.path.strip_prefix(SERVER).filter(|file| file.ends_with(".rs") && *file != OWNER);
    let Some(file) = file else { return };
    let mut refuse = |line: usize, what: &str| {
        findings.push(Finding::new(format!("{}:{line}", text.path), what));
    };
    if file.starts_with("doors/") {
        let lines = (1..).zip(text.text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (line, _) in lines.filter(|(_, line)| names_queue(line)) {
            refuse(line, "a door names the queue; call a verb of `Caller`, which checks the right");
        }
        return;
    }
    let code = without_tests(&text.text);
    for (at, _) in code.match_indices("fn ") {
        let signature = code[at..].split(['{', ';']).next().unwrap_or_default();
        if answer(signature).is_some_and(names_queue) {
            refuse(
                line_of(&code, at),
                "a function hands the queue out; give it a verb with the right in its signature",
            );
        }
    }
    for (line, code) in (1..).zip(code.lines()) {
        let code = code.trim();
        let is_open =
            code.starts_with("pub ") || code.starts_with("pub(crate)") || code.starts_with("pub(in");
        if is_open && !code.contains("fn ") && names_queue(code) {
            refuse(line, "a door can name this member, and it holds the queue; make it private to its room");
        } else if is_open && code.contains(" use tickwheel_queue::") {
            refuse(line, "doors take values of the queue from `tickwheel_queue`; hand none of its names on");
        } else if !is_open && code.starts_with("type ") && names_queue(code) {
            refuse(line, "another name for the queue leads doors around the wall; use the type itself");
        }
    }
    // Each member of a part has a method that lends it.
    for (at, _) in code.match_indices("\npart! {") {
        if code[at..].split("\n}\n").next().is_some_and(names_queue) {
            refuse(
                line_of(&code, at + 1),
                "a part of the service lends each of its members, and one is the queue",
            );
        }
    }
}

fn line_of(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

/// The type that a function returns, from its signature.
fn answer(signature: &str) -> Option<&str> {
    let mut depth = 0_i32;
    for (at, c) in signature.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '>' if depth == 0 && signature[..at].ends_with('-') => return Some(&signature[at + 1..]),
            _ => {}
        }
    }
    None
}

/// Whether the code names the type, and not a variant of another type that is called the same.
fn names_queue(code: &str) -> bool {
    code.match_indices(QUEUE).any(|(at, word)| {
        let (before, behind) = (&code[..at], &code[at + word.len()..]);
        let of = before.strip_suffix("::").and_then(|path| path.rsplit(|c| !is_of_name(c)).next());
        let is_variant = of.is_some_and(|of| of.starts_with(char::is_uppercase));
        !before.ends_with(is_of_name) && !behind.starts_with(is_of_name) && !is_variant
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str, code: &str) -> usize {
        let mut findings = Vec::new();
        check(&Text { path: format!("{SERVER}{path}"), text: code.to_owned() }, &mut findings);
        findings.len()
    }

    #[test]
    fn a_door_that_names_the_queue_is_refused() {
        for code in [
            "use tickwheel_queue::Queue;\n",
            "use tickwheel_queue::{Key, Queue, QueueName};\n",
            "use tickwheel_queue::{\n    Key, QueueName,\n    Queue as Store,\n};\n",
            "fn f(of: &tickwheel_queue::Queue) {}\n",
            "use crate::service::app::Queue;\n",
            "use tickwheel_queue as q;\nfn f(_: q::Queue) {}\n",
            "#[cfg(test)]\nmod tests {\n    use tickwheel_queue::Queue;\n}\n",
        ] {
            assert_eq!(refused("doors/http/a.rs", code), 1, "{code}");
        }
        let fine = "/// See [`Queue`](tickwheel_queue::Queue).\nuse tickwheel_queue::{QueueName, ListQueues};\nfn f() { ExportLine::Queue(x) }\n";
        assert_eq!(refused("doors/http/a.rs", fine), 0);
        assert_eq!(refused("server.rs", "pub fn queue(&self) -> &Queue {}\n"), 0);
    }

    #[test]
    fn a_room_that_hands_the_queue_out_is_refused() {
        for code in [
            "    pub(crate) fn queue(&self) -> &Queue {\n",
            "    fn queue(\n        &self,\n        f: impl Fn(u8) -> u8,\n    ) -> Result<&tickwheel_queue::Queue, u8>\n    where\n",
            "    pub(crate) queue: Queue,\n",
            "    pub(in crate::service) queues: Vec<Queue>,\n",
            "pub(crate) use tickwheel_queue::QueueName;\n",
            "pub(crate) use tickwheel_queue::Queue as Store;\n",
            "    type Target = Queue;\n",
            "\npart! {\n    Part {\n        store: Queue,\n    }\n}\n",
        ] {
            assert_eq!(refused("service/a.rs", code), 1, "{code}");
        }
        let fine = "use tickwheel_queue::Queue;\nstruct A { queue: Queue }\npub(super) queue: Queue,\npub(crate) fn of(queue: Queue, f: impl Fn(&Queue) -> u8) -> Self {}\n#[cfg(test)]\nmod tests {\n    fn f() -> Queue {}\n}\n";
        assert_eq!(refused("service/a.rs", fine), 0);
    }
}
