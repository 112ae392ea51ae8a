//! What the proxy does: weights, rules, a change of weight, and what the metrics say of it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::backend::Backend;
use super::cases::{CHANGED, Case, RULES, SHARES, Seen, Totals};
use super::client::Client;
use super::instance::Instance;
use super::interrupt::Interrupt;
use super::manifests::{
    CANARY, CANARY_LABEL, CANARY_TITLE, HOST, Manifests, NEW_WEIGHT, OTHER_HOST, STABLE, WEIGHT,
};
use super::metrics::Metrics;
use super::report::Align::{Left, Right};
use super::report::{Report, Row};

/// ingress-nginx's counter of requests, which Flagger and the public dashboards query.
const REQUESTS: &str = "nginx_ingress_controller_requests";
/// How long anything may take that is waited for; far more than it does.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const POLL: Duration = Duration::from_millis(1);

/// Everything that runs. What is declared first is dropped first: splitter before its backends.
struct Stage {
    splitter: Instance,
    client: Client,
    admin: Client,
    totals: Totals,
    manifests: Manifests,
    _backends: [Backend; 2],
}

/// Starts backends and splitter, shows, stops them.
pub(super) fn show(report: &mut Report, interrupt: &Interrupt, stay: bool) -> Result<()> {
    let mut stage = Stage::set(interrupt)?;
    report.heading(&format!(
        "splitter at {}; Service {STABLE} (stable) and {CANARY} (canary) with one pod each",
        stage.splitter.http()
    ))?;
    report.line("every request below goes over one and the same client connection")?;
    stage.weights(report)?;
    stage.rules(report)?;
    stage.change(report)?;
    stage.metrics(report)?;
    if stay {
        stage.stay(report, interrupt)?;
    }
    stage.splitter.stop()
}

impl Stage {
    fn set(interrupt: &Interrupt) -> Result<Self> {
        let backends = [Backend::start(STABLE)?, Backend::start(CANARY)?];
        let manifests = Manifests::write(backends[0].addr(), backends[1].addr())?;
        let splitter = Instance::start(
            manifests.dir(),
            &["--http=127.0.0.1:0", "--steering=none"],
            interrupt,
        )?;
        Ok(Stage {
            client: Client::connect(splitter.http(), interrupt)?,
            admin: Client::connect(splitter.admin(), interrupt)?,
            totals: Totals::new(),
            manifests,
            splitter,
            _backends: backends,
        })
    }

    fn weights(&mut self, report: &mut Report) -> Result<()> {
        report.heading(
            "Weights: each host and path has a split of its own (stable / canary, in %)",
        )?;
        self.shares(report, &SHARES)?;
        report.line(&format!(
            "{OTHER_HOST} has no canary and stays on {STABLE}, though {HOST} canaries that Service:"
        ))?;
        report
            .line("here a canary belongs to a host and path; in ingress-nginx, to the Service.")?;
        Ok(())
    }

    fn shares(&mut self, report: &mut Report, cases: &[Case]) -> Result<()> {
        let columns = [
            ("host", Left),
            ("path", Left),
            ("requests", Right),
            ("target", Right),
            ("observed", Right),
        ];
        let mut rows = Vec::new();
        for case in cases {
            let seen = case.run(&mut self.client, &mut self.totals)?;
            rows.push(Row {
                cells: vec![
                    case.host.to_owned(),
                    case.path.to_owned(),
                    case.requests.to_string(),
                    format!("{} / {}", 100 - case.share, case.share),
                    observed(seen),
                ],
                holds: case.holds(seen),
            });
        }
        report.table(&columns, &rows)?;
        Ok(())
    }

    fn rules(&mut self, report: &mut Report) -> Result<()> {
        report.heading("Rules: headers first, then cookies, then the weight")?;
        let columns = [
            ("request", Left),
            ("with", Left),
            ("expected", Left),
            ("observed", Right),
        ];
        let mut rows = Vec::new();
        for case in &RULES {
            let seen = case.run(&mut self.client, &mut self.totals)?;
            let fields: Vec<_> = case
                .fields
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            rows.push(Row {
                cells: vec![
                    format!("{}{}", case.host, case.path),
                    fields.join(", "),
                    expected(case.share),
                    observed(seen),
                ],
                holds: case.holds(seen),
            });
        }
        report.table(&columns, &rows)?;
        Ok(())
    }

    fn change(&mut self, report: &mut Report) -> Result<()> {
        report.heading(&format!(
            "A change: canary-weight of {HOST}/ from {WEIGHT} to {NEW_WEIGHT} in its file"
        ))?;
        self.manifests.set_weight(NEW_WEIGHT)?;
        let begin = Instant::now();
        self.await_metric(
            "splitter_variant_weight",
            &[("host", HOST), ("path", "/"), ("variant", CANARY)],
            NEW_WEIGHT,
        )?;
        let took = begin.elapsed().as_millis();
        report.line(&format!(
            "followed {took} ms after the file was written, without a reload"
        ))?;
        self.shares(report, &[CHANGED])
    }

    fn metrics(&mut self, report: &mut Report) -> Result<()> {
        report.heading(&format!(
            "{REQUESTS} in /metrics, beside what the client saw"
        ))?;
        let columns = [
            ("host", Left),
            ("path", Left),
            ("canary=\"\"", Right),
            ("client", Right),
            (CANARY_TITLE, Right),
            ("client", Right),
        ];
        let mut rows = Vec::new();
        for ((host, path), seen) in self.totals.clone() {
            let mut row = Row {
                cells: vec![host.to_owned(), path.to_owned()],
                holds: true,
            };
            for (canary, wanted) in [("", seen.stable), (CANARY_LABEL, seen.canary)] {
                let labels = [("host", host), ("path", path), ("canary", canary)];
                let counted = self.settled(REQUESTS, &labels, wanted)?;
                row.cells.extend([counted.to_string(), wanted.to_string()]);
                row.holds &= counted == u64::from(wanted);
            }
            rows.push(row);
        }
        report.table(&columns, &rows)?;
        Ok(())
    }

    /// Waits until a metric has a value.
    fn await_metric(&mut self, name: &str, labels: &[(&str, &str)], wanted: u32) -> Result<()> {
        let found = self.settled(name, labels, wanted)?;
        if found != u64::from(wanted) {
            bail!("{name} is {found} and not {wanted} after {PATIENCE:?}");
        }
        Ok(())
    }

    /// The value of a metric once it is as wanted, or after a while whatever it is: a request may
    /// be counted a moment after its answer has arrived.
    fn settled(&mut self, name: &str, labels: &[(&str, &str)], wanted: u32) -> Result<u64> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = Metrics::read(&mut self.admin)?.sum(name, labels)?;
            if found == u64::from(wanted) || Instant::now() >= deadline {
                return Ok(found);
            }
            self.splitter.check()?;
            thread::sleep(POLL);
        }
    }

    /// Goes on serving until somebody has had enough.
    fn stay(&mut self, report: &mut Report, interrupt: &Interrupt) -> Result<()> {
        report.heading("Still serving; Ctrl-C ends it")?;
        report.line(&format!(
            "curl -H 'Host: {HOST}' http://{}/",
            self.splitter.http()
        ))?;
        report.line(&format!("curl http://{}/metrics", self.splitter.admin()))?;
        report.line(&format!(
            "edit {}/canary.yaml",
            self.manifests.dir().display()
        ))?;
        while !interrupt.is_set() {
            self.splitter.check().context("it stopped serving")?;
            thread::sleep(Duration::from_millis(50));
        }
        interrupt.clear();
        Ok(())
    }
}

fn observed(seen: Seen) -> String {
    let all = f64::from(seen.stable + seen.canary);
    let percent = |part: u32| f64::from(part) * 100.0 / all;
    format!("{:.1} / {:.1}", percent(seen.stable), percent(seen.canary))
}

fn expected(share: u32) -> String {
    match share {
        0 => STABLE.to_owned(),
        100 => CANARY.to_owned(),
        share => format!("weight {share}"),
    }
}
