//! [`Names`]: texts that many records share are kept once in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{Body, QueueName};

use super::wire::{DecodeError, Reader};

/// At most this many queue names are remembered at one time.
const QUEUES_MAX: usize = 1_024;

/// Gives equal queue names one allocation while records are read, and equal content types of neighbouring records too.
#[derive(Debug)]
pub(crate) struct Names {
    queues: BTreeMap<String, QueueName>,
    content_type: Arc<str>,
    no_body: Arc<Body>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { queues: BTreeMap::new(), content_type: "".into(), no_body: Arc::default() }
    }

    /// Reads the name of a queue, and remembers the name.
    pub(crate) fn queue(&mut self, reader: &mut Reader<'_>) -> Result<QueueName, DecodeError> {
        let at = reader.error("").at;
        let name = reader.str()?;
        if let Some(known) = self.queues.get(name) {
            return Ok(known.clone());
        }
        if self.queues.len() >= QUEUES_MAX {
            // Without a limit, names that come only once would collect for ever.
            self.queues.clear();
        }
        let queue = QueueName::new(name).map_err(|_| DecodeError { what: "no queue name", at })?;
        self.queues.insert(name.to_owned(), queue.clone());
        Ok(queue)
    }

    /// Returns this content type as a shared text. Only the last content type is remembered, because neighbouring records mostly have the
    /// same one.
    pub(crate) fn content_type(&mut self, text: &str) -> Arc<str> {
        if *self.content_type != *text {
            self.content_type = text.into();
        }
        Arc::clone(&self.content_type)
    }

    /// Returns an empty body, which the tasks without a body share.
    pub(crate) fn no_body(&self) -> Arc<Body> {
        Arc::clone(&self.no_body)
    }
}
