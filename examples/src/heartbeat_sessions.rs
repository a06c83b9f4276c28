//! Members of groups that have to show a sign of life within their session time, as consumers do towards Kafka's coordinator.
//!
//! For each member one operation waits in the purgatory, on the member's key, for the next sign of life. A sign completes it, and
//! another one waits from then on. One that expires removes the member, and the owner of the group is told.
//!
//! If silence is all there is to notice, a timeout that is put off does it for less: see `idle_connections`. An operation is for
//! sessions with more than one end: here the member may leave, and its group may go.
//!
//! Ground rules:
//! - `members` is locked for moments, and never while the purgatory is called: it asks operations, and they lock it.
//! - An operation keeps all of it alive, for one session time at most.
//! - Each sign of life has a number of its own, and an operation knows the one it began with. If that is not the member's last
//!   one any more, it has nothing left to do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Operation, Purgatory, SubmitRefusal, Timer};

/// Watches over the members of groups. Clones are the same one.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

/// Why a sign of life was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionError {
    /// There is no such member, or not any more: it has to join anew.
    UnknownMember,
    /// No timer can watch over the member, so it is none any more.
    Unwatched(SubmitRefusal),
}

/// A group and a member of it.
type Key = (String, String);

type OnGone = Box<dyn Fn(&str, &str) + Send + Sync>;

struct Inner {
    session: Duration,
    purgatory: Purgatory<Key, Silence>,
    signs: AtomicU64,
    members: Mutex<BTreeMap<Key, Member>>,
    on_gone: OnGone,
}

#[derive(Default)]
struct Member {
    last_sign: u64,
    committed: u64,
}

/// Ends with the next sign of life, or the member does.
struct Silence {
    sessions: Arc<Inner>,
    key: Key,
    sign: u64,
}

impl Operation for Silence {
    fn try_complete(&self) -> bool {
        !self.is_last(&self.sessions.members())
    }

    fn on_expire(&self) {
        let mut members = self.sessions.members();
        // A sign that came at the last moment counts, too.
        if self.is_last(&members) {
            members.remove(&self.key);
            drop(members);
            (self.sessions.on_gone)(&self.key.0, &self.key.1);
        }
    }

    fn on_complete(&self) {}
}

impl Silence {
    fn is_last(&self, members: &BTreeMap<Key, Member>) -> bool {
        members.get(&self.key).is_some_and(|member| member.last_sign == self.sign)
    }
}

impl Sessions {
    /// No member yet. `on_gone` is told the group and the name of each member that was silent for `session`.
    pub fn new(
        timer: &Timer,
        session: Duration,
        on_gone: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Self {
        let inner = Inner {
            session,
            purgatory: Purgatory::new(timer),
            signs: AtomicU64::new(1),
            members: Mutex::default(),
            on_gone: Box::new(on_gone),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A new member; for one that is there already, a sign of life.
    ///
    /// # Errors
    /// [`SessionError::Unwatched`].
    pub fn join(&self, group: &str, member: &str) -> Result<(), SessionError> {
        let key = key(group, member);
        self.inner.members().entry(key.clone()).or_default();
        self.sign(key, |_| ())
    }

    /// The member lives.
    ///
    /// # Errors
    /// [`SessionError`]: it was silent for too long, has left, or cannot be watched over.
    pub fn heartbeat(&self, group: &str, member: &str) -> Result<(), SessionError> {
        self.sign(key(group, member), |_| ())
    }

    /// The member has worked up to an offset, and so it lives.
    ///
    /// # Errors
    /// As [`heartbeat`](Self::heartbeat): the offset is not taken then.
    pub fn commit(&self, group: &str, member: &str, offset: u64) -> Result<(), SessionError> {
        self.sign(key(group, member), |member| member.committed = offset)
    }

    /// How far a member has come.
    #[must_use]
    pub fn committed(&self, group: &str, member: &str) -> Option<u64> {
        self.inner.members().get(&key(group, member)).map(|member| member.committed)
    }

    /// The member goes, and `on_gone` is not told. False if it was not there.
    pub fn leave(&self, group: &str, member: &str) -> bool {
        let key = key(group, member);
        let left = self.inner.members().remove(&key).is_some();
        self.inner.purgatory.check(&key);
        left
    }

    /// The whole group goes. Returns how many members it had.
    pub fn remove_group(&self, group: &str) -> usize {
        let gone: Vec<Key> = {
            let mut members = self.inner.members();
            members.extract_if(.., |key, _| key.0 == group).map(|(key, _)| key).collect()
        };
        for key in &gone {
            self.inner.purgatory.check(key);
        }
        gone.len()
    }

    /// How many members there are, in all groups.
    #[must_use]
    pub fn count(&self) -> usize {
        self.inner.members().len()
    }

    fn sign(&self, key: Key, change: impl FnOnce(&mut Member)) -> Result<(), SessionError> {
        let sign = self.inner.signs.fetch_add(1, Ordering::Relaxed);
        {
            let mut members = self.inner.members();
            let member = members.get_mut(&key).ok_or(SessionError::UnknownMember)?;
            change(member);
            member.last_sign = sign;
        }
        self.inner.purgatory.check(&key);
        let silence = Silence { sessions: Arc::clone(&self.inner), key: key.clone(), sign };
        match self.inner.purgatory.submit(Arc::new(silence), [key], self.inner.session) {
            Ok(_) => Ok(()),
            Err(refused) => {
                self.inner.members().remove(&refused.operation.key);
                Err(SessionError::Unwatched(refused.why))
            }
        }
    }
}

impl Inner {
    fn members(&self) -> MutexGuard<'_, BTreeMap<Key, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(group: &str, member: &str) -> Key {
    (group.to_owned(), member.to_owned())
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tickwheel::{Job, ManualClock};

    use super::*;

    const UNKNOWN: Result<(), SessionError> = Err(SessionError::UnknownMember);

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A session time of 1,000.
    fn world() -> (ManualClock, Timer, Sessions, Receiver<String>) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let (gone, silent) = channel();
        let sessions = Sessions::new(&timer, ms(1_000), move |group, member| {
            gone.send(format!("{group}/{member}")).expect("the test listens");
        });
        (clock, timer, sessions, silent)
    }

    #[test]
    fn g17_a_silent_member_is_unknown_after_its_session() {
        let (clock, timer, sessions, silent) = world();
        sessions.join("g", "a").expect("it is watched");
        clock.advance(ms(999));
        assert_eq!((sessions.count(), silent.try_iter().count()), (1, 0));
        clock.advance(ms(1));
        assert_eq!(silent.try_iter().collect::<Vec<_>>(), ["g/a"]);
        clock.advance(ms(100));
        assert_eq!(sessions.heartbeat("g", "a"), UNKNOWN);
        assert_eq!((timer.pending(), sessions.inner.purgatory.delayed()), (0, 0));
    }

    #[test]
    fn g18_what_waits_for_a_gone_member_completes_and_changes_nothing() {
        let (clock, timer, sessions, silent) = world();
        for (group, member) in [("g", "a"), ("dead", "a"), ("dead", "b"), ("h", "a")] {
            sessions.join(group, member).expect("it is watched");
        }
        assert!(sessions.leave("g", "a"));
        assert!(!sessions.leave("g", "a"));
        assert_eq!(sessions.remove_group("dead"), 2);
        // The members that left are off at once, not when their time is up.
        assert_eq!((sessions.inner.purgatory.delayed(), timer.pending(), sessions.count()), (1, 1, 1));
        for (group, member) in [("g", "a"), ("dead", "a"), ("never", "a")] {
            assert_eq!(sessions.heartbeat(group, member), UNKNOWN, "{group}/{member}");
        }
        assert_eq!(sessions.inner.purgatory.delayed(), 1, "an unknown heartbeat leaves nothing behind");
        clock.advance(ms(1_000));
        assert_eq!(silent.try_iter().collect::<Vec<_>>(), ["h/a"], "nobody is told of those who left");
    }

    #[test]
    fn g19_any_sign_of_life_begins_the_session_anew() {
        let (clock, timer, sessions, silent) = world();
        sessions.join("g", "a").expect("it is watched");
        for offset in 1..=50 {
            clock.advance(ms(999));
            let sign = match offset % 3 {
                0 => sessions.heartbeat("g", "a"),
                1 => sessions.commit("g", "a", offset),
                _ => sessions.join("g", "a"),
            };
            assert_eq!(sign, Ok(()), "sign {offset}");
            assert_eq!((sessions.inner.purgatory.delayed(), timer.pending()), (1, 1), "one wait for each");
        }
        assert_eq!(sessions.committed("g", "a"), Some(49));
        clock.advance(ms(999));
        assert_eq!(silent.try_iter().count(), 0);
        clock.advance(ms(1));
        assert_eq!(silent.try_iter().collect::<Vec<_>>(), ["g/a"]);
        assert_eq!(sessions.commit("g", "a", 51), UNKNOWN);
        assert_eq!(sessions.committed("g", "a"), None);
    }

    /// The expiry was decided before the sign came, and is told after it.
    #[test]
    fn g19_a_sign_at_the_last_moment_counts() {
        let (_clock, _timer, sessions, silent) = world();
        sessions.join("g", "a").expect("it is watched");
        let before = sessions.inner.signs.load(Ordering::Relaxed) - 1;
        sessions.heartbeat("g", "a").expect("it is a member");
        let late = Silence { sessions: Arc::clone(&sessions.inner), key: key("g", "a"), sign: before };
        late.on_expire();
        assert_eq!((sessions.count(), silent.try_iter().count()), (1, 0));
    }

    #[test]
    fn a_member_that_nobody_can_watch_is_none() {
        let (_clock, timer, sessions, _silent) = world();
        drop(timer.shutdown());
        let unwatched = Err(SessionError::Unwatched(SubmitRefusal::ShutDown));
        assert_eq!(sessions.join("g", "a"), unwatched);
        assert_eq!(sessions.count(), 0);
    }
}
