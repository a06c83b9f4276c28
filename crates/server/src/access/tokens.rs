//! Who may do what: tokens with their rights and scopes. Of a token only its hash is kept.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tickwheel_api::{RateError, duration};
use tickwheel_queue::QueueName;

use crate::access::quota::{Allowed, Quota};
use crate::base::hex;

/// A token of fewer bytes is too easy to guess: 22 of base64 are 128 bits.
pub const TOKEN_BYTES_ADVISED: usize = 22;
/// A server takes 1,000 tokens: all are compared with each request.
const TOKENS_MAX: usize = 1_000;

/// The tokens of a server. None at all: everybody may do everything.
///
/// # The text
/// A line for each: the token, or `sha256:` and the SHA-256 of it in hex, which a file should have (64 hex digits without `sha256:` are a token);
/// then, if it may not do everything,
/// `rights=` with some of `read,produce,consume,admin`, and `scope=` with queues and namespaces (`shop/`, with the slash). `#` begins a
/// comment. `name=billing` is what the log calls the token; without it that is the line, `line:3`. Several lines are valid at once, so that a token can be replaced while it is in use.
///
/// What its bearer may have at most: `rate=100/s` calls, of which each line of a batch is one; `bytes=1000000/s` of bodies; `tasks=50000`, dead ones
/// too, in the queues of the scope (counted once a second); `max_delay=30d`, how far ahead a put may be due. Beyond the first three the answer is
/// 429, with the time to wait; with all its tasks it may still change those there are. What its schedules put is not held up, and a token whose line is changed begins
/// anew.
///
/// ```
/// use tickwheel_server::Tokens;
/// let tokens = Tokens::parse("
///     sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b
///     an-old-token-of-a-worker rights=consume scope=close,shop/   # until the end of the month
/// ")?;
/// assert_eq!(tokens.len(), 2);
/// assert_eq!(format!("{tokens:?}"), "Tokens(2)", "what they are is nobody's business");
/// assert!(Tokens::parse("token rights=everything").is_err());
/// # Ok::<(), tickwheel_server::TokensError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    known: Vec<(Hash, Grant)>,
    /// How many stood there themselves, and not their hashes.
    plain: usize,
    /// How many of these are too easy to guess.
    short: usize,
    /// The lines (from 1) whose token has the 64 hex digits of a hash.
    like_hashes: Vec<usize>,
}

type Hash = [u8; 32];

/// What a hash begins with, where a token could stand. Nothing else marks one.
pub const HASHED: &str = "sha256:";

/// What the bearer of a token may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    rights: Rights,
    scopes: Option<Arc<[Scope]>>,
    quota: Option<Arc<Quota>>,
    /// The hash of the token that a request brought.
    token: Option<Hash>,
    /// What the log calls it.
    name: Option<Arc<str>>,
}

/// Where.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Scope {
    Queue(QueueName),
    /// With its slash.
    Namespace(String),
}

/// One thing that a token may allow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// Look at tasks, queues, schedules, figures.
    Read,
    /// Put, change and cancel tasks and schedules.
    Produce,
    /// Lease, ack, nack, extend.
    Consume,
    /// Lay down settings, hold queues, redrive, move the clock.
    Admin,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Rights(u8);

/// The rights by their names.
pub(crate) const WORDS: [(&str, Right); 4] = [
    ("read", Right::Read),
    ("produce", Right::Produce),
    ("consume", Right::Consume),
    ("admin", Right::Admin),
];

impl Right {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        WORDS.iter().find(|(_, right)| *right == self).map(|(name, _)| *name).expect("each has a name")
    }
}

/// What may stand behind a token.
const NAMES: [&str; 7] = ["name", "rights", "scope", "rate", "bytes", "tasks", "max_delay"];
/// The name of a token has at most so many bytes.
const NAME_BYTES_MAX: usize = 64;

/// Why a text says no tokens. What stands in it is not shown: it may be a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TokensError {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub what: String,
}

impl Tokens {
    /// Reads them.
    ///
    /// # Errors
    /// [`TokensError`] for the first line that is none; nothing at all is an error, too, for a server without tokens lets everybody in.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if line.is_empty() {
                continue;
            }
            let wrong = |what: String| TokensError { line: index + 1, what };
            let Said { hash, mut grant, plain_bytes } = said(line).map_err(wrong)?;
            let of_line = || format!("line:{}", index + 1).into();
            grant.name.get_or_insert_with(of_line);
            if tokens.known.iter().any(|(known, _)| *known == hash) {
                return Err(wrong(
                    "the token stands here a second time; leave one of the two out".to_owned(),
                ));
            }
            if tokens.known.len() >= TOKENS_MAX {
                return Err(wrong(format!("a server takes at most {TOKENS_MAX} tokens")));
            }
            tokens.known.push((hash, grant));
            if let Some(bytes) = plain_bytes {
                tokens.plain += 1;
                if line.split_whitespace().next().is_some_and(|token| hash_of_hex(token).is_some()) {
                    tokens.like_hashes.push(index + 1);
                }
                tokens.short += usize::from(bytes < TOKEN_BYTES_ADVISED);
            }
        }
        if tokens.known.is_empty() {
            let what = "there is no token; write one a line".to_owned();
            return Err(TokensError { line: text.lines().count().max(1), what });
        }
        Ok(tokens)
    }

    /// The same, and what was used up of the limits of those that stay as they were.
    pub(crate) fn with_quotas_of(mut self, before: &Self) -> Self {
        for (hash, grant) in &mut self.known {
            let stays = before.known.iter().find(|(known, old)| known == hash && old.quota == grant.quota);
            if let Some((_, old)) = stays {
                grant.quota.clone_from(&old.quota);
            }
        }
        self
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// How many stood in the text themselves, and not their hashes: each reader of the text has them.
    pub(crate) fn plain(&self) -> usize {
        self.plain
    }

    /// How many of these are shorter than is advised, and may be guessed.
    pub(crate) fn short(&self) -> usize {
        self.short
    }

    /// The lines (from 1) with 64 hex digits and without `sha256:`. They are tokens, such as `openssl rand -hex 32` makes; but the
    /// hash of one may have been meant.
    pub(crate) fn like_hashes(&self) -> &[usize] {
        &self.like_hashes
    }

    /// What the bearer of this one may do; `None`: it is not known. It takes as long whichever it is.
    pub(crate) fn grant(&self, token: &[u8]) -> Option<Grant> {
        let hash: Hash = Sha256::digest(token).into();
        let mut found = None;
        for (known, grant) in &self.known {
            let differs = known.iter().zip(hash).fold(0, |differs, (a, b)| differs | (a ^ b));
            if differs == 0 {
                found = Some(grant);
            }
        }
        found.map(|grant| Grant { token: Some(hash), ..grant.clone() })
    }
}

/// A token as it should stand in a file.
///
/// ```
/// let line = tickwheel_server::hashed("secret");
/// assert_eq!(line, "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
/// ```
#[must_use]
pub fn hashed(token: &str) -> String {
    format!("sha256:{}", hex::write(&Sha256::digest(token.as_bytes())))
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.known.len())
    }
}

impl Grant {
    /// Of a server without tokens.
    pub(crate) fn everything() -> Self {
        Self { rights: Rights(u8::MAX), scopes: None, quota: None, token: None, name: None }
    }

    /// Of each client of a door that asks for no token: all rights, in the queues of a namespace if there is one.
    pub(crate) fn of_door(namespace: Option<&str>) -> Self {
        let scope = namespace.map(|namespace| [Scope::Namespace(format!("{namespace}/"))].into());
        Self { scopes: scope, ..Self::everything() }
    }

    /// The one prefix, with its slash, that all its queues have, and that makes a queue one of them; empty: it holds for all queues. `None`: there
    /// is no such prefix.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match self.scopes.as_deref() {
            None => Some(""),
            Some([Scope::Namespace(prefix)]) => Some(prefix),
            Some(_) => None,
        }
    }

    /// Of a caller that is not known.
    pub(crate) fn nothing() -> Self {
        Self { rights: Rights(0), ..Self::everything() }
    }

    /// The same without limits.
    pub(crate) fn without_quota(self) -> Self {
        Self { quota: None, ..self }
    }

    /// What the log calls the token; `None` where the server has none, and for a caller that is not known.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// The hash of the token that the request brought; `None`: the server has none.
    pub(crate) fn token(&self) -> Option<Hash> {
        self.token
    }

    pub(crate) fn allows(&self, right: Right) -> bool {
        self.rights.0 & right.bit() != 0
    }

    /// Whether it holds everywhere.
    pub(crate) fn is_unscoped(&self) -> bool {
        self.scopes.is_none()
    }

    /// What limits it, if anything does.
    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.quota.as_deref()
    }

    /// The same, for what goes on when the call is over.
    pub(crate) fn shared_quota(&self) -> Option<Arc<Quota>> {
        self.quota.clone()
    }

    /// What the names of its queues begin with. No queue has two of these prefixes, but a queue with one may still be outside of its scope.
    pub(crate) fn prefixes(&self) -> Vec<&str> {
        let Some(scopes) = &self.scopes else { return vec![""] };
        let mut all: Vec<&str> = scopes
            .iter()
            .map(|scope| match scope {
                Scope::Queue(name) => name.as_str(),
                Scope::Namespace(prefix) => prefix.as_str(),
            })
            .collect();
        all.sort_unstable();
        // Of those that continue one another the shortest comes first.
        all.dedup_by(|longer, shorter| longer.starts_with(*shorter));
        all
    }

    /// Whether it holds for this queue.
    pub(crate) fn covers(&self, queue: &QueueName) -> bool {
        let Some(scopes) = &self.scopes else { return true };
        scopes.iter().any(|scope| match scope {
            Scope::Queue(name) => name == queue,
            Scope::Namespace(prefix) => queue.as_str().starts_with(prefix),
        })
    }
}

/// What a line says of a token.
struct Said {
    hash: Hash,
    grant: Grant,
    /// How long the token is, if it stands there itself.
    plain_bytes: Option<usize>,
}

fn said(line: &str) -> Result<Said, String> {
    let mut words = line.split_whitespace();
    let token = words.next().unwrap_or_default();
    let lower = token.to_ascii_lowercase();
    let (hash, plain_bytes) = match lower.strip_prefix(HASHED) {
        Some(digits) => (hash_of_hex(digits).ok_or("`sha256:` is followed by 64 hex digits")?, None),
        None if token.split_once('=').is_some_and(|(name, _)| NAMES.contains(&name)) => {
            return Err("the token comes first, before `rights=` and the rest".to_owned());
        }
        // As a token it would let in everybody who has read the file, and keep out the owner of the real one.
        None if is_of_other_hash(&lower) => {
            return Err(
                "a hash is marked by `sha256:` and nothing else; write `sha256:` and the SHA-256 of the token in 64 hex digits, or the token itself"
                    .to_owned(),
            );
        }
        None if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            return Err(
                "a token has letters, digits and signs of ASCII only, for it goes into a header".to_owned()
            );
        }
        None => (Sha256::digest(token.as_bytes()).into(), Some(token.len())),
    };
    let mut grant = Grant::everything();
    let mut allowed = Allowed::default();
    let mut seen: Vec<&str> = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| NAMES.contains(name)) else {
            let names = NAMES.map(|name| format!("`{name}=...`")).join(", ");
            return Err(format!("after the token there may be {names}, and a `#`"));
        };
        if seen.contains(&name) {
            return Err(format!("`{name}=` is given twice; write it once, a list with commas"));
        }
        seen.push(name);
        let wrong = |error: &dyn fmt::Display| format!("in `{name}=`: {error}");
        match name {
            "name" => grant.name = Some(token_name(value)?),
            "rights" => grant.rights = rights(value)?,
            "scope" => grant.scopes = Some(scopes(value)?),
            "rate" => allowed.rate = Some(value.parse().map_err(|error: RateError| wrong(&error))?),
            "bytes" => allowed.bytes = Some(value.parse().map_err(|error: RateError| wrong(&error))?),
            "tasks" => allowed.tasks = Some(value.parse().map_err(|_| wrong(&"it takes a whole number"))?),
            _ => allowed.max_delay_ms = Some(duration::parse(value).map_err(|error| wrong(&error))?),
        }
    }
    if allowed != Allowed::default() {
        grant.quota = Some(Arc::new(Quota::new(allowed)));
    }
    Ok(Said { hash, grant, plain_bytes })
}

/// What the log calls callers without a token of this file. The token of the variable gets its name elsewhere.
const OF_THE_LOG: [&str; 2] = ["none", "unknown"];

/// What the log may call a token: it is to be read there, and to be looked for.
fn token_name(name: &str) -> Result<Arc<str>, String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if OF_THE_LOG.contains(&name) {
        return Err(format!("`name={name}` is what the log calls another caller; take another name"));
    }
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_good) {
        return Ok(name.into());
    }
    Err(format!("`name=` takes 1 to {NAME_BYTES_MAX} letters, digits and `.`, `_`, `-`"))
}

/// Whether it begins as a hash may be marked elsewhere: `sha-256:`, `sha512:`, `sha1:`.
fn is_of_other_hash(token: &str) -> bool {
    let mark = token.split_once(':').and_then(|(mark, _)| mark.strip_prefix("sha"));
    let bits = mark.map(|bits| bits.trim_start_matches(['-', '_']));
    bits.is_some_and(|bits| ["1", "2", "3", "224", "256", "384", "512"].contains(&bits))
}

fn hash_of_hex(digits: &str) -> Option<Hash> {
    hex::read(digits)?.try_into().ok()
}

fn rights(list: &str) -> Result<Rights, String> {
    let mut rights = Rights(0);
    for word in list.split(',') {
        let known = WORDS.iter().find(|(name, _)| *name == word);
        let (_, right) = known.ok_or("`rights=` takes some of read,produce,consume,admin")?;
        rights.0 |= right.bit();
    }
    Ok(rights)
}

fn scopes(list: &str) -> Result<Arc<[Scope]>, String> {
    let scope = |word: &str| {
        let name = QueueName::new(word).map_err(|error| format!("in `scope=`: {error}"))?;
        Ok(if word.ends_with('/') { Scope::Namespace(word.to_owned()) } else { Scope::Queue(name) })
    };
    list.split(',').map(scope).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a name")
    }

    #[test]
    fn a_token_is_known_plain_and_by_its_hash() {
        // printf secret | sha256sum
        let hash = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        let upper = hash.to_uppercase();
        for text in [
            "secret",
            hash,
            &upper,
            &format!("\u{feff}{hash}"),
            "\n# comment\n  secret # mine\n",
            &format!("other\n{hash}"),
        ] {
            let tokens = Tokens::parse(text).expect(text);
            let grant = tokens.grant(b"secret").expect("it is one");
            assert!(grant.allows(Right::Admin) && grant.is_unscoped());
            assert_eq!(tokens.grant(b"secreT"), None);
            assert_eq!(tokens.grant(b""), None);
        }
    }

    #[test]
    fn a_token_is_called_by_its_name_or_by_its_line() {
        let tokens = Tokens::parse("# who\na name=billing rights=read\n\nb").expect("tokens");
        let name = |token: &[u8]| tokens.grant(token).and_then(|grant| grant.name().map(ToString::to_string));
        assert_eq!((name(b"a").as_deref(), name(b"b").as_deref()), (Some("billing"), Some("line:4")));
        assert_eq!(Grant::everything().name(), None);
        let long = "x".repeat(65);
        for bad in ["", "a b", "a/b", "\u{e4}", &long] {
            let error = Tokens::parse(&format!("t name={bad}")).map(|_| ());
            assert!(error.is_err() || bad == "a b", "{bad:?}");
        }
        for taken in ["none", "unknown"] {
            let error = Tokens::parse(&format!("t name={taken}")).map(|_| ()).expect_err(taken);
            assert!(error.to_string().contains("what the log calls another caller"), "{error}");
        }
        assert!(Tokens::parse("t name=a name=b").is_err());
    }

    #[test]
    fn rights_and_scopes_narrow_what_it_may() {
        let tokens = Tokens::parse("t rights=read,consume scope=close,shop/").expect("tokens");
        let grant = tokens.grant(b"t").expect("it is one");
        let allowed = WORDS.map(|(_, right)| grant.allows(right));
        assert_eq!(allowed, [true, false, true, false]);
        let covered = ["close", "shop/a", "shop/", "shop", "closes", "other/shop/a"]
            .map(|name| grant.covers(&queue(name)));
        assert_eq!(covered, [true, true, true, false, false, false]);
        assert!(!grant.is_unscoped());
        assert_eq!(grant.quota(), None);
    }

    #[test]
    fn each_queue_of_a_scope_has_one_of_its_prefixes() {
        let prefixes = |line: &str| {
            let grant = Tokens::parse(line).expect("a token").grant(b"t").expect("it is known");
            grant.prefixes().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(prefixes("t"), [""]);
        assert_eq!(prefixes("t scope=shop/,close,shop/a,shop/a/b"), ["close", "shop/"]);
        assert_eq!(prefixes("t scope=ab,a,b/"), ["a", "b/"]);
    }

    #[test]
    fn the_same_line_read_again_is_no_change() {
        let read = |text: &str| Tokens::parse(text).expect("tokens");
        let text = "t rate=5/s bytes=1000000/m tasks=100 max_delay=30d";
        assert_eq!(read(text), read(text));
        assert_ne!(read(text), read("t rate=6/s bytes=1000000/m tasks=100 max_delay=30d"));
        let before = read("t rate=1/d");
        before.grant(b"t").expect("it is one").quota().expect("limited").call().expect("the first");
        let left = |after: &str| {
            let after = read(after).with_quotas_of(&before);
            after.grant(b"t").expect("it is one").quota().expect("limited").call().is_ok()
        };
        assert!(!left("another\nt rate=1/d rights=read"), "another line forgives nobody");
        assert!(left("t rate=1/h"), "another limit begins anew");
    }

    #[test]
    fn what_is_not_as_secret_as_it_should_be_is_counted() {
        let hash = hashed("a");
        let read = |text: &str| Tokens::parse(text).map(|tokens| (tokens.plain(), tokens.short()));
        assert_eq!(read(&hash.to_uppercase()), Ok((0, 0)));
        assert_eq!(read("secret\n0123456789abcdefghijkl rights=read\n"), Ok((2, 1)));
    }

    /// The story: `TICKWHEEL_TOKEN=$(openssl rand -hex 32)` was refused, and the hint said to write `sha256:` before it. Then the server
    /// waited for a token with that hash, which nobody has.
    #[test]
    fn sixty_four_hex_digits_are_a_token_and_only_the_mark_makes_them_a_hash() {
        let digits = "0123456789abcdef".repeat(4);
        for token in [digits.clone(), digits.to_uppercase()] {
            let tokens = Tokens::parse(&format!("another\n{token} rights=read")).expect("tokens");
            assert!(tokens.grant(token.as_bytes()).is_some());
            assert_eq!(tokens.grant(b"sha256:"), None);
            assert_eq!((tokens.plain(), tokens.short(), tokens.like_hashes()), (2, 1, &[2][..]));
        }
        let marked = Tokens::parse(&format!("sha256:{digits}")).expect("a hash");
        assert_eq!(marked.grant(digits.as_bytes()), None, "a hash does not let its reader in");
        assert_eq!(marked.like_hashes(), [0; 0]);
        let of_secret = Tokens::parse(&hashed(&digits)).expect("a hash");
        assert!(of_secret.grant(digits.as_bytes()).is_some());
    }

    #[test]
    fn a_mistake_is_named_without_the_secret() {
        for (text, what) in [
            ("", "line 1: there is no token"),
            ("# nothing\n\n", "line 2: there is no token"),
            ("canary rights=all", "line 1: `rights=` takes some of"),
            ("a\ncanary scope=a,,b", "line 2: in `scope=`: the queue name is empty"),
            ("canary admin", "line 1: after the token there may be"),
            ("sha256:canary", "line 1: `sha256:` is followed by 64 hex digits"),
            ("rights=read canary", "line 1: the token comes first"),
            ("canary rate=fast", "line 1: in `rate=`: `fast` is no rate"),
            ("canary bytes=1MiB/s", "line 1: in `bytes=`: `1MiB/s` is no rate"),
            ("canary tasks=many", "line 1: in `tasks=`: it takes a whole number"),
            ("canary max_delay=soon", "line 1: in `max_delay=`: "),
            ("rate=5/s canary", "line 1: the token comes first"),
            ("canary rights=read rights=admin", "line 1: `rights=` is given twice"),
            ("canary scope=a scope=b", "line 1: `scope=` is given twice"),
            ("canary-ü", "line 1: a token has letters, digits and signs"),
            ("sha-256:canary", "line 1: a hash is marked by `sha256:` and nothing else"),
            ("SHA512:canary", "line 1: a hash is marked by `sha256:` and nothing else"),
            (
                &format!("canary\nsha256:{}", "a1".repeat(31)),
                "line 2: `sha256:` is followed by 64 hex digits",
            ),
            ("canary\ncanary rights=read", "line 2: the token stands here a second time"),
        ] {
            let error = Tokens::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(what) && !error.contains("canary"), "{error}");
        }
    }
}
