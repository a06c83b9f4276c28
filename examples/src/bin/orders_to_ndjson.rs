//! A shop's orders as operations for `tickwheel replay`, from a CSV file to stdout.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin orders_to_ndjson -- orders.csv > orders.ndjson
//! cargo run --release -- replay orders.ndjson
//! ```

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use tickwheel_examples::orders;

fn main() -> Result<()> {
    let file = std::env::args().nth(1).context("name the CSV file: orders_to_ndjson FILE")?;
    let csv = std::fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    let operations = orders::operations(&csv).with_context(|| format!("read {file}"))?;
    let mut out = BufWriter::new(io::stdout().lock());
    for operation in operations {
        out.write_all(&operation.to_json())?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
