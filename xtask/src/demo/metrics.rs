use anyhow::{Context as _, Result};

use super::client::Client;

/// One page of metrics. Enough of a reader for what is shown: label values here have no escapes.
pub(super) struct Metrics(String);

impl Metrics {
    pub(super) fn read(admin: &mut Client) -> Result<Self> {
        admin.get("splitter", "/metrics", &[]).map(Metrics)
    }

    /// The sum over the samples of `name` that have all these labels, as Prometheus adds them up.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Result<u64> {
        let wanted: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let mut sum = 0;
        for line in self.0.lines() {
            let Some((labels, value)) = sample(line, name) else {
                continue;
            };
            if wanted
                .iter()
                .all(|one| labels.split(',').any(|label| label == one))
            {
                sum += value
                    .parse::<u64>()
                    .with_context(|| format!("no whole number: {line}"))?;
            }
        }
        Ok(sum)
    }
}

/// Labels and value of a line if it is a sample of `name`.
fn sample<'a>(line: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(name)?.strip_prefix('{')?.split_once("} ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn samples_with_all_labels_are_added_up() {
        let page = Metrics(
            "# TYPE a counter\na{host=\"h\",canary=\"\"} 1\na{host=\"h\",canary=\"c\"} 2\n\
             a{host=\"hh\",canary=\"\"} 4\nab{host=\"h\",canary=\"\"} 8\n"
                .to_owned(),
        );
        assert_eq!(page.sum("a", &[("host", "h")]).unwrap(), 3);
        assert_eq!(page.sum("a", &[("host", "h"), ("canary", "")]).unwrap(), 1);
        assert_eq!(page.sum("a", &[("host", "other")]).unwrap(), 0);
    }
}
