//! The chore `claims`.

use anyhow::{Context, Result};

use super::allowed::LIST;
use super::check::{check, is_page};
use crate::finding::report;
use crate::root::{root, texts};

/// Looks at every page.
pub(crate) fn run() -> Result<()> {
    let texts = texts(&root())?;
    let list = texts.iter().find(|text| text.path == LIST).with_context(|| format!("{LIST} is missing"))?;
    let count = texts.iter().filter(|text| is_page(&text.path)).count();
    report("claims", &format!("{count} pages"), check(&texts, &list.text))
}
