//! The terms of a task: all members except its due time and its payload.

use crate::declare::{ValueCodec, body, duration, list, may, number, object, or_null, schema, unless, word};
use crate::text::bad_request::{BadRequest, shown};
use crate::values::limits::{CADENCE_MS_MAX, GROUP_BYTES_MAX, PRIORITY_DEFAULT, TAG_BYTES_MAX};
use crate::values::retry::RetryBody;

/// Maximum number of tags of a task. Tags are words to find a task by, not a second payload.
pub const TAGS_MAX: usize = 32;

/// Declares the members twice: for a put, and for a patch, where a member that is left out keeps its value.
macro_rules! terms {
    ($($(#[$($about:tt)*])* $field:ident $(as $wire:literal)?: $type:ty = $usual:expr, $kind:expr;)*) => {
        body! {
            /// The members of a put beside due time and payload.
            pub struct Terms: group {
                $($(#[$($about)*])* $field $(as $wire)?: $type = unless($usual, $kind);)*
            }
        }

        body! {
            /// The members of a patch that change [`Terms`]. A member that is `None` keeps its value.
            #[derive(Default)]
            pub struct TermsPatch: group {
                $($(#[$($about)*])* $field $(as $wire)?: Option<$type> = may($kind);)*
            }
        }

        impl Default for Terms {
            fn default() -> Self {
                Self { $($field: $usual),* }
            }
        }
    };
}

// In a patch, `null` removes the value of an optional member.
terms! {
    /// Words to find the task by, each once.
    tags: Vec<String> = Vec::new(), tags();
    /// The priority; among ready tasks, the one with the smallest number goes first. Default: 1024.
    priority: u32 = PRIORITY_DEFAULT, number(0, u32::MAX.into());
    /// The group of the task, whose leased tasks `max_in_flight_per_group` limits.
    group: Option<String> = None, or_null(word(GROUP_BYTES_MAX, "user:7"));
    /// The retry policy of the task. A member of it that is not named has its default. Default: the policy of the queue.
    retry: Option<RetryBody> = None, or_null(object());
    /// The task expires this long after the request, at most 100 years, unless a worker has it then; a task of a schedule, this long after its instant. Default: never.
    expire_after_ms as "expire_after": Option<u64> = None, or_null(duration().within(0, CADENCE_MS_MAX));
}

fn tags() -> impl ValueCodec<Value = Vec<String>> {
    list(word(TAG_BYTES_MAX, "vip"), "write a list of strings, for example `[\"vip\", \"eu\"]`")
        .checked(few_and_each_once)
        .described(|| {
            let mut tags = schema::list(schema::word(TAG_BYTES_MAX), 0, TAGS_MAX);
            tags["uniqueItems"] = true.into();
            tags
        })
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn few_and_each_once(path: &str, tags: &Vec<String>) -> Result<(), BadRequest> {
    if tags.len() > TAGS_MAX {
        let what = format!("has {} tags; a task takes at most {TAGS_MAX}", tags.len());
        return Err(BadRequest::member(path, what, "put words that no query looks for into the payload"));
    }
    let twice = tags.iter().enumerate().find(|(index, tag)| tags[..*index].contains(tag));
    twice.map_or(Ok(()), |(index, tag)| {
        let what = format!("`{}` is given twice", shown(tag));
        Err(BadRequest::member(format!("{path}[{index}]"), what, "leave one of them out"))
    })
}
