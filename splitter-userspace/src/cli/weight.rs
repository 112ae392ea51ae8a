//! `splitter weight set`: another split at once, past the objects.

use std::io::Write as _;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::instance::{InstanceArgs, SplitDump};
use crate::dataplane::SlotContent;
use crate::routing::SlotId;

/// Arguments of `splitter weight`.
#[derive(Args, Clone, Debug)]
pub struct WeightArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: WeightCommand,
}

/// What can be done with weights.
#[derive(Clone, Debug, Subcommand)]
pub enum WeightCommand {
    /// Set weights of one host and path, until its objects change
    Set(SetArgs),
}

/// Arguments of `splitter weight set`.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// The host as its rule has it, e.g. shop.example or *.example; * for the rule without a host
    #[arg(value_name = "HOST")]
    pub host: String,

    /// The path as its rule has it
    #[arg(value_name = "PATH")]
    pub path: String,

    /// A variant (stable, or the name of the canary's Service) and its weight; those not named
    /// keep theirs
    #[arg(value_name = "VARIANT=N", required = true, value_parser = assignment)]
    pub weights: Vec<(String, u32)>,

    /// Which one, where a path is there as both
    #[arg(long, value_enum)]
    pub path_type: Option<PathTypeArg>,

    /// Which instance.
    #[command(flatten)]
    pub instance: InstanceArgs,
}

/// Values of `--path-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathTypeArg {
    /// The whole path
    Exact,
    /// The path and all below it
    Prefix,
    /// A pattern
    ImplementationSpecific,
}

impl WeightArgs {
    /// Does it, and says what has changed.
    ///
    /// # Errors
    /// When there is no such instance, host and path, or variant.
    pub fn run(self) -> anyhow::Result<()> {
        let WeightCommand::Set(args) = self.command;
        let (pinned, dump) = args.instance.open()?;
        let split = args.find(&dump.weights)?;
        let slot = split.slot.map(SlotId).with_context(|| {
            let location = &split.location;
            format!("{location} has no slot: too many locations have canaries; see /problems")
        })?;
        let before = pinned.splits.table.read(slot);
        let next = changed(split, &before, &args.weights)?;
        pinned
            .splits
            .table
            .write(slot, &next, u64::from(before.generation))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{} (slot {})", split.location, slot.0)?;
        for ((variant, old), new) in split.variants.iter().zip(before.variants).zip(next.all()) {
            let (name, old, new) = (&variant.name, old.weight, new.weight);
            writeln!(
                out,
                "  {name}: {old} -> {new} (objects: {})",
                variant.wanted
            )?;
        }
        writeln!(out, "in force now, until the objects of this path change")?;
        Ok(())
    }
}

impl SetArgs {
    fn find<'a>(&self, splits: &'a [SplitDump]) -> anyhow::Result<&'a SplitDump> {
        let host = if self.host == "*" { "" } else { &self.host };
        let kind = self.path_type.map(|kind| match kind {
            PathTypeArg::Exact => "Exact",
            PathTypeArg::Prefix => "Prefix",
            PathTypeArg::ImplementationSpecific => "Regex",
        });
        let fits = |split: &&SplitDump| {
            split.host.eq_ignore_ascii_case(host)
                && split.path == self.path
                && kind.is_none_or(|kind| kind == split.kind)
        };
        let found: Vec<_> = splits.iter().filter(fits).collect();
        match found[..] {
            [split] => Ok(split),
            [] => {
                let known: Vec<_> = splits.iter().map(|split| split.location.as_str()).collect();
                let known = match known.is_empty() {
                    true => "none".to_owned(),
                    false => known.join(", "),
                };
                bail!(
                    "no host {} and path {} with a canary; there are: {known}",
                    self.host,
                    self.path
                )
            }
            _ => bail!(
                "{}{} is there as Exact and as Prefix; say which with --path-type",
                self.host,
                self.path
            ),
        }
    }
}

/// The content of a slot with some weights changed.
fn changed(
    split: &SplitDump,
    before: &splitter_common::Slot,
    weights: &[(String, u32)],
) -> anyhow::Result<SlotContent> {
    let names: Vec<_> = split.variants.iter().map(|v| v.name.as_str()).collect();
    for (index, (name, _)) in weights.iter().enumerate() {
        if !names.contains(&name.as_str()) {
            let names = names.join(", ");
            bail!("{} has no variant {name}; it has: {names}", split.location);
        }
        if weights[..index].iter().any(|(other, _)| other == name) {
            bail!("{name} is given two weights; give one");
        }
    }
    if names.len() != before.count as usize {
        bail!(
            "the slot of {} has {} variants, its objects {}; try again",
            split.location,
            before.count,
            names.len()
        );
    }
    let variants = names.iter().zip(before.variants).map(|(name, variant)| {
        let given = weights.iter().find(|(other, _)| other == name);
        let weight = given.map_or(variant.weight, |(_, weight)| *weight);
        (weight, variant.backend)
    });
    Ok(SlotContent::new(variants))
}

fn assignment(text: &str) -> Result<(String, u32), String> {
    let parts = text.split_once('=');
    let parsed = parts.and_then(|(name, weight)| Some((name, weight.parse().ok()?)));
    match parsed {
        Some((name, weight)) if !name.is_empty() => Ok((name.to_owned(), weight)),
        _ => Err("expected a variant and its weight such as stable=80 or web-next=20".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use splitter_common::{Slot, SlotVariant};

    use super::super::instance::VariantDump;
    use super::*;

    fn split(kind: &str) -> SplitDump {
        let variant = |name: &str, wanted| VariantDump {
            name: name.to_owned(),
            wanted,
            live: wanted,
            chosen: 0,
        };
        SplitDump {
            location: format!("shop.test/ ({kind})"),
            host: "shop.test".to_owned(),
            path: "/".to_owned(),
            kind: kind.to_owned(),
            slot: Some(3),
            variants: vec![variant("stable", 80), variant("next", 20)],
        }
    }

    fn args(host: &str, path_type: Option<PathTypeArg>) -> SetArgs {
        SetArgs {
            host: host.to_owned(),
            path: "/".to_owned(),
            weights: Vec::new(),
            path_type,
            instance: InstanceArgs {
                pin: super::super::PinArgs {
                    pin_dir: "p".into(),
                },
                admin: None,
            },
        }
    }

    #[test]
    fn a_place_is_found_by_host_path_and_type() {
        let both = [split("Exact"), split("Prefix")];
        let found = args("SHOP.test", Some(PathTypeArg::Prefix));
        assert_eq!(found.find(&both).unwrap().kind, "Prefix");
        let error = |args: SetArgs| args.find(&both).unwrap_err().to_string();
        assert!(error(args("shop.test", None)).contains("--path-type"));
        let unknown = error(args("other.test", None));
        assert!(
            unknown.contains("there are: shop.test/ (Exact), "),
            "{unknown}"
        );
        assert!(args("shop.test", None).find(&both[..1]).is_ok());
    }

    #[test]
    fn weights_not_named_stay() {
        let mut before = Slot {
            count: 2,
            ..Slot::default()
        };
        let place = |weight, backend| SlotVariant { weight, backend };
        before.variants[..2].copy_from_slice(&[place(80, 7), place(20, 8)]);
        let set = |weights: &[(&str, u32)]| {
            let weights = weights.iter().map(|(name, n)| ((*name).to_owned(), *n));
            changed(&split("Exact"), &before, &weights.collect::<Vec<_>>())
        };
        let next = set(&[("next", 50)]).unwrap();
        assert_eq!(next, SlotContent::new([(80, 7), (50, 8)]));
        let error = |weights: &[(&str, u32)]| set(weights).unwrap_err().to_string();
        assert!(error(&[("beta", 1)]).contains("it has: stable, next"));
        assert!(error(&[("next", 1), ("next", 2)]).contains("two weights"));
    }

    #[test]
    fn a_weight_is_a_name_and_a_number() {
        assert_eq!(assignment("a=0"), Ok(("a".to_owned(), 0)));
        for text in ["", "a", "a=", "=1", "a=-1", "a=1.5", "a=4294967296"] {
            assert!(assignment(text).is_err(), "{text}");
        }
    }
}
