//! `bpftool map dump` of an array, as far as it says something.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// What a dump prints of the entry of `key`, one field a line; of a list of variants only those in
/// use. What comes after the entry is not waited for: an array has all its entries, used or not.
pub(super) fn entry(map: &str, key: u32) -> Result<Vec<String>> {
    let mut dump = Command::new("bpftool")
        .args(["map", "dump", "pinned", map])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run bpftool")?;
    let out = dump.stdout.take().context("bpftool prints nowhere")?;
    let found = find(BufReader::new(out), key);
    // It may be in the middle of the rest.
    let _ = dump.kill();
    let _ = dump.wait();
    Ok(lines(&found?))
}

/// The value of the entry of `key`.
fn find(out: impl BufRead, key: u32) -> Result<Value> {
    let wanted = format!("\"key\": {key},");
    let mut text: Option<String> = None;
    for line in out.lines() {
        let line = line?;
        match &mut text {
            None if line.trim() == wanted => text = Some("{".to_owned()),
            None => {}
            Some(text) => {
                text.push_str(&line);
                // The entry ends at the first line that makes it whole; the next may begin there.
                let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
                if let Some(Ok(entry)) = values.next() {
                    return Ok(entry["value"].clone());
                }
            }
        }
    }
    bail!("bpftool prints no entry {key}")
}

fn lines(slot: &Value) -> Vec<String> {
    let fields = ["seq", "generation", "count"];
    let mut lines = vec![
        fields
            .map(|name| format!("{name} {}", slot[name]))
            .join("  "),
    ];
    let used = usize::try_from(slot["count"].as_u64().unwrap_or(0)).unwrap_or(0);
    let variants = slot["variants"].as_array().into_iter().flatten().take(used);
    for (index, variant) in variants.enumerate() {
        let (weight, backend) = (&variant["weight"], &variant["backend"]);
        lines.push(format!(
            "variants[{index}]  weight {weight}  backend {backend}"
        ));
    }
    lines
        .into_iter()
        .map(|line| format!("    {line}"))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// As bpftool 7 prints it.
    const DUMP: &str = r#"[{
        "key": 0,
        "value": {
            "seq": 2,
            "generation": 1,
            "count": 2,
            "pad": 0,
            "variants": [{
                    "weight": 80,
                    "backend": 3
                },{
                    "weight": 20,
                    "backend": 4
                },{
                    "weight": 0,
                    "backend": 0
                }
            ]
        }
    },{
        "key": 1,
        "value": {
            "seq": 0,
            "generation": 0,
            "count": 0,
            "pad": 0,
            "variants": []
        }
    }
]
"#;

    #[test]
    fn the_used_variants_of_one_slot_are_shown() {
        let lines = lines(&find(DUMP.as_bytes(), 0).unwrap());
        let expected = [
            "    seq 2  generation 1  count 2",
            "    variants[0]  weight 80  backend 3",
            "    variants[1]  weight 20  backend 4",
        ];
        assert_eq!(lines, expected);
        assert_eq!(find(DUMP.as_bytes(), 1).unwrap()["count"], 0);
        assert!(find(DUMP.as_bytes(), 2).is_err());
    }
}
