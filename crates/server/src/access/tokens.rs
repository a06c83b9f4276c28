//! The tokens of a server with their rights and scopes. Only the hash of a token is kept.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
pub(crate) use tickwheel_api::openapi::Right;
use tickwheel_api::{TextError, duration};
use tickwheel_queue::QueueName;

use crate::access::quota::{Allowed, Quota};
use crate::base::hex;

/// A token of fewer bytes is too easy to guess: 22 characters of base64 are 128 bits.
pub const TOKEN_BYTES_ADVISED: usize = 22;
/// The largest number of tokens. All of them are compared with the token of each request.
const TOKENS_MAX: usize = 1_000;

/// The tokens of a server. Without any token, all callers may do everything.
///
/// # The text
/// The text has one line for each token. A line begins with the token, or better with `sha256:` and the token's
/// SHA-256 in hex. (64 hex digits without `sha256:` are a token.) `rights=` and `scope=` restrict the token.
/// `rights=` takes some of `read,produce,consume,admin`; `scope=` takes queues and namespaces (`shop/`, with the
/// slash). `#` begins a comment. `name=billing` is the name of the token in the log; without it the name is the line,
/// `line:3`. Several lines are valid at once, so a token can be replaced while it is in use.
///
/// Four members set the quota of the token:
/// - `rate=100/s`: calls; each line of a batch is one call.
/// - `bytes=1000000/s`: bytes of bodies.
/// - `tasks=50000`: live and dead tasks in the queues of the scope, counted once a second.
/// - `max_delay=30d`: how far ahead the due time of a put may be.
///
/// Above one of the first three the answer is 429, with the time to wait. A token that has all its tasks may still
/// change those tasks. Puts by its schedules are not limited. When the line of a token changes, its quota begins
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
    /// The number of tokens that the text has in plain, not as hashes.
    plain: usize,
    /// The number of plain tokens that are too easy to guess.
    short: usize,
    /// The lines (from 1) whose token has 64 hex digits, as a hash has.
    like_hashes: Vec<usize>,
}

type Hash = [u8; 32];

/// The prefix of a hash. Nothing else marks one.
pub const HASHED: &str = "sha256:";

/// The rights, scope and quota of a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    rights: Rights,
    scopes: Option<Arc<[Scope]>>,
    quota: Option<Arc<Quota>>,
    /// The hash of the token that the request brought.
    token: Option<Hash>,
    /// The name of the token in the log.
    name: Option<Arc<str>>,
}

/// A queue, or all queues of a namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Scope {
    Queue(QueueName),
    /// The namespace with its slash.
    Namespace(String),
}

impl Scope {
    fn as_str(&self) -> &str {
        match self {
            Self::Queue(name) => name.as_str(),
            Self::Namespace(prefix) => prefix.as_str(),
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Rights(u8);

fn bit(right: Right) -> u8 {
    1 << right as u8
}

/// The members that may follow a token.
const NAMES: [&str; 7] = ["name", "rights", "scope", "rate", "bytes", "tasks", "max_delay"];
/// The longest name of a token (bytes).
const NAME_BYTES_MAX: usize = 64;

/// Why a text has no valid tokens. The text is not shown, because it may hold secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TokensError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The mistake, and the correct form.
    pub what: String,
}

impl Tokens {
    /// Reads the tokens of a text.
    ///
    /// # Errors
    /// [`TokensError`] for the first line that is not a token. An empty text is an error, too, because a server
    /// without tokens admits every caller.
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

    /// Takes over the used quotas of the tokens whose limits did not change.
    pub(crate) fn with_quotas_of(mut self, before: &Self) -> Self {
        for (hash, grant) in &mut self.known {
            let stays = before.known.iter().find(|(known, old)| known == hash && old.quota == grant.quota);
            if let Some((_, old)) = stays {
                grant.quota.clone_from(&old.quota);
            }
        }
        self
    }

    /// These tokens without those of `others`.
    pub(crate) fn without(mut self, others: &Self) -> Self {
        self.known.retain(|(hash, _)| others.known.iter().all(|(other, _)| other != hash));
        self
    }

    /// The names of the tokens.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.known.iter().filter_map(|(_, grant)| grant.name.as_deref()).collect()
    }

    /// The number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The number of tokens that the text has in plain. Each reader of the text knows these tokens.
    pub(crate) fn plain(&self) -> usize {
        self.plain
    }

    /// The number of plain tokens that are shorter than [`TOKEN_BYTES_ADVISED`].
    pub(crate) fn short(&self) -> usize {
        self.short
    }

    /// The lines (from 1) with 64 hex digits and without `sha256:`. They are tokens, such as `openssl rand -hex 32`
    /// makes, but their author may have meant a hash.
    pub(crate) fn like_hashes(&self) -> &[usize] {
        &self.like_hashes
    }

    /// The rights of the bearer of a token; `None`: the token is not known. The look-up takes the same time for every
    /// token.
    pub(crate) fn grant(&self, token: &[u8]) -> Option<Grant> {
        if token.is_empty() {
            return None;
        }
        self.grant_of(Sha256::digest(token).into())
    }

    /// The rights of the bearer of the token with this hash; `None`: the token is not known.
    pub(crate) fn grant_of(&self, hash: Hash) -> Option<Grant> {
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

/// The hashed form of a token, for a token file.
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
    /// The grant on a server without tokens: everything.
    pub(crate) fn everything() -> Self {
        Self { rights: Rights(u8::MAX), scopes: None, quota: None, token: None, name: None }
    }

    /// The grant of each client of a door without tokens: all rights, in the queues of a namespace if one is given.
    pub(crate) fn of_door(namespace: Option<&str>) -> Self {
        let scope = namespace.map(|namespace| [Scope::Namespace(format!("{namespace}/"))].into());
        Self { scopes: scope, ..Self::everything() }
    }

    /// The scope, as names of queues and as namespaces with a slash; `None`: all queues. Callers with one scope share what a scope may have.
    pub(crate) fn shared_scope(&self) -> Option<Arc<[Arc<str>]>> {
        let scopes = self.scopes.as_deref()?;
        // A part within another one would be counted twice.
        let is_within =
            |part: &str, other: &str| part != other && other.ends_with('/') && part.starts_with(other);
        let mut parts: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
        parts.sort_unstable();
        parts.dedup();
        let own = parts.iter().filter(|part| !parts.iter().any(|other| is_within(part, other)));
        Some(own.map(|part| Arc::from(*part)).collect())
    }

    /// The only prefix, with its slash, of the queues of this scope. Empty: the scope is all queues. `None`: the
    /// scope is not given by a single prefix.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match self.scopes.as_deref() {
            None => Some(""),
            Some([Scope::Namespace(prefix)]) => Some(prefix),
            Some(_) => None,
        }
    }

    /// The grant of an unknown caller.
    pub(crate) fn nothing() -> Self {
        Self { rights: Rights(0), ..Self::everything() }
    }

    /// The same grant without a quota.
    pub(crate) fn without_quota(self) -> Self {
        Self { quota: None, ..self }
    }

    /// The name of the token in the log; `None` if the server has no tokens, or the caller is unknown.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// The hash of the token that the request brought; `None` if the server has no tokens.
    pub(crate) fn token(&self) -> Option<Hash> {
        self.token
    }

    pub(crate) fn allows(&self, right: Right) -> bool {
        self.rights.0 & bit(right) != 0
    }

    /// Whether another grant allows the same. The names may differ: that of a token without a name is its line, and lines move.
    pub(crate) fn allows_as(&self, other: &Self) -> bool {
        (self.rights, &self.scopes, &self.quota) == (other.rights, &other.scopes, &other.quota)
    }

    /// Whether the grant holds in all queues.
    pub(crate) fn is_unscoped(&self) -> bool {
        self.scopes.is_none()
    }

    /// The quota of the token, if it has one.
    pub(crate) fn quota(&self) -> Option<&Quota> {
        self.quota.as_deref()
    }

    /// The quota of the token, for work that outlives the call.
    pub(crate) fn shared_quota(&self) -> Option<Arc<Quota>> {
        self.quota.clone()
    }

    /// The scopes as they stand in the token file; none: all queues.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scopes.iter().flat_map(|scopes| scopes.iter()).map(Scope::as_str)
    }

    /// The scope as a word of the token file, the same for the same scope in any order; `None`: all queues.
    pub(crate) fn scope(&self) -> Option<String> {
        let mut all: Vec<&str> = self.scopes.as_ref()?.iter().map(Scope::as_str).collect();
        all.sort_unstable();
        all.dedup();
        Some(all.join(","))
    }

    /// The prefixes of the names of the queues in the scope. No queue has two of these prefixes, but a queue with one
    /// may still be outside of the scope.
    pub(crate) fn prefixes(&self) -> Vec<&str> {
        let Some(scopes) = &self.scopes else { return vec![""] };
        let mut all: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
        all.sort_unstable();
        // A prefix that begins with another prefix comes after it in the order, and is removed.
        all.dedup_by(|longer, shorter| longer.starts_with(*shorter));
        all
    }

    /// Whether the scope includes this queue.
    pub(crate) fn covers(&self, queue: &QueueName) -> bool {
        let Some(scopes) = &self.scopes else { return true };
        scopes.iter().any(|scope| match scope {
            Scope::Queue(name) => name == queue,
            Scope::Namespace(prefix) => queue.as_str().starts_with(prefix),
        })
    }
}

/// The contents of one line.
struct Said {
    hash: Hash,
    grant: Grant,
    /// The length of the token (bytes), if the line has it in plain.
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
        // This text would admit each reader of the file if it was taken as a token, and refuse the owner of the real
        // token.
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
        let unlike = |error: TextError| wrong(&error.in_full());
        match name {
            "name" => grant.name = Some(token_name(value)?),
            "rights" => grant.rights = rights(value)?,
            "scope" => grant.scopes = Some(scopes(value)?),
            "rate" => allowed.rate = Some(value.parse().map_err(unlike)?),
            "bytes" => allowed.bytes = Some(value.parse().map_err(unlike)?),
            "tasks" => allowed.tasks = Some(value.parse().map_err(|_| wrong(&"it takes a whole number"))?),
            _ => allowed.max_delay_ms = Some(duration::parse(value).map_err(unlike)?),
        }
    }
    if allowed != Allowed::default() {
        grant.quota = Some(Arc::new(Quota::new(allowed)));
    }
    Ok(Said { hash, grant, plain_bytes })
}

/// The names that the log uses for callers without a known token. The token of the environment variable gets its name
/// elsewhere.
const OF_THE_LOG: [&str; 2] = ["none", "unknown"];

/// The name of a token, checked so that a log shows it well and can be searched for it.
fn token_name(name: &str) -> Result<Arc<str>, String> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if OF_THE_LOG.contains(&name) {
        return Err(format!(
            "the log uses `name={name}` for callers without a known token; take another name"
        ));
    }
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_good) {
        return Ok(name.into());
    }
    Err(format!("`name=` takes 1 to {NAME_BYTES_MAX} letters, digits and `.`, `_`, `-`"))
}

/// Whether the text begins with the mark of another hash: `sha-256:`, `sha512:`, `sha1:`.
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
        let known = Right::ALL.into_iter().find(|right| right.name() == word);
        rights.0 |= bit(known.ok_or("`rights=` takes some of read,produce,consume,admin")?);
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
        // The hash is made by: printf secret | sha256sum
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
            assert!(error.to_string().contains("for callers without a known token"), "{error}");
        }
        assert!(Tokens::parse("t name=a name=b").is_err());
    }

    #[test]
    fn rights_and_scopes_restrict_a_token() {
        let tokens = Tokens::parse("t rights=read,consume scope=close,shop/").expect("tokens");
        let grant = tokens.grant(b"t").expect("it is one");
        let allowed = Right::ALL.map(|right| grant.allows(right));
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
    fn plain_and_short_tokens_are_counted() {
        let hash = hashed("a");
        let read = |text: &str| Tokens::parse(text).map(|tokens| (tokens.plain(), tokens.short()));
        assert_eq!(read(&hash.to_uppercase()), Ok((0, 0)));
        assert_eq!(read("secret\n0123456789abcdefghijkl rights=read\n"), Ok((2, 1)));
    }

    /// A bug that was found: `TICKWHEEL_TOKEN=$(openssl rand -hex 32)` was refused, and the hint said to write
    /// `sha256:` before it. Then the server waited for a token with that hash, which no client has.
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
            (
                "canary rate=fast",
                "line 1: in `rate=`: `fast` is no rate: there is no `/` in it; write a number",
            ),
            ("canary bytes=1MiB/s", "line 1: in `bytes=`: `1MiB/s` is no rate"),
            ("canary tasks=many", "line 1: in `tasks=`: it takes a whole number"),
            (
                "canary max_delay=soon",
                "line 1: in `max_delay=`: `soon` is not a duration: expected a number at `soon`; write",
            ),
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
