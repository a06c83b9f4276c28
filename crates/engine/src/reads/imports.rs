//! [`Importing`]: an import that waits until the store has looked up its keys and ids.

use super::Reads;
use super::lookups::{ImportLook, Purpose};
use crate::calls::ImportTasks;
use crate::input::CallId;
use crate::seam::{Found, Wanted};

/// An import that waits until the store has looked up its keys, and its ids if those are kept.
#[derive(Debug)]
pub(crate) struct Importing {
    pub(crate) import: ImportTasks,
    /// The look-up result of each key.
    pub(crate) keys: Vec<Found>,
    /// The look-up result of each id, if ids are kept.
    pub(crate) ids: Vec<Found>,
    pub(crate) keeps_ids: bool,
}

impl Importing {
    fn is_complete(&self) -> bool {
        let tasks = self.import.tasks.len();
        self.keys.len() == tasks && (!self.keeps_ids || self.ids.len() == tasks)
    }
}

impl Reads {
    /// Looks all keys of an import up, and all its ids if those are kept.
    pub(crate) fn want_import(&mut self, call: CallId, import: ImportTasks, keeps_ids: bool) {
        let keys = import.tasks.iter().map(|task| Wanted::Key(task.queue.clone(), task.key.clone()));
        let ids = import.tasks.iter().filter(|_| keeps_ids).map(|task| Wanted::Id(task.id));
        // One request asks for all keys and ids of an import.
        for wanted in keys.chain(ids) {
            self.want(Purpose::Import(ImportLook { call, wanted }));
        }
        self.imports.insert(call, Importing { import, keys: Vec::new(), ids: Vec::new(), keeps_ids });
    }

    /// The store has looked up one key or id. Returns the import if that was the last one.
    pub(crate) fn found_for_import(&mut self, look: &ImportLook, found: Found) -> Option<Importing> {
        let importing = self.imports.get_mut(&look.call).expect("an import stays until all is found");
        match look.wanted {
            Wanted::Key(..) => importing.keys.push(found),
            Wanted::Id(_) => importing.ids.push(found),
        }
        if importing.is_complete() { self.imports.remove(&look.call) } else { None }
    }

    /// The store failed to answer a look-up. Returns whether the import had not been told that yet.
    pub(crate) fn end_import(&mut self, call: CallId) -> bool {
        self.imports.remove(&call).is_some()
    }
}
