//! [`Sheet`]: a table of text with aligned columns.

use std::fmt;

/// A table of text. The first row has the titles.
pub struct Sheet {
    rows: Vec<Vec<String>>,
    /// Whether all columns but the first are numbers, which stand at the right.
    numbers: bool,
}

impl Sheet {
    /// A table of words: each column starts at the left.
    #[must_use]
    pub fn new<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![titles.into_iter().map(str::to_owned).collect()], numbers: false }
    }

    /// A table of numbers: each column but the first ends at the right.
    #[must_use]
    pub fn of_numbers<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        Self { numbers: true, ..Self::new(titles) }
    }

    /// Adds a row. An empty cell is shown as a dot.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let dot = |cell: String| if cell.is_empty() { ".".to_owned() } else { cell };
        self.rows.push(cells.into_iter().map(dot).collect());
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let length =
            |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        let width = |column| self.rows.iter().map(|row| length(row, column)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let cell = if self.numbers && column > 0 {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:width$}")
                };
                line = line + if column == 0 { "" } else { "  " } + &cell;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
