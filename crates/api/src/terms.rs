//! On what terms a task is handed out: the members beside time and payload.

use crate::bad_request::{BadRequest, shown};
use crate::body::body;
use crate::kind::{Kind, duration, list, number, object, or_null, word};
use crate::openapi::schema;
use crate::part::{may, unless};
use crate::retry::RetryBody;

/// A task has at most so many tags: a list of words to find it by, not a second payload.
pub const TAGS_MAX: usize = 32;
/// A tag has 1 to 128 bytes.
pub const TAG_BYTES_MAX: usize = 128;
/// A group has 1 to 256 bytes.
pub const GROUP_BYTES_MAX: usize = 256;
/// The priority of a task whose request names none.
pub const PRIORITY_DEFAULT: u32 = 1024;

/// Declares the members twice: as a put has them, and as a patch has them, which leaves what it does not name as it is.
macro_rules! terms {
    ($($(#[$($about:tt)*])* $field:ident $(as $wire:literal)?: $type:ty = $usual:expr, $kind:expr;)*) => {
        body! {
            /// The members of a task that a put takes beside its time and payload.
            pub struct Terms: group {
                $($(#[$($about)*])* $field $(as $wire)?: $type = unless($usual, $kind);)*
            }
        }

        body! {
            /// What a patch changes of a task's [`Terms`]; `None` leaves a member as it is.
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

// `null` takes an earlier value away, where there may be none.
terms! {
    /// Words to find the task by, each once.
    tags: Vec<String> = Vec::new(), tags();
    /// Of what is due the smaller goes first. Default: 1024.
    priority: u32 = PRIORITY_DEFAULT, number(0, u32::MAX.into());
    /// What `max_in_flight_per_group` counts.
    group: Option<String> = None, or_null(word(GROUP_BYTES_MAX, "user:7"));
    /// How often and how soon it is tried again, as a whole: a member that is not named has its default. Default: that of the queue.
    retry: Option<RetryBody> = None, or_null(object());
    /// Given up so long after this request, of a schedule's tasks so long after their instants, unless a worker has it then. Default: never.
    expire_after_ms as "expire_after": Option<u64> = None, or_null(duration());
}

fn tags() -> impl Kind<Value = Vec<String>> {
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
        return Err(BadRequest::member(path, what, "keep what nobody searches for in the payload"));
    }
    let twice = tags.iter().enumerate().find(|(index, tag)| tags[..*index].contains(tag));
    twice.map_or(Ok(()), |(index, tag)| {
        let what = format!("`{}` is given twice", shown(tag));
        Err(BadRequest::member(format!("{path}[{index}]"), what, "leave one of them out"))
    })
}
