//! A file whose contents may be replaced while the server runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::events;

/// The interval at which the file is read.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The value that was last read from the file.
pub(crate) struct Watched<T> {
    /// The name of the value in the log.
    what: &'static str,
    read: Arc<dyn Fn() -> Result<T, String> + Send + Sync>,
    last: RwLock<Arc<T>>,
}

impl<T: PartialEq + Send + Sync + 'static> Watched<T> {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// The errors of `read`.
    pub(crate) fn open<E: ToString>(
        what: &'static str,
        read: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        let last = RwLock::new(Arc::new(read()?));
        let read = Arc::new(move || read().map_err(|error| error.to_string()));
        Ok(Self { what, read, last })
    }

    pub(crate) fn last(&self) -> Arc<T> {
        Arc::clone(&self.last.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the file at intervals, for ever, and uses the new value. If the file has no valid value, the old one
    /// stays, and the log says so once.
    pub(crate) async fn keep_up(&self) {
        let what = self.what;
        let mut told = None;
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let read = Arc::clone(&self.read);
            // The read of a file may take long, and this thread has other tasks.
            let Ok(found) = tokio::task::spawn_blocking(move || read()).await else { continue };
            match found {
                Ok(found) => {
                    told = None;
                    if *self.last() != found {
                        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
                        tracing::info!(target: events::AUDIT, event = events::RELOADED, what, "{what} were read again");
                    }
                }
                Err(why) if told.as_ref() != Some(&why) => {
                    tracing::error!(
                        event = events::RELOAD_FAILED,
                        what,
                        why,
                        "{what} cannot be read again; those before stay valid"
                    );
                    told = Some(why);
                }
                Err(_) => {}
            }
        }
    }
}

impl<T> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("what", &self.what).finish_non_exhaustive()
    }
}

/// Warns in the log if users other than its owner may read a file with secrets.
pub(crate) fn warn_if_others_read(path: &Path) {
    let open = std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
    if open {
        let file = path.display();
        tracing::warn!(event = events::DOUBTFUL, %file, "others than its owner may read this file, and it has secrets; chmod 600 keeps them out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_good_file_is_taken_over_and_a_bad_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("number");
        let write = |text: &str| std::fs::write(&path, text).expect("written");
        write("1");
        let from = path.clone();
        let read = move || std::fs::read_to_string(&from).expect("it is there").parse::<u32>();
        let watched = Arc::new(Watched::open("the numbers", read).expect("a number"));
        let keeper = Arc::clone(&watched);
        tokio::spawn(async move { keeper.keep_up().await });
        for (text, number) in [("2", 2), ("none", 2), ("3", 3), ("3", 3)] {
            write(text);
            tokio::time::sleep(2 * LOOK_AGAIN).await;
            assert_eq!(*watched.last(), number, "{text}");
        }
        assert!(Watched::open("the numbers", || "none".parse::<u32>()).is_err());
    }
}
