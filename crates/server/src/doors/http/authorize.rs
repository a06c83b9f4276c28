//! The right that a request needs, and the token that it brings.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method};

use crate::access::authorizer::Need;
use crate::access::tokens::Right;
use crate::doors::http::path::decode;

/// The token of a request; empty if the header has no valid one.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    headers.contains_key(AUTHORIZATION).then(|| bearer(headers).unwrap_or_default())
}

/// The token in `Authorization: Bearer TOKEN`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// The right that a request needs. An unknown path below `queues` needs `admin` in its queue, and one below `clock`
/// or `backups` needs it everywhere, so that a forgotten route admits no other caller. Any other unknown path has no
/// route: a caller with any token gets that answer, not one about a missing right. Tests check that each route below
/// `/v1` has its right here.
pub(crate) fn need(method: &Method, path: &str) -> Need {
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
    // A name that cannot be decoded is refused by its handler; until then it is the queue with the empty name.
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
    fn an_unknown_route_needs_admin() {
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
