//! `splitter weight set`: another split at once, past the objects.

use std::fmt;
use std::io::Write as _;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::instance::{InstanceArgs, SplitDump};
use crate::dataplane::SlotContent;
use crate::routing::SlotId;

/// What names a Service, and no host.
const SERVICE: &str = "service/";

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
    /// Set weights of one host and path, or of a Service, until its objects change
    Set(SetArgs),
}

/// Arguments of `splitter weight set`.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// The host as its rule has it, e.g. shop.example or *.example, * for the rule without a host; or
    /// a Service: service/NAMESPACE/NAME for all of its ports, service/NAMESPACE/NAME:PORT,
    /// service/NAMESPACE/NAME:PORT/UDP
    #[arg(value_name = "HOST|SERVICE")]
    pub host: String,

    /// The path as its rule has it (not for a Service); then each variant (stable, or the name of the
    /// canary's Service) and its weight. Variants that are not named keep theirs
    #[arg(value_name = "[PATH] VARIANT=N", required = true, num_args = 1..)]
    pub rest: Vec<String>,

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
        let asked = Asked::read(&args)?;
        let (pinned, dump) = args.instance.open()?;
        let mut out = std::io::stdout().lock();
        // All of them are looked at before the first is written.
        let mut writes = Vec::new();
        for split in asked.find(&dump.weights)? {
            let slot = split.slot.map(SlotId).with_context(|| {
                let location = &split.location;
                format!("{location} has no slot: too many locations have canaries; see /problems")
            })?;
            let before = pinned.splits.table.read(slot);
            writes.push((
                split,
                slot,
                before,
                changed(split, &before, &asked.weights)?,
            ));
        }
        for (split, slot, before, next) in writes {
            let generation = u64::from(before.generation);
            pinned.splits.table.write(slot, &next, generation)?;
            writeln!(out, "{} (slot {})", split.location, slot.0)?;
            for ((variant, old), new) in split.variants.iter().zip(before.variants).zip(next.all())
            {
                let (name, old, new) = (&variant.name, old.weight, new.weight);
                let wanted = variant.wanted;
                writeln!(out, "  {name}: {old} -> {new} (objects: {wanted})")?;
            }
        }
        writeln!(out, "in force now, until the objects change")?;
        Ok(())
    }
}

/// What is asked for.
struct Asked {
    place: Place,
    weights: Vec<(String, u32)>,
}

/// Whose weights.
enum Place {
    /// Of a Location: host and path, and its type as the instance calls it.
    Location([String; 2], Option<&'static str>),
    /// Of a Service: `service/NAMESPACE/NAME`, and one of its ports with its transport.
    Service(String, Option<(String, &'static str)>),
}

impl Asked {
    fn read(args: &SetArgs) -> anyhow::Result<Self> {
        if !args.host.starts_with(SERVICE) {
            let (path, weights) = args.rest.split_first().context("there is no path")?;
            let host = if args.host == "*" { "" } else { &args.host };
            let kind = args.path_type.map(|kind| match kind {
                PathTypeArg::Exact => "Exact",
                PathTypeArg::Prefix => "Prefix",
                PathTypeArg::ImplementationSpecific => "Regex",
            });
            return Ok(Asked {
                place: Place::Location([host.to_owned(), path.clone()], kind),
                weights: assignments(weights)?,
            });
        }
        let (name, port) = match args.host.split_once(':') {
            None => (args.host.as_str(), None),
            Some((name, port)) => {
                let (number, kind) = match port.split_once('/') {
                    None => (port, "TCP"),
                    Some((number, kind)) if kind.eq_ignore_ascii_case("tcp") => (number, "TCP"),
                    Some((number, kind)) if kind.eq_ignore_ascii_case("udp") => (number, "UDP"),
                    Some((_, kind)) => bail!("{kind} is neither TCP nor UDP"),
                };
                (name, Some((format!(":{number}"), kind)))
            }
        };
        Ok(Asked {
            place: Place::Service(name.to_owned(), port),
            weights: assignments(&args.rest)?,
        })
    }

    fn find<'a>(&self, splits: &'a [SplitDump]) -> anyhow::Result<Vec<&'a SplitDump>> {
        let fits = |split: &&SplitDump| match &self.place {
            Place::Location([host, path], kind) => {
                split.host.eq_ignore_ascii_case(host)
                    && split.path == *path
                    && kind.is_none_or(|kind| kind == split.kind)
            }
            Place::Service(name, port) => {
                let fits =
                    |(port, kind): &(String, &str)| split.path == *port && split.kind == *kind;
                split.host == *name && port.as_ref().is_none_or(fits)
            }
        };
        let found: Vec<_> = splits.iter().filter(fits).collect();
        match (&self.place, found.len()) {
            (_, 0) => {
                let known: Vec<_> = splits.iter().map(|split| split.location.as_str()).collect();
                let known = match known.is_empty() {
                    true => "none".to_owned(),
                    false => known.join(", "),
                };
                bail!("no {} with a canary; there are: {known}", self.place)
            }
            (Place::Location([host, path], _), 2..) => {
                bail!("{host}{path} is there as Exact and as Prefix; say which with --path-type")
            }
            _ => Ok(found),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Location([host, path], _) if host.is_empty() => {
                write!(f, "host * and path {path}")
            }
            Place::Location([host, path], _) => write!(f, "host {host} and path {path}"),
            Place::Service(name, None) => f.write_str(name),
            Place::Service(name, Some((port, kind))) => write!(f, "{name}{port}/{kind}"),
        }
    }
}

fn assignments(texts: &[String]) -> anyhow::Result<Vec<(String, u32)>> {
    if texts.is_empty() {
        bail!("no weight is given; expected one such as web-next=20");
    }
    let read = texts
        .iter()
        .map(|text| assignment(text).map_err(|expected| anyhow::anyhow!("{text:?}: {expected}")));
    read.collect()
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

    fn asked(host: &str, rest: &[&str], path_type: Option<PathTypeArg>) -> anyhow::Result<Asked> {
        Asked::read(&SetArgs {
            host: host.to_owned(),
            rest: rest.iter().map(|it| (*it).to_owned()).collect(),
            path_type,
            instance: InstanceArgs {
                pin: super::super::PinArgs {
                    pin_dir: "p".into(),
                },
                admin: None,
            },
        })
    }

    fn error<T>(result: anyhow::Result<T>) -> String {
        result.err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_place_is_found_by_host_path_and_type() {
        let both = [split("Exact"), split("Prefix")];
        let of = |host, path_type| asked(host, &["/", "next=1"], path_type).unwrap();
        let found = of("SHOP.test", Some(PathTypeArg::Prefix));
        assert_eq!(found.find(&both).unwrap()[0].kind, "Prefix");
        assert!(error(of("shop.test", None).find(&both)).contains("--path-type"));
        let unknown = error(of("other.test", None).find(&both));
        assert!(
            unknown.contains(
                "no host other.test and path / with a canary; there are: shop.test/ (Exact), "
            ),
            "{unknown}"
        );
        assert!(of("shop.test", None).find(&both[..1]).is_ok());
        assert!(error(asked("shop.test", &["/"], None)).contains("web-next=20"));
        assert!(error(asked("shop.test", &["/", "x"], None)).contains("\"x\": expected a variant"));
    }

    #[test]
    fn a_service_is_found_with_all_its_ports_or_one() {
        let port = |path: &str, kind: &str| SplitDump {
            host: "service/shop/db".to_owned(),
            path: path.to_owned(),
            ..split(kind)
        };
        let all = [
            split("Exact"),
            port(":53", "TCP"),
            port(":53", "UDP"),
            port(":54", "TCP"),
        ];
        let found = |name: &str| {
            let asked = asked(name, &["next=5"], None).unwrap();
            let found = asked.find(&all).map(|it| it.len());
            found.map_err(|it| it.to_string())
        };
        assert_eq!(found("service/shop/db"), Ok(3));
        assert_eq!(found("service/shop/db:53"), Ok(1));
        assert_eq!(found("service/shop/db:53/udp"), Ok(1));
        assert!(
            found("service/shop/db:54/UDP")
                .unwrap_err()
                .contains("no service/shop/db:54/UDP with")
        );
        assert!(error(asked("service/shop/db:53/sctp", &["a=1"], None)).contains("neither"));
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
