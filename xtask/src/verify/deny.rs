use std::process::Output;

use anyhow::{Result, bail};

use crate::process::cargo;

/// cargo-deny, where it is installed: bans and sources without the network, advisories with it.
pub(super) fn check() -> Result<()> {
    let installed = cargo(&["deny", "--version"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!(
            "not checked: cargo-deny is not installed (cargo install cargo-deny --locked); \
             licences were checked without it, advisories need it and the network"
        );
        return Ok(());
    }
    let offline = cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"]).output()?;
    if !offline.status.success() {
        bail!("{}", text(&offline));
    }
    advisories(&cargo(&["deny", "check", "advisories"]).output()?)
}

fn advisories(output: &Output) -> Result<()> {
    let text = text(output);
    if output.status.success() {
        return Ok(());
    }
    if is_unreachable(&text) {
        println!("not checked: the list of advisories cannot be fetched without the network");
        return Ok(());
    }
    bail!("{text}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Whether cargo-deny failed for want of its list, and not because of what is in it.
fn is_unreachable(text: &str) -> bool {
    text.contains("failed to fetch advisory database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advisory_is_not_taken_for_a_missing_network() {
        assert!(is_unreachable(
            "[ERROR] failed to fetch advisory database https://x"
        ));
        assert!(!is_unreachable("error[vulnerability]: use after free in x"));
    }
}
