//! `splitter status`: the instance, its programs, pools and splits.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::instance::{Dump, InstanceArgs, SplitDump};
use crate::dataplane::Pinned;

/// Arguments of `splitter status`.
#[derive(Args, Clone, Debug)]
pub struct StatusArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,

    /// Which instance.
    #[command(flatten)]
    pub instance: InstanceArgs,
}

impl StatusArgs {
    /// Prints the state of the instance.
    ///
    /// # Errors
    /// When there is none, or it does not answer; what is pinned is printed all the same.
    pub fn run(self) -> anyhow::Result<()> {
        let pinned = match Pinned::open(&self.instance.pin.pin_dir) {
            Ok(pinned) => Some(pinned),
            // Without steering nothing is pinned, but an address is enough.
            Err(_) if self.instance.admin.is_some() => None,
            Err(error) => return Err(error.into()),
        };
        let mut out = std::io::stdout().lock();
        if let Some(pinned) = &pinned
            && !self.json
        {
            write!(out, "{}", pins(pinned))?;
        }
        let dump = self.instance.ask(pinned.as_ref())?;
        let text = match self.json {
            true => format!("{:#}\n", as_json(pinned.as_ref(), &dump)),
            false => text(&dump),
        };
        out.write_all(text.as_bytes())?;
        Ok(())
    }
}

fn as_json(pinned: Option<&Pinned>, dump: &Dump) -> Value {
    let splits = dump.weights.iter().map(|split| {
        let variants = split.variants.iter().map(|variant| {
            json!({
                "name": variant.name,
                "wanted": variant.wanted,
                "live": variant.live,
                "chosen": variant.chosen,
                "share": share(split, variant.chosen),
            })
        });
        json!({
            "location": split.location,
            "slot": split.slot,
            "overridden": split.is_overridden(),
            "variants": variants.collect::<Vec<_>>(),
        })
    });
    json!({
        "pin_dir": pinned.map(Pinned::dir),
        "kept_links": pinned.map(Pinned::links),
        "steering": dump.steering,
        "splits": splits.collect::<Vec<_>>(),
        "connections": dump.connections,
    })
}

fn pins(pinned: &Pinned) -> String {
    let pid = pinned.config().map_or(0, |(config, _)| config.pid);
    let mut text = format!("maps       {} of process {pid}\n", pinned.dir().display());
    let links = pinned.links();
    if !links.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "kept       {}", links.join(", "));
    }
    text
}

fn text(dump: &Dump) -> String {
    let steering = &dump.steering;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value, item: &dyn Fn(&Value) -> String| {
        let items = value.as_array().into_iter().flatten();
        items.map(item).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("instance   process {}\n", steering["pid"]);
    let (mode, asked) = (word(&steering["mode"]), word(&steering["asked"]));
    let _ = writeln!(text, "steering   {mode} (asked for: {asked})");
    for step in steering["not_to_be_had"].as_array().into_iter().flatten() {
        let (mode, why) = (word(&step["mode"]), word(&step["why"]));
        let _ = writeln!(text, "           no {mode}: {why}");
    }
    let pools = list(&steering["pools"], &|pool| {
        format!("{} ({} workers)", word(&pool["name"]), pool["workers"])
    });
    let _ = writeln!(text, "pools      {pools}");
    let kernel = &steering["kernel"];
    if kernel.is_object() {
        let programs = list(&kernel["programs"], &|program| {
            format!("{} (id {})", word(&program["name"]), program["id"])
        });
        let nics = list(&kernel["interfaces"], &|nic| {
            format!("{} (xdp {})", word(&nic["name"]), word(&nic["xdp"]))
        });
        let _ = writeln!(text, "programs   {programs}\ninterfaces {nics}");
    }
    if let Some(told) = steering["connect_hooks"]["told"].as_str() {
        let _ = writeln!(text, "connects   {told}");
    }
    if let Some(told) = steering["forwarding"]["told"].as_str() {
        let _ = writeln!(text, "services   {told}");
    }
    let overridden = dump.weights.iter().filter(|split| split.is_overridden());
    let _ = writeln!(text, "overrides  {}", overridden.count());
    dump.weights
        .iter()
        .for_each(|split| table(&mut text, split));
    connections(&mut text, dump);
    text
}

/// What was carried where no HTTP is looked at.
fn connections(text: &mut String, dump: &Dump) {
    if dump.connections.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:32}  {:20}  {:>12}  {:>8}  {:>14}  {:>14}",
        "service", "variant", "connections", "open", "bytes in", "bytes out"
    );
    for it in &dump.connections {
        let _ = writeln!(
            text,
            "{:32}  {:20}  {:>12}  {:>8}  {:>14}  {:>14}",
            it.service, it.variant, it.connections, it.open, it.received, it.sent
        );
    }
}

fn table(text: &mut String, split: &SplitDump) {
    let slot = split
        .slot
        .map_or("none".to_owned(), |slot| slot.to_string());
    let note = match split.is_overridden() {
        true => ", weights changed past the objects",
        false => "",
    };
    let _ = writeln!(text, "\n{} (slot {slot}{note})", split.location);
    let names = split.variants.iter().map(|variant| variant.name.len());
    let width = names.max().unwrap_or(0).max("variant".len());
    let _ = writeln!(
        text,
        "  {:width$}  {:>10}  {:>10}  {:>12}  share",
        "variant", "objects", "in force", "requests"
    );
    for variant in &split.variants {
        let share = share(split, variant.chosen);
        let share = share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let _ = writeln!(
            text,
            "  {:width$}  {:>10}  {:>10}  {:>12}  {share}",
            variant.name, variant.wanted, variant.live, variant.chosen
        );
    }
}

/// The part of all requests of a Split that one Variant got.
fn share(split: &SplitDump, chosen: u64) -> Option<f64> {
    let all: u64 = split.variants.iter().map(|variant| variant.chosen).sum();
    #[allow(clippy::cast_precision_loss, reason = "a share for people")]
    let share = chosen as f64 / all as f64;
    (all > 0).then_some(share)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_weights_shares_and_reasons() {
        let dump = json!({
            "steering": {
                "pid": 7, "mode": "sk-lookup", "asked": "auto",
                "not_to_be_had": [{"mode": "xdp", "why": "no driver"}],
                "pools": [{"name": "north-south", "workers": 2}],
                "kernel": {
                    "programs": [{"name": "steer", "id": 9}],
                    "interfaces": [{"name": "en0", "xdp": "none"}],
                },
                "connect_hooks": {"told": "attached to /sys/fs/cgroup"},
            },
            "weights": [{
                "location": "shop.test/ (Prefix)", "host": "shop.test", "path": "/",
                "kind": "Prefix", "slot": 3,
                "variants": [
                    {"name": "stable", "wanted": 80, "live": 50, "chosen": 3},
                    {"name": "web-next", "wanted": 20, "live": 50, "chosen": 1},
                ],
            }],
        });
        let text = text(&serde_json::from_value(dump).unwrap());
        for line in [
            "instance   process 7",
            "steering   sk-lookup (asked for: auto)",
            "           no xdp: no driver",
            "pools      north-south (2 workers)",
            "programs   steer (id 9)",
            "interfaces en0 (xdp none)",
            "connects   attached to /sys/fs/cgroup",
            "overrides  1",
            "shop.test/ (Prefix) (slot 3, weights changed past the objects)",
            "  variant      objects    in force      requests  share",
            "  stable            80          50             3  75.0 %",
            "  web-next          20          50             1  25.0 %",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?}:\n{text}");
        }
    }
}
