//! Groups of dead tasks. The tasks of one group have one cause of death, as far as their last failures tell it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwheel_api::{
    DEAD_GROUP_EXAMPLES_MAX, DeadExampleBody, DeadGroupBody, GROUP_ID_DIGITS, failure_shape,
};
use tickwheel_queue::{Death, Failed, Key, TaskView, Timestamp};

use crate::base::hex;
use crate::service::search::sieve::last_failure;
use crate::translate::twin::Twin;

/// The part of a dead task that its group is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Corpse {
    pub(crate) key: Key,
    pub(crate) id: u64,
    pub(crate) at: Timestamp,
    pub(crate) why: Death,
    pub(crate) how: Option<Failed>,
    pub(crate) text: Option<Arc<str>>,
}

impl Corpse {
    /// `None`: the task is not dead.
    pub(crate) fn of(task: &TaskView) -> Option<Self> {
        let dead = task.extra.dead?;
        let failure = last_failure(task);
        Some(Self {
            key: task.key.clone(),
            id: task.id,
            at: dead.at,
            why: dead.why,
            how: failure.map(|failure| failure.how),
            text: failure.and_then(|failure| failure.reason.clone()),
        })
    }
}

/// The id of a group. It depends on nothing else, so that it can be kept and sent to another server.
pub(crate) fn group_id(why: Death, how: Option<Failed>, shape: &str) -> String {
    let (why, how) = (why.twin().name(), how.map_or("", |how| how.twin().name()));
    let hash = Sha256::digest(format!("{why}\0{how}\0{shape}"));
    hex::write(&hash[..GROUP_ID_DIGITS / 2])
}

/// Groups dead tasks. The largest group comes first; of equal ones, the one with the latest death. Cost: reads each text once.
pub(crate) fn groups(mut corpses: Vec<Corpse>) -> Vec<DeadGroupBody> {
    corpses.sort_by_key(|corpse| (Reverse(corpse.at), corpse.id));
    let mut groups: Vec<DeadGroupBody> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for corpse in corpses {
        let Corpse { key, id, at, why, how, text } = corpse;
        let text = text.as_deref().unwrap_or_default();
        let shape = failure_shape(text);
        let place = *places.entry(group_id(why, how, &shape)).or_insert_with_key(|group| {
            groups.push(DeadGroupBody {
                id: group.clone(),
                reason: why.twin(),
                how: how.map(Twin::twin),
                failure: shape,
                count: 0,
                first_ms: at.as_ms(),
                last_ms: at.as_ms(),
                examples: Vec::new(),
            });
            groups.len() - 1
        });
        let group = &mut groups[place];
        group.count += 1;
        group.first_ms = at.as_ms();
        if group.examples.len() < DEAD_GROUP_EXAMPLES_MAX {
            group.examples.push(DeadExampleBody { key: key.as_str().to_owned(), id, text: text.to_owned() });
        }
    }
    groups.sort_by(|one, other| {
        let order = |group: &DeadGroupBody| (Reverse(group.count), Reverse(group.last_ms));
        order(one).cmp(&order(other)).then_with(|| one.id.cmp(&other.id))
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpse(id: u64, at: i64, why: Death, how: Option<Failed>, text: &str) -> Corpse {
        let text = (!text.is_empty()).then(|| Arc::from(text));
        Corpse {
            key: Key::from_id(id),
            id,
            at: Timestamp::from_ms(at).expect("not negative"),
            why,
            how,
            text,
        }
    }

    #[test]
    fn one_cause_is_one_group_with_the_newest_examples() {
        let nacked = Some(Failed::Nacked);
        let corpses = vec![
            corpse(1, 10, Death::MaxAttempts, nacked, "HTTP 500 of 10.0.0.1"),
            corpse(2, 40, Death::MaxAttempts, nacked, "HTTP 500 of 10.0.0.2"),
            corpse(3, 20, Death::Expired, None, ""),
            corpse(4, 30, Death::MaxAttempts, nacked, "HTTP 500 of 10.0.0.1"),
            corpse(5, 50, Death::MaxAttempts, Some(Failed::LeaseEnded), ""),
            corpse(6, 20, Death::MaxAttempts, nacked, "HTTP 500 of 10.0.0.9"),
            corpse(7, 60, Death::MaxAttempts, nacked, "HTTP 422 of 10.0.0.9"),
        ];
        let groups = groups(corpses);
        let seen: Vec<_> = groups
            .iter()
            .map(|group| (group.failure.as_str(), group.count, group.first_ms, group.last_ms))
            .collect();
        assert_eq!(
            seen,
            [("HTTP 500 of #", 4, 10, 40), ("HTTP 422 of #", 1, 60, 60), ("", 1, 50, 50), ("", 1, 20, 20)]
        );
        let examples: Vec<u64> = groups[0].examples.iter().map(|example| example.id).collect();
        assert_eq!(examples, [2, 4, 6]);
        assert_eq!(groups[0].examples[0].text, "HTTP 500 of 10.0.0.2");
        assert_eq!(groups[0].id, group_id(Death::MaxAttempts, nacked, "HTTP 500 of #"));
        assert_ne!(groups[2].id, groups[3].id);
    }

    /// People write ids in scripts, and another release must find the same tasks by them.
    #[test]
    fn an_id_stays_as_it_is() {
        let id = group_id(Death::MaxAttempts, Some(Failed::Nacked), "card refused");
        assert_eq!(id, "1f1b4043985cdd4b");
    }
}
