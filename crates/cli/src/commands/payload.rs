//! The options for a task's payload.

use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::value::RawValue;
use tickwheel_api::{CONTENT_TYPE_JSON, PayloadBody};

/// The limit for a payload file (bytes): 16 MiB, far above the server's limit. The limit keeps a wrong file name from filling the memory.
const BYTES_MAX: u64 = 16 << 20;

/// The options that give the payload.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Source {
    /// The content for the worker, as JSON
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// The content from a file, or from stdin with `-`
    #[arg(long, value_name = "FILE")]
    payload_file: Option<String>,
}

/// The options for the payload and its content type.
#[derive(Args, Debug)]
pub(crate) struct Payload {
    #[command(flatten)]
    source: Source,
    /// The content type; a payload of any type but JSON is kept as bytes
    #[arg(long, value_name = "TYPE", default_value = CONTENT_TYPE_JSON)]
    content_type: String,
}

impl Payload {
    /// The checked payload; `null` if no option gives one.
    ///
    /// # Errors
    /// The same as those of [`named`](Self::named).
    pub(crate) fn read(self) -> Result<PayloadBody> {
        self.named().map(Option::unwrap_or_default)
    }

    /// The checked payload; `None` if no option gives one.
    ///
    /// # Errors
    /// The payload cannot be read, is too large, or has the type JSON but is not valid JSON.
    pub(crate) fn named(self) -> Result<Option<PayloadBody>> {
        let (bytes, place) = match (self.source.payload, self.source.payload_file) {
            (Some(text), _) => (text.into_bytes(), "--payload".to_owned()),
            (None, Some(name)) => text_of(&name)?,
            (None, None) if self.content_type == CONTENT_TYPE_JSON => return Ok(None),
            (None, None) => bail!(
                "--content-type says what the payload is, and there is none; add --payload or --payload-file"
            ),
        };
        if self.content_type != CONTENT_TYPE_JSON {
            return Ok(Some(PayloadBody { bytes, content_type: self.content_type }));
        }
        json(&bytes, &place).map(Some)
    }
}

/// The JSON value in `bytes` with its spelling unchanged, and without the white space around it.
fn json(bytes: &[u8], place: &str) -> Result<PayloadBody> {
    let raw: &RawValue = match serde_json::from_slice(bytes) {
        Ok(raw) => raw,
        Err(error) => {
            let hint = if bytes.is_empty() {
                "write `null` for nothing"
            } else {
                "put text into double quotes, or send bytes with --content-type"
            };
            bail!("the payload in {place} is not JSON: {error}; {hint}")
        }
    };
    let payload = PayloadBody::json(raw.get().as_bytes().to_vec());
    // The server decides about JSON that some readers cannot read.
    if payload.as_json().is_none() && payload.check_portable().is_ok() {
        bail!(
            "the payload in {place} nests deeper than {} levels; flatten it",
            tickwheel_api::JSON_DEPTH_MAX - 1
        );
    }
    Ok(payload)
}

/// The bytes of a file, or of stdin for `-`, and a name of this source for errors.
///
/// # Errors
/// The source cannot be read, or is too large.
pub(super) fn text_of(name: &str) -> Result<(Vec<u8>, String)> {
    if name == "-" {
        let text = read(io::stdin().lock()).context("failed to read from stdin")?;
        return Ok((text, "stdin".to_owned()));
    }
    let file = File::open(name).with_context(|| format!("failed to open {name}"))?;
    let text = read(file).with_context(|| format!("failed to read {name}"))?;
    Ok((text, name.to_owned()))
}

fn read(from: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("it is larger than {BYTES_MAX} bytes; keep large data elsewhere, and its name in the payload");
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_kept_as_written_and_errors_have_a_position() {
        let kept = json(b" {\"a\": 1.0}\n", "--payload").expect("JSON");
        assert_eq!(kept.bytes, b"{\"a\": 1.0}");
        let text = |bytes: &[u8]| json(bytes, "--payload").expect_err("not JSON").to_string();
        assert!(text(b"{\"a\":\n 1,}").contains("at line 2 column"), "{}", text(b"{\"a\":\n 1,}"));
        assert!(text(b"hello").contains("put text into double quotes"));
        assert!(text(b"").contains("write `null`"));
        assert!(text(b"1 2").contains("trailing characters"));
        assert!(text("[".repeat(100).as_bytes()).contains("not JSON"));
        let deep = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(text(deep.as_bytes()).contains("nests deeper than 63"));
    }
}
