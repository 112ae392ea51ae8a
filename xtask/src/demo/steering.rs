//! What the kernel programs do: an outside client and a pod on the same address, the counters, and
//! weights that are changed in the map.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::backend::Backend;
use super::client::Client;
use super::dump;
use super::instance::Instance;
use super::interrupt::Interrupt;
use super::manifests::{CANARY, HOST, Manifests, STABLE, WEIGHT};
use super::metrics::Metrics;
use super::net::{self, BpfFs, NIC, NODE, Network, OUTSIDE, POD};
use super::report::Align::{Left, Right};
use super::report::{Report, Row};

/// How many requests of each client show something: whole hundreds, over which shares are exact.
const REQUESTS: u32 = 200;
/// The canary's weight after the change.
const CHANGED: u32 = 60;

/// Everything that runs. What is declared first is dropped first.
struct Stage {
    splitter: Instance,
    admin: Client,
    clients: [(&'static str, &'static str, Client); 2],
    pins: PathBuf,
    _manifests: Manifests,
    _backends: Backends,
}

/// The network with backends on its node, which only end when they are told so from there.
struct Backends {
    all: Option<[Backend; 2]>,
    network: Network,
    _bpf: BpfFs,
}

impl Drop for Backends {
    fn drop(&mut self) {
        let all = self.all.take();
        let dropped = self.network.node.run(|| {
            drop(all);
            Ok(())
        });
        if let Err(error) = dropped {
            eprintln!("{error:#}");
        }
    }
}

/// Shows it, or says in one line why not.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt) -> Result<()> {
    report.heading("Steering: the kernel gives each class of callers a pool of its own")?;
    let make = || Ok((Network::make()?, BpfFs::mount()?));
    let Some((network, bpf)) = net::place(report, make)? else {
        return Ok(());
    };
    let mut stage = Stage::set(network, bpf, interrupt)?;
    stage.pools(report)?;
    stage.weights(report)?;
    stage.change(report)?;
    stage.splitter.stop()
}

impl Stage {
    fn set(network: Network, bpf: BpfFs, interrupt: &Interrupt) -> Result<Self> {
        let node = &network.node;
        let backends = node.run(|| Ok([Backend::start(STABLE)?, Backend::start(CANARY)?]))?;
        let manifests = Manifests::write(backends[0].addr(), backends[1].addr())?;
        let base = bpf.path().join("splitter");
        let pin_dir = base.to_string_lossy().into_owned();
        let args = [
            "--http=0.0.0.0:80",
            "--steering=xdp",
            &format!("--interface={NIC}"),
            "--pod-cidr=10.244.0.0/24",
            "--cluster-cidr=10.244.0.0/16",
            &format!("--pin-dir={pin_dir}"),
        ];
        let splitter = node.run(|| Instance::start(manifests.dir(), &args, interrupt))?;
        let http: SocketAddr = format!("{NODE}:80").parse()?;
        let client = |name, addr, place: &net::Namespace| {
            let client = place.run(|| Client::connect(http, interrupt))?;
            Ok::<_, anyhow::Error>((name, addr, client))
        };
        Ok(Stage {
            admin: node.run(|| Client::connect(splitter.admin(), interrupt))?,
            clients: [
                client("outside", OUTSIDE, &network.out)?,
                client("pod", POD, &network.pod)?,
            ],
            splitter,
            pins: base.join("v1"),
            _manifests: manifests,
            _backends: Backends {
                all: Some(backends),
                network,
                _bpf: bpf,
            },
        })
    }

    fn pools(&mut self, report: &mut Report) -> Result<()> {
        self.ask()?;
        let metrics = Metrics::read(&mut self.admin)?;
        let expected = [("north-south", "north-south"), ("east-west", "east-west")];
        let mut rows = Vec::new();
        for ((name, addr, _), (pool, class)) in self.clients.iter().zip(expected) {
            let accepted = "splitter_connections_accepted_total";
            let accepted = metrics.sum(accepted, &[("pool", pool)])?;
            let steered = [("class", class), ("reason", "assigned")];
            let steered = metrics.sum("splitter_steer_total", &steered)?;
            let packets = metrics.sum("splitter_xdp_packets_total", &[("class", class)])?;
            // A pod of this node never comes by the NIC, where XDP counts.
            let counted = (packets > 0) == (class == "north-south");
            rows.push(Row {
                cells: vec![
                    format!("{name} ({addr})"),
                    format!("{NODE}:80"),
                    pool.to_owned(),
                    accepted.to_string(),
                    steered.to_string(),
                    packets.to_string(),
                ],
                holds: accepted == 1 && steered == 1 && counted,
            });
        }
        let columns = [
            ("client", Left),
            ("connects to", Left),
            ("pool", Left),
            ("accepted", Right),
            ("steered by sk_lookup", Right),
            ("packets seen by XDP", Right),
        ];
        report.table(&columns, &rows)?;
        Ok(())
    }

    fn weights(&mut self, report: &mut Report) -> Result<()> {
        report.heading("The map holds the weights: what bpftool reads is what is served")?;
        let (slot, before) = (self.slot()?, self.chosen()?);
        self.dumped(report, slot)?;
        self.shares(report, slot, before, WEIGHT)
    }

    /// Shows what `bpftool map dump` prints of a slot; the others are empty.
    fn dumped(&self, report: &mut Report, slot: u32) -> Result<()> {
        let map = self.map("splits");
        report.line(&format!("bpftool map dump pinned {map}, the slot in use:"))?;
        for line in dump::entry(&map, slot)? {
            report.line(&line)?;
        }
        Ok(())
    }

    fn change(&mut self, report: &mut Report) -> Result<()> {
        report.heading(&format!(
            "A weight changed with bpftool map update, from {WEIGHT} to {CHANGED}: the next requests"
        ))?;
        let (slot, before) = (self.slot()?, self.chosen()?);
        let mut bytes = self.bytes(slot)?;
        for (place, weight) in [(16, 100 - CHANGED), (24, CHANGED)] {
            let weight = weight.to_ne_bytes();
            let field = bytes.get_mut(place..place + weight.len());
            field.context("a slot is longer")?.copy_from_slice(&weight);
        }
        let bytes: Vec<_> = bytes.iter().map(u8::to_string).collect();
        let words = ["update", "pinned", &self.map("splits"), "key"].map(str::to_owned);
        let mut args = vec!["map".to_owned()];
        args.extend(words);
        args.extend(slot.to_ne_bytes().map(|byte| byte.to_string()));
        args.push("value".to_owned());
        args.extend(bytes);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        net::command("bpftool", &args)?;
        self.dumped(report, slot)?;
        self.shares(report, slot, before, CHANGED)?;
        report.line("splitter weight set does the same by name; splitter status shows it")?;
        Ok(())
    }

    /// Sends requests of both clients, and shows weights and observed shares side by side.
    fn shares(
        &mut self,
        report: &mut Report,
        slot: u32,
        before: [u64; 2],
        canary: u32,
    ) -> Result<()> {
        self.ask()?;
        let held = self.lookup("splits", slot)?;
        let after = self.chosen()?;
        let requests = u64::from(2 * REQUESTS);
        let mut rows = Vec::new();
        let sides = [(STABLE, 100 - canary), (CANARY, canary)].into_iter();
        for (index, (name, target)) in sides.enumerate() {
            let weight = held["formatted"]["value"]["variants"][index]["weight"].as_u64();
            let weight = weight.context("bpftool shows no weight")?;
            let chosen = after[index] - before[index];
            rows.push(Row {
                cells: vec![
                    format!("{HOST}/"),
                    slot.to_string(),
                    name.to_owned(),
                    weight.to_string(),
                    format!("{chosen} of {requests}"),
                    format!("{} %", chosen * 100 / requests),
                ],
                holds: weight == u64::from(target) && chosen * 100 == u64::from(target) * requests,
            });
        }
        let columns = [
            ("path", Left),
            ("slot", Right),
            ("variant", Left),
            ("weight in the map", Right),
            ("chosen", Right),
            ("share", Right),
        ];
        report.table(&columns, &rows)?;
        Ok(())
    }

    /// Sends the requests of both clients.
    fn ask(&mut self) -> Result<()> {
        for (_, _, client) in &mut self.clients {
            for _ in 0..REQUESTS {
                client.get(HOST, "/", &[])?;
            }
        }
        Ok(())
    }

    /// The slot of the split of `HOST/`.
    fn slot(&mut self) -> Result<u32> {
        let dump = self.admin.get("splitter", "/config_dump", &[])?;
        let dump: Value = serde_json::from_str(&dump)?;
        let location = format!("{HOST}/ (Prefix)");
        let mut weights = dump["weights"].as_array().into_iter().flatten();
        let split = weights.find(|split| split["location"] == location.as_str());
        let slot = split.and_then(|split| split["slot"].as_u64());
        let slot = slot.with_context(|| format!("{location} has no slot"))?;
        Ok(u32::try_from(slot)?)
    }

    /// How often each side was chosen, by the map of decisions.
    fn chosen(&mut self) -> Result<[u64; 2]> {
        let slot = self.slot()?;
        let stats = self.lookup("split_stats", slot)?;
        let chosen = |index: usize| {
            let count = &stats["formatted"]["value"]["chosen"][index];
            count.as_u64().context("bpftool shows no decisions")
        };
        Ok([chosen(0)?, chosen(1)?])
    }

    fn bytes(&self, slot: u32) -> Result<Vec<u8>> {
        let held = self.lookup("splits", slot)?;
        let bytes = held["value"].as_array().context("bpftool shows no value")?;
        let byte = |byte: &Value| {
            let text = byte.as_str()?.strip_prefix("0x")?;
            u8::from_str_radix(text, 16).ok()
        };
        let bytes: Option<Vec<u8>> = bytes.iter().map(byte).collect();
        bytes.context("bpftool shows other bytes")
    }

    /// One entry of a map, as bpftool prints it.
    fn lookup(&self, map: &str, slot: u32) -> Result<Value> {
        let key = slot.to_ne_bytes().map(|byte| byte.to_string());
        let path = self.map(map);
        let [a, b, c, d] = &key;
        let args = ["-j", "map", "lookup", "pinned", &path, "key", a, b, c, d];
        Ok(serde_json::from_str(&net::command("bpftool", &args)?)?)
    }

    fn map(&self, name: &str) -> String {
        self.pins.join(name).to_string_lossy().into_owned()
    }
}
