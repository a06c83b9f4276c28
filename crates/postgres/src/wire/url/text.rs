//! The text of a URL, and the settings in it.

use std::collections::BTreeMap;

/// All parameters of a URL.
const PARAMETERS: &str = "host port user password dbname sslmode sslrootcert sslcert \
    sslkey passfile connect_timeout target_session_attrs keepalives_idle keepalives_interval keepalives_count tcp_user_timeout";

/// Why a URL is not taken. No text shows a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UrlError(pub(super) String);

/// Splits a URL into its settings, by the names of the parameters.
pub(super) fn split(text: &str) -> Result<BTreeMap<&'static str, String>, UrlError> {
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let rest = rest.ok_or_else(|| UrlError("the URL does not begin with postgres://".to_owned()))?;
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    // A password with a `/` that is not encoded ends up here, and the name of a database is shown.
    if database.contains(['@', '/']) {
        return Err(UrlError(
            "a `/` or `@` in a user, password or database is written as %2F or %40".to_owned(),
        ));
    }
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };

    let mut said = BTreeMap::new();
    let mut say = |name: &'static str, value: String| match said.insert(name, value) {
        None => Ok(()),
        Some(_) => Err(UrlError(format!("`{name}` is said twice"))),
    };
    if let Some(login) = login {
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        if !user.is_empty() {
            say("user", decoded(user)?)?;
        }
        if let Some(password) = password {
            say("password", decoded(password)?)?;
        }
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for host in hosts.split(',') {
            let (name, port) = match host.rsplit_once(':') {
                // The colons in brackets belong to the address.
                Some((name, port)) if !port.contains(']') => (name, port),
                _ => (host, ""),
            };
            names.push(decoded(name)?);
            ports.push(decoded(port)?);
        }
        if names.iter().any(|name| !name.is_empty()) {
            say("host", names.join(","))?;
        }
        if ports.iter().any(|port| !port.is_empty()) {
            say("port", ports.join(","))?;
        }
    }
    if !database.is_empty() {
        say("dbname", decoded(database)?)?;
    }
    for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
        // A password with a `?` that is not encoded ends up here, so the text is not repeated if it may be one.
        let shown = |name: &str| match text.rsplit_once('?').is_some_and(|(_, query)| query.contains('@')) {
            true => "***".to_owned(),
            false => name.to_owned(),
        };
        let Some((name, value)) = pair.split_once('=') else {
            return Err(UrlError(format!("the parameter `{}` has no value", shown(pair))));
        };
        let name = decoded(name)?;
        if name == "application_name" {
            return Err(UrlError("`application_name` is set by the program: it names the node".to_owned()));
        }
        let Some(known) = PARAMETERS.split(' ').find(|known| *known == name) else {
            return Err(UrlError(format!(
                "the parameter `{}` is unknown; the known ones are {}",
                shown(&name),
                PARAMETERS.replace(' ', ", ")
            )));
        };
        say(known, decoded(value)?)?;
    }
    Ok(said)
}

/// Decodes `%41`.
pub(super) fn decoded(text: &str) -> Result<String, UrlError> {
    let wrong =
        || UrlError("a `%` in the URL is not followed by two hexadecimal digits of a character".to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or_else(wrong)?;
        let digit = |digit: u8| char::from(digit).to_digit(16).ok_or_else(wrong);
        let value = digit(digits[0])? << 4 | digit(digits[1])?;
        bytes.push(u8::try_from(value).map_err(|_| wrong())?);
        rest = after;
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    match text.contains('\0') {
        true => Err(UrlError("the URL has a NUL in it".to_owned())),
        false => Ok(text),
    }
}

/// Encodes what is neither a letter, a digit nor one of `-._~`.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
