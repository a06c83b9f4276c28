//! The error of a queue that does not exist, with the existing name that is nearest to it.

use anyhow::{Result, bail};
use tickwheel_api::{Problem, ProblemKind, QueuesQuery};
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use crate::environment::changes;

/// The largest number of queues on one page of the list.
const PAGE: usize = 1_000;
/// At most this many pages are searched for the nearest name, so that the error comes soon on a server with very many queues.
const PAGES_MAX: usize = 10;

/// Checks that the queue exists. To be called where the answer would look the same for a queue that is empty and for one that does not exist.
///
/// # Errors
/// The queue does not exist, or the server cannot be asked.
pub(crate) fn check(client: &Client, queue: &str) -> Result<()> {
    if !client.queue(queue)?.exists {
        bail!(told(client, queue));
    }
    Ok(())
}

/// The answer to a call for something in the queue. If the queue does not exist, the error says that, and not only that the thing is missing.
///
/// # Errors
/// The call failed.
pub(crate) fn in_queue<T>(client: &Client, queue: &str, answer: Result<T, ClientError>) -> Result<T> {
    let is_missing = |problem: &Problem| {
        matches!(
            problem.kind(),
            Some(ProblemKind::NotFound | ProblemKind::NoSchedule | ProblemKind::NoTarget)
        )
    };
    match answer {
        Err(ClientError::Problem(problem)) if is_missing(&problem) => {
            // Without an answer, the first error is told as it is.
            if client.queue(queue).is_ok_and(|queue| !queue.exists) {
                bail!(told(client, queue));
            }
            Err(ClientError::Problem(problem).into())
        }
        answer => Ok(answer?),
    }
}

/// The sentence for a queue that does not exist.
pub(crate) fn told(client: &Client, queue: &str) -> String {
    let hint = match nearest(client, queue) {
        Some(name) => format!("the nearest name is `{name}`"),
        None => "`tickwheel queues` lists the queues".to_owned(),
    };
    format!(
        "there is no queue `{queue}`: it has no task, no schedule and no settings, and had none within the last hour; {hint}"
    )
}

/// The name of an existing queue that is nearest to this one; `None`: none is near, or the server cannot be asked.
fn nearest(client: &Client, queue: &str) -> Option<String> {
    let mut query = QueuesQuery { limit: Some(PAGE), ..QueuesQuery::default() };
    let mut best: Option<(usize, String)> = None;
    for _ in 0..PAGES_MAX {
        let page = client.list_queues(&query).ok()?;
        for name in page.queues.into_iter().map(|counts| counts.queue) {
            let near = distance(queue, &name);
            if near.is_some() && best.as_ref().is_none_or(|(least, _)| near < Some(*least)) {
                best = near.map(|near| (near, name));
            }
        }
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    best.map(|(_, name)| name)
}

/// How far two names of queues are from each other: the number of letters to add, remove, change, or swap with the next one. Upper and lower
/// case count as the same letter. Two names that differ by their namespace alone are 1 apart. `None`: the names are not near.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let [wanted, name] = [wanted, name].map(str::to_ascii_lowercase);
    let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    if wanted != name && base(&wanted) == base(&name) {
        return Some(1);
    }
    let near = (wanted.len() / 3).max(1);
    if wanted.len().abs_diff(name.len()) > near {
        return None;
    }
    Some(changes(wanted.as_bytes(), name.as_bytes())).filter(|changes| *changes <= near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_with_a_slip_or_another_namespace() {
        for (wanted, name, near) in [
            ("mial", "mail", Some(1)),
            ("Mail", "mail", Some(0)),
            ("mail", "mails", Some(1)),
            ("mail", "mx", None),
            ("close", "orders/close", Some(1)),
            ("order/close", "orders/close", Some(1)),
            ("exports", "imports", Some(2)),
            ("q", "close", None),
            ("", "", Some(0)),
        ] {
            assert_eq!(distance(wanted, name), near, "{wanted} {name}");
        }
    }
}
