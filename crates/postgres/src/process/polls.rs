//! [`Polls`]: reads the inbox for all shards of this process.

use std::sync::Arc;
use std::time::Duration;

use crate::database::{Claim, Database, Failure, Refusal, Session};
use crate::process::node::{Event, Node};

/// The longest time between two reads.
const EVERY: Duration = Duration::from_millis(100);
/// A read brings at most this many rows of a shard.
const ROWS_MAX: usize = 1_000;
/// A call moves at most this many rows that were refused.
const MOVED_MAX: usize = 1_000;
/// If the database does not move the rows together, a call tries this many of them one by one.
const MOVED_ALONE_MAX: usize = 100;
/// The time without a move after the database has refused one (ns).
const WITHOUT_MOVE_NS: u64 = 1_000_000_000;
/// A shard with more refused rows that wait for their move gets no further rows, because each read names all of these.
const REFUSED_MAX: usize = 10_000;

/// Reads the inbox on a session of its own, and moves the rows that were refused.
///
/// # The way of a row
/// - `tickwheel.put` and `tickwheel.cancel` write a row in the transaction of a user. Until it commits, no other transaction sees the row.
/// - A read brings the oldest rows of each shard that [asks](crate::Inbox) and whose epoch stands in the same snapshot. There is no
///   cursor: ids commit out of order, so behind a cursor a row would be lost whose transaction commits after that of a later id.
/// - The shard's store hands the rows to the queue, which makes calls of the engine of them. The batch that has the effect of a row names the
///   row, and the transaction of the batch deletes it. So a row that is there had no effect, whatever crashed.
/// - A shard asks again once all of its rows were answered, and an answer comes after its commit. A read that begins then sees no row that
///   was taken, so no row is handed out twice.
/// - A row that no task can be made of moves to the refused ones, in a transaction of this session with the epoch as its fence. Until then
///   the reads leave it out, so the rows behind it go on.
/// - An owner that loses the shard forgets its rows. The next owner reads those that are left.
#[derive(Debug)]
pub struct Polls<D: Database> {
    database: Arc<D>,
    node: Arc<Node>,
    /// The session, and the incarnation that it was made for.
    session: Option<(String, D::Session)>,
    /// Until when no row is moved (boot-time clock, ns), because the database has refused a move, and its reason.
    without_move: Option<(u64, String)>,
}

impl<D: Database> Polls<D> {
    /// Returns the reads of a process, without a session.
    #[must_use]
    pub fn new(database: Arc<D>, node: Arc<Node>) -> Self {
        Self { database, node, session: None, without_move: None }
    }

    /// Moves the rows that were refused, reads once, and tells the shards. Returns the longest time until the next call.
    pub fn turn(&mut self) -> Duration {
        let Some(incarnation) = self.node.incarnation() else {
            self.session = None;
            return EVERY;
        };
        let trouble = self.work(&incarnation).err();
        self.node.set_trouble("inbox", trouble.as_deref());
        let is_more_to_move = trouble.is_none() && !self.node.inbox().refused_rows().is_empty();
        if is_more_to_move { Duration::ZERO } else { EVERY }
    }

    /// # Errors
    /// The reason why a part of the work was not done. A later call does it.
    fn work(&mut self, incarnation: &str) -> Result<(), String> {
        let asking = self.node.inbox().asking();
        let now_ns = self.node.now_ns();
        let without_move = self.without_move.take().filter(|(until_ns, _)| now_ns < *until_ns);
        let moves_max = if without_move.is_some() { 0 } else { MOVED_MAX };
        let refusals = self.node.inbox().take_refusals(moves_max);
        if asking.is_empty() && refusals.is_empty() && without_move.is_none() {
            return Ok(());
        }
        let made = match self.session.take().filter(|(of, _)| of == incarnation) {
            Some((_, session)) => Ok(session),
            None => self.database.connect(incarnation),
        };
        let mut session = match made {
            Ok(session) => session,
            Err(failure) => {
                self.node.inbox().refuse(refusals);
                return Err(failure.to_string());
            }
        };
        // Rows that cannot be moved do not hold up the others.
        let not_moved = match self.move_away(&mut session, refusals) {
            Err(Failure::Gone { why }) => return Err(why),
            Err(Failure::Refused { why, .. }) => Some((now_ns + WITHOUT_MOVE_NS, why)),
            Ok(()) => without_move,
        };
        self.without_move.clone_from(&not_moved);
        let mut refused = self.node.inbox().refused_rows();
        let is_full = |shard| refused.get(&shard).is_some_and(|rows: &Vec<i64>| rows.len() > REFUSED_MAX);
        let asking: Vec<Claim> = asking.into_iter().filter(|claim| !is_full(claim.shard)).collect();
        let refused: Vec<i64> =
            asking.iter().filter_map(|claim| refused.remove(&claim.shard)).flatten().collect();
        let pages = session.inbox(&asking, ROWS_MAX, &refused);
        if !matches!(pages, Err(Failure::Gone { .. })) {
            self.session = Some((incarnation.to_owned(), session));
        }
        let pages = pages.map_err(|failure| match failure {
            Failure::Refused { why, .. } | Failure::Gone { why } => why,
        })?;
        for page in pages {
            // The shard asks again once it has dealt with these rows, so its question ends first.
            self.node.inbox().end(page.claim);
            self.node.tell(page.claim.shard, Event::Inbox(page));
        }
        not_moved.map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Moves rows that were refused: together or, if the database refuses that, some of them one by one. Rows that were not moved go behind the
    /// others, and wait for a later call.
    ///
    /// # Errors
    /// The last failure.
    fn move_away(&self, session: &mut D::Session, mut refusals: Vec<Refusal>) -> Result<(), Failure> {
        if refusals.is_empty() {
            return Ok(());
        }
        match session.refuse(&refusals) {
            Ok(()) => Ok(()),
            Err(Failure::Refused { again: false, .. }) if refusals.len() > 1 => {
                let later = refusals.split_off(refusals.len().min(MOVED_ALONE_MAX));
                self.node.inbox().refuse(later);
                let mut outcome = Ok(());
                for refusal in refusals {
                    if matches!(outcome, Err(Failure::Gone { .. })) {
                        self.node.inbox().refuse([refusal]);
                    } else if let Err(failure) = self.move_away(session, vec![refusal]) {
                        outcome = Err(failure);
                    }
                }
                outcome
            }
            Err(failure) => {
                self.node.inbox().refuse(refusals);
                Err(failure)
            }
        }
    }
}
