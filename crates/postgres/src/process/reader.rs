//! [`Reader`]: answers the questions of the shards of a node.

use std::sync::Arc;

use crate::database::{Database, Failure, Session};
use crate::process::node::{Event, Node, ReadRequest};

/// Answers questions one after the other, through a session of its own.
#[derive(Debug)]
pub struct Reader<D: Database> {
    database: Arc<D>,
    node: Arc<Node>,
    /// The session, and the incarnation that it was made for.
    session: Option<(String, D::Session)>,
    name: String,
}

impl<D: Database> Reader<D> {
    /// Returns a reader without a session. `index` is its number among the readers of the node.
    #[must_use]
    pub fn new(database: Arc<D>, node: Arc<Node>, index: usize) -> Self {
        Self { database, node, session: None, name: format!("reader {index}") }
    }

    /// Asks the database, and tells the shard the answer. Returns the question, and why the database did not answer, if it has to be asked
    /// again later.
    pub fn answer(&mut self, job: ReadRequest) -> Option<(ReadRequest, String)> {
        let Some(incarnation) = self.node.incarnation() else {
            // The shards of this process are lost, so the answer is of no use.
            self.node.set_trouble(&self.name, None);
            self.refuse(&job, "read: this process has no shards any more".to_owned());
            return None;
        };
        let made = match self.session.take().filter(|(of, _)| *of == incarnation) {
            Some((_, session)) => Ok(session),
            None => self.database.connect(&incarnation).map_err(|failure| failure.to_string()),
        };
        let why = match made {
            Err(why) => why,
            Ok(mut session) => match session.read(job.shard, &job.read) {
                Ok(seen) => {
                    self.session = Some((incarnation, session));
                    self.node.set_trouble(&self.name, None);
                    self.node.tell(job.shard, Event::Read(job.no, Ok(seen)));
                    return None;
                }
                Err(Failure::Refused { why, again: false }) => {
                    self.session = Some((incarnation, session));
                    self.node.set_trouble(&self.name, None);
                    self.refuse(&job, why);
                    return None;
                }
                Err(Failure::Refused { why, again: true } | Failure::Gone { why }) => why,
            },
        };
        self.node.set_trouble(&self.name, Some(&why));
        Some((job, why))
    }

    /// Tells the shard that its question cannot be answered.
    pub fn refuse(&self, job: &ReadRequest, why: String) {
        self.node.tell(job.shard, Event::Read(job.no, Err(why)));
    }
}
