//! `/v1/leases`: who has what.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{LeasesPage, LeasesQuery};
use tickwheel_queue::{LEASES_PAGE_MAX, ListLeases, QueueName};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::translate;
use crate::translate::cursor::foreign_cursor;
use crate::translate::leases::{cursor, held_lease, read_cursor};

handlers! {
    ListLeases => list,
}

/// The number of leases, including those that the filter leaves out, that the queue may look at for one page. Then the
/// page ends with a cursor, full or not.
const LOOKED_AT_MAX: usize = 100_000;

/// `GET`: one page of the leases of the queues in the caller's scope, in the order in which they began. Other calls are served between two
/// pages of the engine.
async fn list(call: Call) -> Result<Response, Refusal> {
    let caller = &call.caller;
    let asked = LeasesQuery::parse(call.query())?;
    let queue = asked.queue.as_deref().map(QueueName::new).transpose();
    let queue = queue.map_err(|error| translate::name_refused(&error))?;
    queue.iter().try_for_each(|queue| caller.may(Right::Read, queue))?;
    let after = asked.cursor.as_deref().map(|text| read_cursor(text, &asked).ok_or_else(foreign_cursor));
    let mut after = after.transpose()?;
    let worker: Option<Arc<str>> = asked.worker.as_deref().map(Into::into);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    loop {
        let list = ListLeases { queue: queue.clone(), worker: worker.clone(), after, max: LEASES_PAGE_MAX };
        let page = caller.leases(list).await?;
        let left = asked.limit - found.len();
        found.extend(page.leases.into_iter().take(left + 1));
        if found.len() > asked.limit {
            // There is another one behind the page.
            found.truncate(asked.limit);
            after = found.last().map(|last| last.cursor);
            break;
        }
        after = page.next;
        looked_at += LEASES_PAGE_MAX;
        // A cursor would tell a token with a scope that other queues have leases, so such a token gets all or a full page.
        if after.is_none() || (looked_at >= LOOKED_AT_MAX && caller.grant().is_unscoped()) {
            break;
        }
    }
    let next_cursor = after.map(|after| cursor(after, &asked));
    let written = aside(move || {
        let leases = found.iter().map(held_lease).collect();
        answer::json_in_pieces(StatusCode::OK, &LeasesPage { leases, next_cursor })
    });
    Ok(written.await?)
}
