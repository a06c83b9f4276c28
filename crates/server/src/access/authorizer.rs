//! The right that a call needs, and whether its caller has it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tickwheel_api::Problem;
use tickwheel_api::openapi::Needs;
use tickwheel_queue::QueueName;

use crate::access::refusal::Refusal;
use crate::access::tokens::{Grant, Right, Tokens, TokensError};
use crate::base::watched::{Watched, warn_if_others_read};
use crate::events;

/// Decides by the tokens of the server whether a caller may make a call.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    /// Tokens that are valid as long as the server runs.
    fixed: Tokens,
    /// Tokens of a file, which may be replaced while the server runs.
    file: Option<Watched<Tokens>>,
}

/// Why a file gives no tokens. The contents of the file are not shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
    /// A line of the file is not a token.
    #[error("{0}")]
    Parse(#[from] TokensError),
}

/// A name that is reserved for the server: no client can use it.
pub(crate) const OWN_QUEUE: &str = "$jobs";

impl Authorizer {
    /// Reads the token file, if there is one.
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
        let file = path.clone().map(watch).transpose()?;
        // A token of the file has the rights that the file gives it, and none once it leaves the file.
        let fixed = match &file {
            Some(file) => fixed.without(&file.last()),
            None => fixed,
        };
        if let Some(file) = path.filter(|_| !fixed.is_empty()) {
            let (file, tokens) = (file.display(), fixed.names());
            tracing::warn!(event = events::DOUBTFUL, %file, ?tokens, "these tokens are valid and are not in the token file; a server that is started in the shell of a client has the token of the client, with all rights: start it without TICKWHEEL_TOKEN");
        }
        Ok(Self { fixed, file })
    }

    /// Reads the file again at intervals, for ever.
    pub(crate) async fn keep_up(self: Arc<Self>) {
        match &self.file {
            Some(file) => file.keep_up().await,
            None => std::future::pending().await,
        }
    }

    /// The rights of the bearer of a token; `None`: the token is not known.
    ///
    /// The file is asked first, so that a token that comes into the file later has the rights that the file gives it.
    fn grant(&self, token: &[u8]) -> Option<Grant> {
        let of_file = self.file.as_ref().and_then(|file| file.last().grant(token));
        of_file.or_else(|| self.fixed.grant(token))
    }

    /// Whether a token still has the rights that it had when it was granted this.
    pub(crate) fn still_grants(&self, grant: &Grant) -> bool {
        let Some(hash) = grant.token() else { return !self.has_tokens() };
        let of_file = self.file.as_ref().and_then(|file| file.last().grant_of(hash));
        of_file.or_else(|| self.fixed.grant_of(hash)).is_some_and(|now| now.allows_as(grant))
    }

    /// The rights of a caller for a call with this need. `queue`: the queue of the call, if its name is valid.
    /// `changes`: the call may change something. An empty token is not known.
    ///
    /// # Errors
    /// 401 without a known token, 403 if the right is missing or the queue is the server's own, 404 for a queue
    /// outside of the token's scope.
    pub(crate) fn check(
        &self,
        token: Option<&[u8]>,
        needs: Needs,
        queue: Option<&QueueName>,
        changes: bool,
    ) -> Result<Grant, Refusal> {
        let grant = self.granted(token, needs, queue)?;
        match queue.map(QueueName::as_str) {
            Some(OWN_QUEUE) if changes => Err(Problem::own_queue(OWN_QUEUE).into()),
            _ => Ok(grant),
        }
    }

    fn has_tokens(&self) -> bool {
        !self.fixed.is_empty() || self.file.is_some()
    }

    /// The name of a caller in the log: `none` without a token, `unknown` with a token that is not known. `None` if
    /// the server has no tokens.
    pub(crate) fn name(&self, token: Option<&[u8]>) -> Option<Arc<str>> {
        if !self.has_tokens() {
            return None;
        }
        match token.map(|token| self.grant(token)) {
            Some(Some(grant)) => grant.name().cloned(),
            Some(None) => Some(Arc::from("unknown")),
            None => Some(Arc::from("none")),
        }
    }

    /// Whether the caller's token has the right `admin`. On a server without tokens no caller has it.
    pub(crate) fn is_admin(&self, token: Option<&[u8]>) -> bool {
        let grant = token.filter(|_| self.has_tokens()).and_then(|token| self.grant(token));
        grant.is_some_and(|grant| grant.allows(Right::Admin))
    }

    fn granted(
        &self,
        token: Option<&[u8]>,
        needs: Needs,
        queue: Option<&QueueName>,
    ) -> Result<Grant, Refusal> {
        if !self.has_tokens() {
            return Ok(Grant::everything());
        }
        let grant = token.and_then(|token| self.grant(token));
        if needs == Needs::Nothing {
            // The rights decide how much detail the answer shows. The call is not counted: health is answered
            // although the token has used up its quota.
            return Ok(grant.map_or_else(Grant::nothing, Grant::without_quota));
        }
        let grant = grant.ok_or_else(|| Refusal::from(Problem::unauthorized()))?;
        let has = |right: Right| match grant.allows(right) {
            true => Ok(()),
            false => Err(Refusal::from(Problem::forbidden(right.name()))),
        };
        match needs {
            Needs::Nothing | Needs::Token => {}
            Needs::In(right) => {
                // A name that is not valid is answered after the rights are checked.
                if let Some(queue) = queue
                    && !grant.covers(queue)
                {
                    return Err(Problem::out_of_scope(queue.as_str()).into());
                }
                has(right)?;
            }
            Needs::Somewhere(right) => has(right)?,
            Needs::Everywhere(right) => {
                has(right)?;
                if !grant.is_unscoped() {
                    return Err(Problem::forbidden_to_scoped().into());
                }
            }
        }
        Ok(grant)
    }
}

/// Warns in the log about tokens of the file that are not as secret as they should be: plain tokens that other
/// users can read, short tokens, and hashes without their mark. If the file was so before, there is no new warning.
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
