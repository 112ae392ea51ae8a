use std::io::{self, IsTerminal as _, Stdout, Write};

/// Title of a column and whether its cells stand at the right.
pub(super) type Column = (&'static str, Align);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// One line of a table, and whether what it shows is as it should be.
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) holds: bool,
}

/// What the reader sees, and how much of it is not as it should be.
pub(super) struct Report<W = Stdout> {
    out: W,
    colours: bool,
    failed: usize,
}

impl Report {
    /// With colours if a person looks at it and has not asked for none.
    pub(super) fn to_stdout() -> Self {
        let out = io::stdout();
        let colours = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Report {
            out,
            colours,
            failed: 0,
        }
    }
}

impl<W: Write> Report<W> {
    /// How many expectations did not hold so far.
    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    /// Begins a section.
    pub(super) fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.coloured("1", text);
        writeln!(self.out, "\n{text}")
    }

    /// A line of text within a section.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "  {text}")
    }

    /// A table that ends each row with its verdict.
    pub(super) fn table(&mut self, columns: &[Column], rows: &[Row]) -> io::Result<()> {
        let width = |at: usize, title: &str| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            let widest = cells.map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0).max(title.chars().count())
        };
        let widths: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(at, (title, _))| width(at, title))
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded = cells.zip(&widths).zip(columns);
            let padded = padded.map(|((cell, &width), (_, align))| match align {
                Align::Left => format!("{cell:width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            padded.collect::<Vec<_>>().join("  ")
        };
        let titles = line(&mut columns.iter().map(|(title, _)| *title));
        let titles = self.coloured("2", titles.trim_end());
        writeln!(self.out, "  {titles}")?;
        for row in rows {
            let cells = line(&mut row.cells.iter().map(String::as_str));
            let verdict = if row.holds {
                self.coloured("32", "ok")
            } else {
                self.failed += 1;
                self.coloured("1;31", "NOT AS EXPECTED")
            };
            writeln!(self.out, "  {cells}  {verdict}")?;
        }
        Ok(())
    }

    fn coloured(&self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn report(colours: bool) -> Report<Vec<u8>> {
        Report {
            out: Vec::new(),
            colours,
            failed: 0,
        }
    }

    fn row(cells: [&str; 2], holds: bool) -> Row {
        Row {
            cells: cells.map(str::to_owned).to_vec(),
            holds,
        }
    }

    #[test]
    fn a_table_is_aligned_and_counts_what_does_not_hold() {
        let mut report = report(false);
        let columns = [("host", Align::Left), ("n", Align::Right)];
        let rows = [row(["a.example", "7"], true), row(["b", "1000"], false)];
        report.table(&columns, &rows).unwrap();
        let text = String::from_utf8(report.out.clone()).unwrap();
        let wanted =
            "  host          n\n  a.example     7  ok\n  b          1000  NOT AS EXPECTED\n";
        assert_eq!(text, wanted);
        assert_eq!(report.failed(), 1);
    }

    #[test]
    fn colours_are_for_terminals_only() {
        for colours in [false, true] {
            let mut report = report(colours);
            report.heading("title").unwrap();
            report.table(&[("a", Align::Left)], &[]).unwrap();
            assert_eq!(report.out.contains(&0x1b), colours);
        }
    }
}
