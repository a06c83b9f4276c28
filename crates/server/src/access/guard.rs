//! Which right a request needs, and whether its bearer has it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use tickwheel_api::Problem;
use tickwheel_queue::QueueName;

use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right, Tokens, TokensError};
use crate::base::watched::{Watched, warn_if_others_read};
use crate::doors::http::path::decode;
use crate::events;

/// The name of the queue in which earlier releases kept their jobs. No client can use it, so that no task of a client is taken for a job.
pub(crate) const OWN_QUEUE: &str = "$jobs";

/// Knows the tokens.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Those that are valid as long as the server runs.
    fixed: Tokens,
    /// Those that may be replaced while it runs.
    file: Option<Watched<Tokens>>,
}

/// Why a file gives no tokens. Nothing of what stands in it is shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
    /// It has a line that is no token.
    #[error("{0}")]
    Parse(#[from] TokensError),
}

/// What a request needs.
#[derive(PartialEq, Eq, Debug)]
enum Need {
    /// Nothing: programs that watch over a server have no token.
    Nothing,
    /// Any token.
    Token,
    /// This right, in this queue.
    In(Right, String),
    /// This right, somewhere: the handler shows what the scope covers.
    Somewhere(Right),
    /// This right, everywhere.
    Everywhere(Right),
}

impl Guard {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// [`TokenFileError`].
    pub(crate) fn open(fixed: Tokens, path: Option<PathBuf>) -> Result<Self, TokenFileError> {
        let watch = |path: PathBuf| {
            let last = Mutex::new(Tokens::default());
            Watched::open("the tokens", move || {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                let tokens = read(&path)?.with_quotas_of(&last);
                warn(&path, &tokens, &last);
                *last = tokens;
                Ok::<_, TokenFileError>(last.clone())
            })
        };
        let file = path.map(watch).transpose()?;
        Ok(Self { fixed, file })
    }

    /// Reads the file again and again.
    pub(crate) async fn keep_up(&self) {
        match &self.file {
            Some(file) => file.keep_up().await,
            None => std::future::pending().await,
        }
    }

    /// What the bearer of a token may do.
    fn grant(&self, token: &[u8]) -> Option<Grant> {
        let of_file = || self.file.as_ref()?.last().grant(token);
        self.fixed.grant(token).or_else(of_file)
    }

    /// What the sender of a request may do.
    ///
    /// # Errors
    /// 401 without a token that is known, 403 if it has not the right or the queue is the server's own, 404 for a queue outside of its scope.
    pub(crate) fn check(&self, parts: &Parts) -> Result<Grant, Refusal> {
        let need = need(&parts.method, parts.uri.path());
        let grant = self.granted(&parts.headers, &need)?;
        if let Need::In(_, queue) = &need
            && queue == OWN_QUEUE
            && !parts.method.is_safe()
        {
            return Err(Problem::own_queue(queue).into());
        }
        Ok(grant)
    }

    fn has_tokens(&self) -> bool {
        !self.fixed.is_empty() || self.file.is_some()
    }

    /// What the token of a request allows, if it is known.
    fn known(&self, headers: &HeaderMap) -> Option<Grant> {
        bearer(headers).and_then(|token| self.grant(token))
    }

    /// What the log calls the token of a request: `none` and `unknown` where it is no token of this server, and nothing where the server has
    /// no tokens.
    pub(crate) fn name(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        if !self.has_tokens() {
            return None;
        }
        match self.known(headers) {
            Some(grant) => grant.name().cloned(),
            None if headers.contains_key(AUTHORIZATION) => Some(Arc::from("unknown")),
            None => Some(Arc::from("none")),
        }
    }

    /// Whether a token says that the sender looks after the server. Where there are none, nobody can show that.
    pub(crate) fn is_admin(&self, headers: &HeaderMap) -> bool {
        self.has_tokens() && self.known(headers).is_some_and(|grant| grant.allows(Right::Admin))
    }

    fn granted(&self, headers: &HeaderMap, need: &Need) -> Result<Grant, Refusal> {
        if !self.has_tokens() {
            return Ok(Grant::everything());
        }
        let grant = self.known(headers);
        if *need == Need::Nothing {
            // What it may do decides how much it is told. It is not counted: health is looked at whatever the token has used up.
            return Ok(grant.map_or_else(Grant::nothing, Grant::without_quota));
        }
        let grant = grant.ok_or_else(|| Refusal::from(Problem::unauthorized()))?;
        let has = |right: Right| match grant.allows(right) {
            true => Ok(()),
            false => Err(Refusal::from(Problem::forbidden(right.name()))),
        };
        match need {
            Need::Nothing | Need::Token => {}
            Need::In(right, queue) => {
                // What is no name at all is told so by its handler.
                if let Ok(queue) = QueueName::new(queue)
                    && !grant.covers(&queue)
                {
                    return Err(Problem::out_of_scope(queue.as_str()).into());
                }
                has(*right)?;
            }
            Need::Somewhere(right) => has(*right)?,
            Need::Everywhere(right) => {
                has(*right)?;
                if !grant.is_unscoped() {
                    return Err(Problem::forbidden_to_scoped().into());
                }
            }
        }
        Ok(grant)
    }
}

/// Says it in the log if tokens of the file are not as secret as they should be, and were not so before.
fn warn(path: &Path, tokens: &Tokens, before: &Tokens) {
    if tokens.plain() > 0 && before.plain() == 0 {
        warn_if_others_read(path);
    }
    if tokens.short() > before.short() {
        let (file, short) = (path.display(), tokens.short());
        tracing::warn!(event = events::DOUBTFUL, %file, short, "there are short tokens in this file, which may be guessed; `tickwheel token` makes one that is not");
    }
    if !tokens.like_hashes().is_empty() && tokens.like_hashes() != before.like_hashes() {
        let (file, lines) = (path.display(), tokens.like_hashes());
        tracing::warn!(event = events::DOUBTFUL, %file, ?lines, "64 hex digits without `sha256:` are a token itself; if they are the hash of one, write `sha256:` in front of them");
    }
}

fn read(path: &Path) -> Result<Tokens, TokenFileError> {
    Ok(Tokens::parse(&std::fs::read_to_string(path)?)?)
}

/// The token in `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// What a request needs. What is not known here below `queues`, `clock` and `backups` needs all there is, so that a route that is forgotten lets nobody
/// in. Elsewhere an unknown path has no route: a caller with any token is told so, and not that a right is missing. Tests demand that each route
/// below `/v1` names its right.
fn need(method: &Method, path: &str) -> Need {
    let reads = method.is_safe();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let (queue, rest) = match segments[..] {
        ["healthz" | "readyz"] => return Need::Nothing,
        ["openapi.json"] => return Need::Token,
        ["metrics"] => return Need::Everywhere(Right::Read),
        ["v1", "queues" | "schedules" | "forecast" | "jobs"] => return Need::Somewhere(Right::Read),
        ["v1", "export"] => return Need::Somewhere(Right::Read),
        ["v1", "import"] => return Need::Somewhere(Right::Admin),
        ["v1", "jobs", _] => return Need::Somewhere(if reads { Right::Read } else { Right::Produce }),
        ["v1", "queues", queue, ref rest @ ..] => (queue, rest),
        ["v1", "clock" | "backups", ..] | ["v1", "drain" | "resume"] => {
            return Need::Everywhere(Right::Admin);
        }
        _ => return Need::Token,
    };
    let right = match rest {
        ["lease" | "ack" | "nack" | "extend"] => Right::Consume,
        ["batch" | "cancel" | "move" | "purge"] => Right::Produce,
        [] | ["tasks" | "schedules" | "dead", ..] if reads => Right::Read,
        ["tasks" | "schedules", ..] => Right::Produce,
        _ => Right::Admin,
    };
    // What cannot be decoded is refused by its handler; until then it is no queue of anybody's.
    Need::In(right, decode(queue).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tickwheel_api::openapi::{Needs, operations};

    use super::*;
    use crate::access::tokens::WORDS;

    #[test]
    fn each_route_needs_what_is_described() {
        let right = |name| WORDS.iter().find(|(word, _)| *word == name).expect("a right").1;
        for operation in operations() {
            let path = operation.path.replace("{q}", "shop%2Fq");
            let described = match operation.needs {
                Needs::Nothing => Need::Nothing,
                Needs::Token => Need::Token,
                Needs::In(name) => Need::In(right(name), "shop/q".to_owned()),
                Needs::Somewhere(name) => Need::Somewhere(right(name)),
                Needs::Everywhere(name) => Need::Everywhere(right(name)),
            };
            let is_open = matches!(described, Need::Nothing | Need::Token);
            assert!(!is_open || !path.starts_with("/v1"), "{path} is open to each token: name its right");
            let of = |method: &str| need(&method.parse().expect("a method"), &path);
            assert_eq!(of(operation.method), described, "{} {path}", operation.method);
            if operation.method == "GET" {
                assert_eq!(of("HEAD"), described, "{path}");
            }
        }
    }

    #[test]
    fn a_route_that_is_not_known_lets_nobody_in() {
        let of = |method: &str, path: &str| need(&method.parse().expect("a method"), path);
        let unknown = of("GET", "/v1/queues/shop%2Fq/no-such-thing");
        assert_eq!(unknown, Need::In(Right::Admin, "shop/q".to_owned()));
        assert_eq!(of("GET", "/v1/clock/no-such-thing"), Need::Everywhere(Right::Admin));
        for nothing in ["/nothing", "/v1/queue/close", "//v1/queues/q", "/healthz/", "/V1/queues/q"] {
            assert_eq!(of("GET", nothing), Need::Token, "{nothing}");
        }
    }

    #[test]
    fn a_bearer_is_read_strictly() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().expect("a value"));
            }
            bearer(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of(&["Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(of(&["bearer  abc "]), Some(b"abc".to_vec()));
        for bad in [&[][..], &["abc"], &["Bearer"], &["Bearer "], &["Basic abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(of(bad), None, "{bad:?}");
        }
    }
}
