//! The file of passwords: `.pgpass`, in the format of libpq.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file of passwords is short; a longer one is another file.
const BYTES_MAX: u64 = 1 << 20;

/// The properties of a connection by which a line is looked up.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Question<'a> {
    /// The name, the address, or the directory of the socket.
    pub(crate) host: &'a str,
    /// Whether the host is the directory of a socket: libpq lets `localhost` stand for it.
    pub(crate) is_socket: bool,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// Reads the file; `None`: there is none.
///
/// # Errors
/// A text that says why the file is not used.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(format!("{}: it is no file", path.display()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "{}: others may read it (mode {mode:o}); `chmod 600` makes it a file for passwords",
            path.display()
        ));
    }
    let mut text = String::new();
    file.by_ref().take(BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("{}: it has more than {BYTES_MAX} bytes", path.display()));
    }
    Ok(Some(text))
}

/// Returns the password of the first line that fits.
pub(crate) fn find(text: &str, question: &Question<'_>) -> Option<String> {
    text.lines().find_map(|line| {
        if line.starts_with('#') {
            return None;
        }
        let (fields, password) = split(line)?;
        let [host, port, database, user] = &fields;
        let host_fits = host.fits(question.host) || (question.is_socket && host.fits("localhost"));
        let fits = host_fits
            && port.fits(&question.port.to_string())
            && database.fits(question.database)
            && user.fits(question.user);
        fits.then_some(password)
    })
}

struct Field {
    text: String,
    /// A `*` that is not escaped fits all.
    is_any: bool,
}

impl Field {
    fn fits(&self, value: &str) -> bool {
        self.is_any || self.text == value
    }
}

/// Splits `host:port:database:user:password`. A backslash takes the next character as it is.
fn split(line: &str) -> Option<([Field; 4], String)> {
    let mut characters = line.chars();
    let mut next = || {
        let mut text = String::new();
        let mut is_escaped = false;
        loop {
            match characters.next() {
                None => return (text, is_escaped, true),
                Some(':') => return (text, is_escaped, false),
                Some('\\') => {
                    is_escaped = true;
                    // A backslash at the end of the line stands for itself.
                    text.push(characters.next().unwrap_or('\\'));
                }
                Some(other) => text.push(other),
            }
        }
    };
    let mut field = || match next() {
        // The line ends before the password.
        (_, _, true) => None,
        (text, is_escaped, false) => Some(Field { is_any: text == "*" && !is_escaped, text }),
    };
    let fields = [field()?, field()?, field()?, field()?];
    // libpq ends the password at a colon that is not escaped.
    let (password, ..) = next();
    Some((fields, password))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const QUESTION: Question<'static> =
        Question { host: "db1", is_socket: false, port: 5432, database: "work", user: "me" };

    #[test]
    fn the_first_line_that_fits_counts() {
        let text = "# db1:5432:work:me:comment\n\
            short:line\n\
            db2:5432:work:me:other host\n\
            db1:5433:work:me:other port\n\
            db1:*:other:me:other database\n\
            *:*:*:you:other user\n\
            db1:*:*:me:first\n\
            *:*:*:*:second\n";
        assert_eq!(find(text, &QUESTION).as_deref(), Some("first"));
        assert_eq!(find(text, &Question { host: "db3", ..QUESTION }).as_deref(), Some("second"));
        assert_eq!(find("db1:5432:work:me\n", &QUESTION), None);
    }

    #[test]
    fn a_backslash_escapes() {
        assert_eq!(find(r"db1:5432:work:me:a\:b\\c", &QUESTION).as_deref(), Some(r"a:b\c"));
        // An escaped star is the character.
        assert_eq!(find(r"\*:*:*:*:x", &QUESTION), None);
        let socket = Question { host: "::1", ..QUESTION };
        assert_eq!(find(r"\:\:1:*:*:*:v6", &socket).as_deref(), Some("v6"));
        assert_eq!(find("*:*:*:*:x\\", &QUESTION).as_deref(), Some("x\\"));
    }

    #[test]
    fn a_socket_is_also_called_localhost() {
        let socket = Question { host: "/run/pg", is_socket: true, ..QUESTION };
        assert_eq!(find("localhost:*:*:*:x", &socket).as_deref(), Some("x"));
        assert_eq!(find("/run/pg:*:*:*:x", &socket).as_deref(), Some("x"));
        assert_eq!(find("localhost:*:*:*:x", &QUESTION), None);
    }

    #[test]
    fn a_file_that_others_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pass");
        assert_eq!(read(&path).unwrap(), None);
        fs::write(&path, "*:*:*:*:x\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.contains("others may read it (mode 640)"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("*:*:*:*:x\n"));
        assert!(read(directory.path()).unwrap_err().contains("no file"));
    }
}
