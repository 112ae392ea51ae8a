//! Steering in words: for the log, `/config_dump` and `splitter status`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::PoolSettings;
use crate::dataplane::{ProgramReport, Report};

/// Says what loading did.
pub fn log(mode: &str, report: &Report) {
    let text = |program: &ProgramReport| {
        let (name, id, verified) = (program.name, program.id, program.verified);
        format!("{name} (id {id}, {verified} instructions verified)")
    };
    let programs: Vec<_> = report.programs.iter().map(text).collect();
    let nics = report.interfaces.iter();
    let nics: Vec<_> = nics
        .map(|(name, xdp)| format!("{name} (xdp {xdp})"))
        .collect();
    tracing::info!(
        mode,
        kernel = report.kernel,
        programs = programs.join(", "),
        interfaces = nics.join(", "),
        pin_dir = %report.pin_dir.display(),
        "steering"
    );
}

/// What a pool has.
pub fn pool(name: &str, pool: &PoolSettings) -> Value {
    let seconds = |time: Duration| time.as_secs_f64();
    let PoolSettings {
        workers,
        timeouts,
        limits,
    } = pool;
    json!({
        "name": name,
        "workers": workers,
        "max_connections": limits.max_connections,
        "max_requests": limits.max_requests,
        "timeouts_seconds": {
            "connect": seconds(timeouts.connect),
            "read": seconds(timeouts.read),
            "send": seconds(timeouts.send),
            "header": seconds(timeouts.header),
            "keep_alive": seconds(timeouts.keep_alive),
            "upstream_idle": seconds(timeouts.upstream_idle),
            "tunnel": seconds(timeouts.tunnel),
        },
    })
}

/// What was loaded, and where it is attached.
pub fn kernel(report: &Report) -> Value {
    let programs = report.programs.iter().map(
        |program| json!({"name": program.name, "id": program.id, "verified": program.verified}),
    );
    let nics = report.interfaces.iter();
    let nics = nics.map(|(name, xdp)| json!({"name": name, "xdp": xdp}));
    json!({
        "release": report.kernel,
        "pin_dir": report.pin_dir,
        "splits_map": report.splits,
        "programs": programs.collect::<Vec<_>>(),
        "interfaces": nics.collect::<Vec<_>>(),
    })
}
