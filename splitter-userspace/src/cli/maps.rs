//! `splitter maps`: what the kernel side holds, with names.

use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value, json};
use splitter_common::{Class, ConnectBy, Fallback, Limit, Pool, Settings, Spoof, SpoofAction};

use super::instance::{Dump, InstanceArgs, SplitDump};
use crate::dataplane::{Pinned, PinnedName};
use crate::routing::SlotId;

/// Arguments of `splitter maps`.
#[derive(Args, Clone, Debug)]
pub struct MapsArgs {
    /// Which instance.
    #[command(flatten)]
    pub instance: InstanceArgs,
}

impl MapsArgs {
    /// Prints everything as JSON in a stable order. `weights` has the form that it has in
    /// `/config_dump`; without a running instance there is no `wanted`.
    ///
    /// # Errors
    /// When nothing is pinned, or a map cannot be read.
    pub fn run(self) -> anyhow::Result<()> {
        let pinned = Pinned::open(&self.instance.pin.pin_dir)?;
        let mut out = std::io::stdout().lock();
        let dump = match self.instance.ask(Some(&pinned)) {
            Ok(dump) => Some(dump),
            Err(error) => {
                writeln!(
                    std::io::stderr(),
                    "note: nobody says which weights the objects ask for: {error:#}"
                )?;
                None
            }
        };
        writeln!(out, "{:#}", maps(&pinned, dump.as_ref())?)?;
        Ok(())
    }
}

fn maps(pinned: &Pinned, dump: Option<&Dump>) -> anyhow::Result<Value> {
    let (config, settings) = pinned.config()?;
    let ranges = pinned.ranges()?.into_iter();
    let ranges = ranges.map(|(range, kind)| json!({"range": range.to_string(), "of": kind.name()}));
    let listeners = pinned.listeners()?.into_iter().map(|listener| {
        let fallback = Fallback::from_code(listener.value.fallback).name();
        json!({"addr": listener.addr, "listener": listener.value.listener, "fallback": fallback})
    });
    let pools = pinned.pools()?.into_iter().map(|(index, addr, info)| {
        json!({
            "index": index,
            "addr": addr,
            "pool": Pool::from_code(info.pool).name(),
            "cookie": info.cookie,
            "pid": info.pid,
            "generation": info.generation,
        })
    });
    let counts = pinned.counts()?;
    let counts = counts.all().filter(|(.., count)| count.count > 0);
    let counts = counts.map(|(class, reason, count)| {
        let class = class.map_or("none", Class::name);
        json!({"class": class, "reason": reason, "count": count.count, "bytes": count.bytes})
    });
    Ok(json!({
        "pin_dir": pinned.dir(),
        "config": {"epoch": config.epoch, "pid": config.pid, "settings": in_words(&settings)},
        "ranges": ranges.collect::<Vec<_>>(),
        "listeners": listeners.collect::<Vec<_>>(),
        "pools": pools.collect::<Vec<_>>(),
        "counters": counts.collect::<Vec<_>>(),
        "connects": connects(pinned)?,
        "connect_counters": connect_counters(pinned)?,
        "weights": weights(pinned, dump)?,
    }))
}

/// The Services that are split where processes connect to them.
fn connects(pinned: &Pinned) -> anyhow::Result<Vec<Value>> {
    let all = pinned.connects()?.into_iter().map(|it| {
        let by = match it.by {
            by if by == ConnectBy::Client as u32 => "source-address",
            _ => "connection",
        };
        json!({
            "addr": it.addr,
            "protocol": it.protocol,
            "slot": it.slot,
            "split_by": by,
            "endpoints": it.endpoints,
        })
    });
    Ok(all.collect())
}

fn connect_counters(pinned: &Pinned) -> anyhow::Result<Value> {
    let counts = pinned.connect_counts()?.into_iter();
    let counts = counts.filter(|(_, count)| *count > 0);
    let counts = counts.map(|(reason, count)| (reason.to_owned(), json!(count)));
    Ok(Value::Object(counts.collect::<Map<_, _>>()))
}

fn in_words(settings: &Settings) -> Value {
    let object = |pairs: Vec<(&str, Value)>| {
        let pairs = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    let by_class = |value: &dyn Fn(usize) -> Value| {
        let classes = Class::ALL.into_iter().enumerate();
        object(
            classes
                .map(|(index, class)| (class.name(), value(index)))
                .collect(),
        )
    };
    let spoof = Spoof::ALL.into_iter().zip(settings.spoof);
    let spoof = spoof.map(|(rule, code)| (rule.name(), SpoofAction::from_code(code).name().into()));
    let cpus = Pool::ALL.into_iter().zip(&settings.cpus);
    let cpus = cpus.map(|(pool, set)| {
        let cpus = set.cpu.iter().take(set.count as usize);
        (pool.name(), cpus.copied().collect::<Vec<_>>().into())
    });
    let external = settings.external.iter().take(settings.externals as usize);
    json!({
        "native_routing": settings.native_routing != 0,
        "external_interfaces": external.collect::<Vec<_>>(),
        "spoof": object(spoof.collect()),
        "class_pool": by_class(&|class| Pool::from_code(settings.pool[class]).name().into()),
        "source_syn_limit": limit(settings.source_syn),
        "source_packet_limit": limit(settings.source_packets),
        "class_syn_limit": by_class(&|class| limit(settings.class_syn[class])),
        "class_packet_limit": by_class(&|class| limit(settings.class_packets[class])),
        "pool_cpus": object(cpus.collect()),
    })
}

fn limit(limit: Limit) -> Value {
    match limit.rate {
        0 => Value::Null,
        rate => json!({"rate": rate, "burst": limit.burst}),
    }
}

/// The slots that hold anything, with the names that lie beside them.
fn weights(pinned: &Pinned, dump: Option<&Dump>) -> anyhow::Result<Vec<Value>> {
    let names = pinned.names()?;
    let table = &pinned.splits.table;
    let wanted = |slot: u32| {
        let mut splits = dump.into_iter().flat_map(|dump| &dump.weights);
        splits.find(|split| split.slot == Some(slot))
    };
    let used = (0..table.len()).filter(|slot| table.read(SlotId(*slot)).count > 0);
    let splits = used.map(|slot| split(pinned, slot, names.get(&slot), wanted(slot)));
    Ok(splits.collect())
}

fn split(
    pinned: &Pinned,
    slot: u32,
    name: Option<&PinnedName>,
    wanted: Option<&SplitDump>,
) -> Value {
    let held = pinned.splits.table.read(SlotId(slot));
    let chosen = pinned.splits.stats.read(SlotId(slot));
    let variants = held.variants.iter().zip(chosen).take(held.count as usize);
    let variants = variants.enumerate().map(|(index, (variant, chosen))| {
        let wanted = wanted.and_then(|split| split.variants.get(index));
        json!({
            "name": name.and_then(|name| name.variants.get(index)),
            "wanted": wanted.map(|variant| variant.wanted),
            "live": variant.weight,
            "chosen": chosen,
            "backend": variant.backend,
        })
    });
    json!({
        "location": name.map(|name| &name.location),
        "slot": slot,
        "generation": held.generation,
        "variants": variants.collect::<Vec<_>>(),
    })
}
