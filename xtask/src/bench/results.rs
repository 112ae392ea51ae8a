//! The peer bench's `results.jsonl`: a line for each measurement, and one for each proxy's version.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// What was measured.
pub(super) struct Results {
    pub(super) machine: String,
    pub(super) versions: BTreeMap<String, String>,
    /// By workload and proxy, one for each run.
    rows: BTreeMap<(String, String), Vec<Value>>,
    /// The core at its fastest: what the bench's fixed piece of work took then.
    fastest_us: Option<f64>,
}

impl Results {
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut results = Results {
            machine: String::new(),
            versions: BTreeMap::new(),
            rows: BTreeMap::new(),
            fastest_us: None,
        };
        let mut calibrations = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let row: Value = serde_json::from_str(line)
                .with_context(|| format!("line {} of the results is no JSON", number + 1))?;
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            if row["version"].is_string() {
                results.machine = text("machine");
                results.versions.insert(text("proxy"), text("version"));
                continue;
            }
            calibrations.extend(row["calibration_us"].as_f64());
            let key = (text("workload"), text("proxy"));
            results.rows.entry(key).or_default().push(row);
        }
        calibrations.sort_by(f64::total_cmp);
        results.fastest_us = calibrations.get(calibrations.len() / 20).copied();
        Ok(results)
    }

    /// How many runs the steady workloads had at most.
    pub(super) fn runs(&self) -> usize {
        let rows = self.rows.values().flatten();
        let runs: BTreeSet<_> = rows.filter_map(|row| row["run"].as_u64()).collect();
        runs.len()
    }

    /// The median of a figure over the runs; CPU times as they would be on the core at its fastest, by
    /// the square root of how much slower it was (the bench's own rule: a calibration is noisy too).
    pub(super) fn median(&self, workload: &str, proxy: &str, key: &str) -> Option<f64> {
        let rows = self.rows.get(&(workload.to_owned(), proxy.to_owned()))?;
        let mut values: Vec<f64> = rows
            .iter()
            .filter_map(|row| {
                let value = row[key].as_f64()?;
                let slower = self.fastest_us.zip(row["calibration_us"].as_f64());
                match slower {
                    Some((fastest, now)) if key == "cpu_us" => Some(value * (fastest / now).sqrt()),
                    _ => Some(value),
                }
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() % 2 {
            _ if values.is_empty() => None,
            0 => Some(values[middle - 1].midpoint(values[middle])),
            _ => Some(values[middle]),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn medians_are_scaled_by_the_calibration() {
        let line = |run: u32, cpu: f64, calibration: f64| {
            format!(
                "{{\"workload\": \"h2\", \"proxy\": \"p\", \"run\": {run}, \"cpu_us\": {cpu}, \
                 \"p50\": {run}, \"calibration_us\": {calibration}}}\n"
            )
        };
        let text = [line(0, 10.0, 5.0), line(1, 40.0, 20.0), line(2, 90.0, 5.0)].concat();
        let results = Results::read(&text).unwrap();
        assert_eq!(results.median("h2", "p", "cpu_us"), Some(20.0));
        assert_eq!(results.median("h2", "p", "p50"), Some(1.0));
        assert_eq!(results.median("h2", "q", "p50"), None);
        assert_eq!(results.runs(), 3);
        assert!(Results::read("{").is_err());
    }
}
