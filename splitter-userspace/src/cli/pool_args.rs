//! Flags for what each pool has for itself.

use std::time::Duration;

use clap::Args;
use splitter_common::{POOLS, Pool};

use super::named::{self, MAX_WORKERS, Named, named, one_of, pool};
use super::values::{duration, number};
use crate::config::{Limits, PoolSettings, SettingsError, Timeouts};
use crate::dataplane::CpuSets;

/// The most that a limit of a pool may be.
const MAX_LIMIT: usize = 1_048_576;

/// What one pool has that the other has not. Without effect with `--steering none`, which has one
/// pool for all.
#[derive(Args, Clone, Debug)]
pub struct PoolArgs {
    /// Worker threads of a pool; repeatable [default: --workers for each, or as many as its CPUs]
    #[arg(long, env = "SPLITTER_POOLS", value_name = "POOL=N", value_delimiter = ',', value_parser = size)]
    pub pools: Vec<Named<Pool, usize>>,

    /// What each worker of a pool may have open at a time: connections, requests, handshakes; repeatable [default: as for all]
    #[arg(long, env = "SPLITTER_POOL_LIMIT", value_name = "POOL:WHAT=N", value_delimiter = ',', value_parser = limit)]
    pub pool_limit: Vec<Named<(Pool, PoolLimit), usize>>,

    /// A timeout of one pool, named as the flag without -timeout, e.g. north-south:read=10s; repeatable [default: as for all]
    #[arg(long, env = "SPLITTER_POOL_TIMEOUT", value_name = "POOL:WHAT=TIME", value_delimiter = ',', value_parser = timeout)]
    pub pool_timeout: Vec<Named<(Pool, PoolTimeout), Duration>>,
}

/// What holds for a pool that is given nothing of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct General {
    /// Threads, if somebody said how many.
    pub workers: Option<usize>,
    /// Threads where nobody did.
    pub usable_cpus: usize,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much there may be of things.
    pub limits: Limits,
}

/// What `--pool-limit` limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolLimit {
    /// Client connections.
    Connections,
    /// Requests in hand.
    Requests,
    /// TLS handshakes that are open.
    Handshakes,
}

impl PoolLimit {
    const ALL: [PoolLimit; 3] = [
        PoolLimit::Connections,
        PoolLimit::Requests,
        PoolLimit::Handshakes,
    ];

    fn name(self) -> &'static str {
        match self {
            PoolLimit::Connections => "connections",
            PoolLimit::Requests => "requests",
            PoolLimit::Handshakes => "handshakes",
        }
    }

    fn of(self, limits: &mut Limits) -> &mut usize {
        match self {
            PoolLimit::Connections => &mut limits.max_connections,
            PoolLimit::Requests => &mut limits.max_requests,
            PoolLimit::Handshakes => &mut limits.max_handshakes,
        }
    }
}

/// Which time `--pool-timeout` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolTimeout {
    /// As `--connect-timeout`.
    Connect,
    /// As `--read-timeout`.
    Read,
    /// As `--send-timeout`.
    Send,
    /// As `--header-timeout`.
    Header,
    /// As `--handshake-timeout`.
    Handshake,
    /// As `--keep-alive-timeout`.
    KeepAlive,
    /// As `--upstream-idle-timeout`.
    UpstreamIdle,
    /// As `--tunnel-timeout`.
    Tunnel,
}

impl PoolTimeout {
    const ALL: [PoolTimeout; 8] = [
        PoolTimeout::Connect,
        PoolTimeout::Read,
        PoolTimeout::Send,
        PoolTimeout::Header,
        PoolTimeout::Handshake,
        PoolTimeout::KeepAlive,
        PoolTimeout::UpstreamIdle,
        PoolTimeout::Tunnel,
    ];

    fn name(self) -> &'static str {
        match self {
            PoolTimeout::Connect => "connect",
            PoolTimeout::Read => "read",
            PoolTimeout::Send => "send",
            PoolTimeout::Header => "header",
            PoolTimeout::Handshake => "handshake",
            PoolTimeout::KeepAlive => "keep-alive",
            PoolTimeout::UpstreamIdle => "upstream-idle",
            PoolTimeout::Tunnel => "tunnel",
        }
    }

    fn of(self, timeouts: &mut Timeouts) -> &mut Duration {
        match self {
            PoolTimeout::Connect => &mut timeouts.connect,
            PoolTimeout::Read => &mut timeouts.read,
            PoolTimeout::Send => &mut timeouts.send,
            PoolTimeout::Header => &mut timeouts.header,
            PoolTimeout::Handshake => &mut timeouts.handshake,
            PoolTimeout::KeepAlive => &mut timeouts.keep_alive,
            PoolTimeout::UpstreamIdle => &mut timeouts.upstream_idle,
            PoolTimeout::Tunnel => &mut timeouts.tunnel,
        }
    }
}

impl PoolArgs {
    /// The settings of both pools, by their numbers.
    ///
    /// # Errors
    /// When one thing is given two values.
    pub fn settings(
        &self,
        general: &General,
        cpus: &CpuSets,
    ) -> Result<[PoolSettings; POOLS as usize], SettingsError> {
        let [north_south, east_west] = Pool::ALL.map(|pool| self.of(pool, general, cpus));
        Ok([north_south?, east_west?])
    }

    fn of(
        &self,
        pool: Pool,
        general: &General,
        cpus: &CpuSets,
    ) -> Result<PoolSettings, SettingsError> {
        let workers = named::value("pools", "pool", &self.pools, pool, Pool::name)?;
        // A thread for each CPU that is set apart for the pool, where nobody says otherwise.
        let set = cpus.of[pool as usize].len();
        let usual = if set > 0 { set } else { general.usable_cpus };
        let mut settings = PoolSettings {
            workers: workers.or(general.workers).unwrap_or(usual),
            timeouts: general.timeouts,
            limits: general.limits,
        };
        for limit in PoolLimit::ALL {
            let (key, name) = ((pool, limit), |_| {
                format!("{}:{}", pool.name(), limit.name())
            });
            let value = named::value("pool-limit", "limit", &self.pool_limit, key, name)?;
            let place = limit.of(&mut settings.limits);
            *place = value.unwrap_or(*place);
        }
        for timeout in PoolTimeout::ALL {
            let (key, name) = ((pool, timeout), |_| {
                format!("{}:{}", pool.name(), timeout.name())
            });
            let value = named::value("pool-timeout", "timeout", &self.pool_timeout, key, name)?;
            let place = timeout.of(&mut settings.timeouts);
            *place = value.unwrap_or(*place);
        }
        Ok(settings)
    }
}

/// `north-south=4`.
fn size(text: &str) -> Result<Named<Pool, usize>, String> {
    named(text, pool, number(1..=MAX_WORKERS))
}

/// `east-west:requests=100`.
fn limit(text: &str) -> Result<Named<(Pool, PoolLimit), usize>, String> {
    let what = |text: &str| one_of("a limit", text, PoolLimit::ALL, PoolLimit::name);
    named(text, of_pool(what), number(1..=MAX_LIMIT))
}

/// `east-west:read=5s`.
fn timeout(text: &str) -> Result<Named<(Pool, PoolTimeout), Duration>, String> {
    let what = |text: &str| one_of("a timeout", text, PoolTimeout::ALL, PoolTimeout::name);
    named(text, of_pool(what), duration)
}

/// `POOL:WHAT`.
fn of_pool<W>(
    what: impl Fn(&str) -> Result<W, String>,
) -> impl Fn(&str) -> Result<(Pool, W), String> {
    move |text| {
        let (left, right) = text.split_once(':').unwrap_or((text, ""));
        Ok((pool(left)?, what(right)?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        pools: PoolArgs,
    }

    fn general(workers: Option<usize>) -> General {
        General {
            workers,
            usable_cpus: 7,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }

    fn settings(args: &[&str]) -> Result<[PoolSettings; 2], SettingsError> {
        let line = Line::try_parse_from(["splitter"].iter().chain(args)).unwrap();
        line.pools.settings(&general(None), &CpuSets::default())
    }

    #[test]
    fn a_pool_has_what_it_is_given_and_else_what_all_have() {
        assert_eq!(settings(&[]).unwrap(), [PoolSettings::new(7); 2]);
        let found = settings(&[
            "--pools=east-west=2",
            "--pool-limit=east-west:connections=30,east-west:requests=20",
            "--pool-limit=north-south:requests=10",
            "--pool-timeout=north-south:read=5s,north-south:keep-alive=500ms",
        ]);
        let [mut north_south, mut east_west] = [7, 2].map(PoolSettings::new);
        north_south.limits.max_requests = 10;
        north_south.timeouts.read = Duration::from_secs(5);
        north_south.timeouts.keep_alive = Duration::from_millis(500);
        east_west.limits.max_connections = 30;
        east_west.limits.max_requests = 20;
        assert_eq!(found.unwrap(), [north_south, east_west]);
    }

    #[test]
    fn every_timeout_has_a_flag() {
        for timeout in PoolTimeout::ALL {
            let arg = format!("--pool-timeout=east-west:{}=3ms", timeout.name());
            let mut found = settings(&[&arg]).unwrap()[1].timeouts;
            assert_eq!(*timeout.of(&mut found), Duration::from_millis(3));
            // And no other changes.
            *timeout.of(&mut found) = *timeout.of(&mut Timeouts::default());
            assert_eq!(found, Timeouts::default(), "{arg}");
        }
    }

    #[test]
    fn threads_are_as_many_as_the_cpus_of_the_pool_unless_somebody_says_otherwise() {
        let cpus = CpuSets {
            of: [vec![0, 1, 2], Vec::new()],
        };
        let workers = |args: &[&str], general: General| {
            let line = Line::try_parse_from(["splitter"].iter().chain(args)).unwrap();
            let pools = line.pools.settings(&general, &cpus).unwrap();
            pools.map(|pool| pool.workers)
        };
        assert_eq!(workers(&[], general(None)), [3, 7]);
        assert_eq!(workers(&[], general(Some(4))), [4, 4]);
        let own = ["--pools=north-south=1"];
        assert_eq!(workers(&own, general(Some(4))), [1, 4]);
    }

    #[test]
    fn wrong_texts_say_what_there_is() {
        let wrong = |text| limit(text).unwrap_err();
        assert_eq!(
            wrong("pods:requests=1"),
            "expected a pool: north-south, east-west"
        );
        assert_eq!(
            wrong("east-west=1"),
            "expected a limit: connections, requests, handshakes"
        );
        assert!(wrong("east-west:requests=0").contains("from 1 to"));
        assert!(
            timeout("east-west:idle=1s")
                .unwrap_err()
                .contains("upstream-idle")
        );
        assert!(timeout("east-west:read=0").unwrap_err().contains("30s"));
    }

    #[test]
    fn one_thing_has_one_value() {
        let twice = "--pool-limit=east-west:requests=1,east-west:requests=2";
        let text = settings(&[twice]).unwrap_err().to_string();
        assert!(
            text.starts_with("--pool-limit east-west:requests is given twice, as 1 and as 2"),
            "{text}"
        );
        // Of another pool it is another thing.
        assert!(settings(&["--pool-limit=east-west:requests=1,north-south:requests=2"]).is_ok());
    }
}
