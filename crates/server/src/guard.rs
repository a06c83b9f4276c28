//! Which right a request needs, and whether its bearer has it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use tickwheel_api::Problem;
use tickwheel_queue::QueueName;

use crate::path::decode;
use crate::problem::Refusal;
use crate::tokens::{Grant, Right, Tokens, TokensError};

/// Knows the tokens.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Those that are valid as long as the server runs.
    fixed: Tokens,
    file: Option<TokenFile>,
}

/// Tokens that may be replaced while the server runs.
#[derive(Debug)]
struct TokenFile {
    path: PathBuf,
    tokens: RwLock<Arc<Tokens>>,
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

/// So often the file is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// What a request needs.
#[derive(PartialEq, Eq, Debug)]
enum Need {
    /// Nothing: whoever watches over a server has no token.
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
        let file = match path {
            None => None,
            Some(path) => {
                let tokens = RwLock::new(Arc::new(read(&path)?));
                Some(TokenFile { path, tokens })
            }
        };
        Ok(Self { fixed, file })
    }

    /// Reads the file again and again, and takes over what stands in it. A file that gives no tokens changes nothing, and is told of once.
    pub(crate) async fn keep_up(&self) {
        let Some(TokenFile { path, tokens }) = &self.file else { return std::future::pending().await };
        let mut told = None;
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            let from = path.clone();
            let Ok(found) = tokio::task::spawn_blocking(move || read(&from)).await else { continue };
            match found {
                Ok(found) => {
                    told = None;
                    let mut known = tokens.write().unwrap_or_else(PoisonError::into_inner);
                    if **known != found {
                        tracing::info!(tokens = found.len(), "the tokens were read again");
                        *known = Arc::new(found);
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    if told.as_ref() != Some(&why) {
                        tracing::error!(file = %path.display(), why, "the token file gives no tokens; those before stay valid");
                        told = Some(why);
                    }
                }
            }
        }
    }

    /// What the bearer of a token may do.
    fn grant(&self, token: &[u8]) -> Option<Grant> {
        let of_file = || {
            let tokens = &self.file.as_ref()?.tokens;
            let tokens = Arc::clone(&tokens.read().unwrap_or_else(PoisonError::into_inner));
            tokens.grant(token)
        };
        self.fixed.grant(token).or_else(of_file)
    }

    /// What the sender of a request may do.
    ///
    /// # Errors
    /// 401 without a token that is known, 403 if it has not the right, 404 for a queue outside of its scope.
    pub(crate) fn check(&self, parts: &Parts) -> Result<Grant, Refusal> {
        if self.fixed.is_empty() && self.file.is_none() {
            return Ok(Grant::everything());
        }
        let need = need(&parts.method, parts.uri.path());
        if need == Need::Nothing {
            return Ok(Grant::everything());
        }
        let grant = bearer(&parts.headers).and_then(|token| self.grant(token));
        let grant = grant.ok_or_else(|| Refusal::from(Problem::unauthorized()))?;
        let has = |right: Right| match grant.allows(right) {
            true => Ok(()),
            false => Err(Refusal::from(Problem::forbidden(right.name()))),
        };
        match need {
            Need::Nothing | Need::Token => {}
            Need::In(right, queue) => {
                // What is no name at all is told so by its handler.
                if let Ok(queue) = QueueName::new(&queue)
                    && !grant.covers(&queue)
                {
                    return Err(Problem::out_of_scope(queue.as_str()).into());
                }
                has(right)?;
            }
            Need::Somewhere(right) => has(right)?,
            Need::Everywhere(right) => {
                has(right)?;
                if !grant.is_unscoped() {
                    return Err(Problem::forbidden_to_scoped().into());
                }
            }
        }
        Ok(grant)
    }
}

fn read(path: &Path) -> Result<Tokens, TokenFileError> {
    let text = std::fs::read_to_string(path)?;
    let open_to_others = std::fs::metadata(path)?.permissions().mode() & 0o077 != 0;
    if open_to_others {
        static SAID: std::sync::Once = std::sync::Once::new();
        SAID.call_once(|| {
            tracing::warn!(file = %path.display(), "others than its owner may read the token file; chmod 600 keeps them out");
        });
    }
    Ok(Tokens::parse(&text)?)
}

/// The token in `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// What a request needs. What is not known here below `queues` and `clock` needs all there is, so that a route that is forgotten lets nobody
/// in; elsewhere there is nothing, and whoever has a token may be told so. A new root of routes has to be added here.
fn need(method: &Method, path: &str) -> Need {
    let reads = method.is_safe();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let (queue, rest) = match segments[..] {
        ["healthz" | "readyz"] => return Need::Nothing,
        ["openapi.json"] => return Need::Token,
        ["metrics"] => return Need::Everywhere(Right::Read),
        ["v1", "queues"] => return Need::Somewhere(Right::Read),
        ["v1", "jobs", _] => return Need::Somewhere(if reads { Right::Read } else { Right::Produce }),
        ["v1", "queues", queue, ref rest @ ..] => (queue, rest),
        ["v1", "clock", ..] => return Need::Everywhere(Right::Admin),
        _ => return Need::Token,
    };
    let right = match rest {
        ["lease" | "ack" | "nack" | "extend"] => Right::Consume,
        ["batch" | "cancel"] => Right::Produce,
        [] | ["tasks" | "schedules" | "dead", ..] if reads => Right::Read,
        ["tasks" | "schedules", ..] => Right::Produce,
        _ => Right::Admin,
    };
    // What cannot be decoded is refused by its handler; until then it is no queue of anybody's.
    Need::In(right, decode(queue).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_needs_its_right() {
        let of = |method: &str, path: &str| need(&method.parse().expect("a method"), path);
        let in_q = |right| Need::In(right, "shop/q".to_owned());
        for (method, path, right) in [
            ("GET", "", Right::Read),
            ("HEAD", "", Right::Read),
            ("PUT", "", Right::Admin),
            ("PATCH", "", Right::Admin),
            ("POST", "/pause", Right::Admin),
            ("POST", "/drain", Right::Admin),
            ("POST", "/resume", Right::Admin),
            ("GET", "/tasks", Right::Read),
            ("POST", "/tasks", Right::Produce),
            ("GET", "/tasks/k", Right::Read),
            ("PUT", "/tasks/k", Right::Produce),
            ("PATCH", "/tasks/k", Right::Produce),
            ("DELETE", "/tasks/k", Right::Produce),
            ("POST", "/batch", Right::Produce),
            ("POST", "/cancel", Right::Produce),
            ("POST", "/lease", Right::Consume),
            ("POST", "/ack", Right::Consume),
            ("POST", "/nack", Right::Consume),
            ("POST", "/extend", Right::Consume),
            ("GET", "/dead", Right::Read),
            ("POST", "/dead/redrive", Right::Admin),
            ("GET", "/schedules", Right::Read),
            ("GET", "/schedules/s/preview", Right::Read),
            ("PUT", "/schedules/s", Right::Produce),
            ("DELETE", "/schedules/s", Right::Produce),
            ("GET", "/no-such-thing", Right::Admin),
        ] {
            assert_eq!(of(method, &format!("/v1/queues/shop%2Fq{path}")), in_q(right), "{method} {path}");
        }
        assert_eq!(of("GET", "/v1/queues"), Need::Somewhere(Right::Read));
        assert_eq!(of("DELETE", "/v1/jobs/7"), Need::Somewhere(Right::Produce));
        assert_eq!(of("GET", "/metrics"), Need::Everywhere(Right::Read));
        assert_eq!(of("POST", "/v1/clock/advance"), Need::Everywhere(Right::Admin));
        assert_eq!(of("GET", "/readyz"), Need::Nothing);
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
