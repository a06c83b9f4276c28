//! The declaration of an operation, and the macro that declares all of them.

use std::collections::BTreeMap;

use super::table::OperationId;
use crate::ProblemKind::{self, *};
use crate::values::right::Right;

/// One method of one path: an entry in the table.
#[derive(Debug)]
pub struct Operation {
    /// The name of the operation.
    pub id: OperationId,
    /// The HTTP method. A `GET` also answers a `HEAD`.
    pub method: &'static str,
    /// The path, with names in braces.
    pub path: &'static str,
    /// The right that its caller needs.
    pub needs: Needs,
    /// The parameters of the query.
    pub query: &'static [&'static str],
    /// Whether a request has to have each of them.
    pub query_required: bool,
    /// The description: the text of its doc comment.
    pub(super) what: &'static str,
    /// The request headers that have a meaning for the operation.
    pub(super) headers: &'static [&'static str],
    /// The body of the requests.
    pub(super) body: Option<Body>,
    /// The answers that are not problems.
    pub(super) answers: &'static [Answer],
    /// The problems of this operation, in addition to those of every operation.
    pub(super) problems: &'static [ProblemKind],
    /// Whether the operation changes stored data.
    pub(super) writes: bool,
    /// Whether one call changes many tasks or schedules.
    pub(super) changes_many: bool,
}

/// The right that a call needs, and where it needs it.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Needs {
    /// No token.
    Nothing,
    /// Any token.
    Token,
    /// The right in the queue of the path.
    In(Right),
    /// The right in some queue. The answer shows only queues in the token's scope.
    Somewhere(Right),
    /// The right in all queues.
    Everywhere(Right),
}

#[derive(Debug)]
pub(super) struct Body {
    pub(super) schema: &'static str,
    pub(super) required: bool,
    /// Whether the body is lines of JSON, not one object.
    pub(super) lines: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) what: &'static str,
    pub(super) content: Content,
    pub(super) headers: &'static [&'static str],
}

#[derive(Debug)]
pub(super) enum Content {
    /// One object of this schema.
    Json(&'static str),
    /// One object of this schema, or a page for browsers.
    JsonOrPage(&'static str),
    /// An object of this schema on each line.
    Lines(&'static str),
    /// A stream of server-sent events, whose data are objects of these schemas. Each event is named after its topic.
    Events(&'static [&'static str]),
    /// Text of one of these types.
    Text(&'static [&'static str]),
    /// The description of the API.
    OpenApi,
}

/// A body that may be left out, because all its members have defaults.
pub(super) const fn may(schema: &'static str) -> Body {
    Body { schema, required: false, lines: false }
}

pub(super) const fn must(schema: &'static str) -> Body {
    Body { schema, required: true, lines: false }
}

/// A body of lines that may have none.
pub(super) const fn may_lines(schema: &'static str) -> Body {
    Body { schema, required: false, lines: true }
}

pub(super) const fn must_lines(schema: &'static str) -> Body {
    Body { schema, required: true, lines: true }
}

/// Declares the operations of a server: the enum of their ids, and the table of their descriptions.
macro_rules! operations {
    ($(
        #[doc = $what:literal]
        $Id:ident: $method:ident $path:literal, $Needs:ident $(($Right:ident))? $(, $flag:ident)* {
            $(query: $($parameter:literal),+;)?
            $(headers: $($header:literal),+;)?
            $(body: $body:expr;)?
            $($status:literal $Content:ident $(($content:expr))?, $answer:literal $(, [$($answered:literal),+])?;)+
            $(refuses: $($Problem:ident),+;)?
        }
    )+) => {
        /// The name of an operation.
        #[derive(Debug, Copy, Clone, PartialEq, Eq)]
        pub enum OperationId {
            $(#[doc = $what] $Id,)+
        }

        /// Every operation of a server, in the order of the documents and of [`OperationId`].
        pub static OPERATIONS: [Operation; [$(OperationId::$Id),+].len()] = [$(Operation {
            $($flag: true,)*
            $(query: &[$($parameter),+],)?
            $(headers: &[$($header),+],)?
            $(body: Some($body),)?
            $(problems: &[$(ProblemKind::$Problem),+],)?
            ..Operation {
                id: OperationId::$Id,
                method: stringify!($method),
                path: $path,
                needs: Needs::$Needs $((Right::$Right))?,
                query: &[],
                query_required: false,
                what: $what,
                headers: &[],
                body: None,
                answers: &[$(Answer {
                    status: $status,
                    what: $answer,
                    content: Content::$Content $(($content))?,
                    headers: &[$($($answered),+)?],
                }),+],
                problems: &[],
                writes: false,
                changes_many: false,
            }
        }),+];
    };
}
pub(super) use operations;

impl OperationId {
    /// The name in programs that are generated, such as `putTask`.
    pub fn name(self) -> String {
        let name = format!("{self:?}");
        name[..1].to_ascii_lowercase() + &name[1..]
    }
}

impl Operation {
    /// The description without its full stop.
    pub(super) fn what(&self) -> &'static str {
        self.what.trim().trim_end_matches('.')
    }

    /// The names in braces in the path.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    /// Whether the audit records its calls with their callers: those that need `admin` or change many tasks or
    /// schedules at once.
    pub fn is_act(&self) -> bool {
        let (Needs::In(right) | Needs::Somewhere(right) | Needs::Everywhere(right)) = self.needs else {
            return false;
        };
        self.method != "GET" && (right == Right::Admin || self.changes_many)
    }

    /// The problems that the operation can have, by status.
    pub(super) fn all_problems(&self) -> BTreeMap<u16, Vec<ProblemKind>> {
        let mut kinds = vec![
            BadRequest,
            ForeignHost,
            NeedsTls,
            Timeout,
            UriTooLong,
            HeadersTooLarge,
            Busy,
            Internal,
            Stopping,
        ];
        if self.method != "GET"
            || self.answers.iter().any(|answer| matches!(answer.content, Content::Events(_)))
        {
            kinds.push(ForeignOrigin);
        }
        match self.needs {
            Needs::Nothing => {}
            Needs::Token => kinds.push(Unauthorized),
            Needs::In(_) if self.method == "GET" => {
                kinds.extend([Unauthorized, Forbidden, OutOfScope, BadName])
            }
            Needs::In(_) => kinds.extend([Unauthorized, Forbidden, OutOfScope, OwnQueue, BadName]),
            Needs::Somewhere(_) | Needs::Everywhere(_) => kinds.extend([Unauthorized, Forbidden]),
        }
        // A name that is empty or has a bare `/` makes another path.
        if self.names().next().is_some() {
            kinds.push(NoEndpoint);
        }
        if self.path.starts_with("/v1/") {
            kinds.extend([Starting, ReadOnly, Indeterminate]);
        }
        if self.body.is_some() {
            kinds.extend([BodyTooLarge, BadMediaType]);
        }
        if self.writes {
            kinds.extend([NoDescriptors, StorageFull]);
        }
        kinds.extend(self.problems);
        let mut by_status: BTreeMap<u16, Vec<ProblemKind>> = BTreeMap::new();
        for kind in ProblemKind::ALL {
            if kinds.contains(&kind) {
                by_status.entry(kind.status()).or_default().push(kind);
            }
        }
        by_status
    }
}
