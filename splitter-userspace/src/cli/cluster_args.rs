//! Flags of the Kubernetes API: which one, what of it, and what is written back.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::values;
use crate::config::{ClusterSettings, NamespacedName, StatusSettings};

/// What is read from the Kubernetes API, and what is written there. Without an effect on
/// `--manifests`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Kubernetes")]
pub struct ClusterArgs {
    /// File with the API server's address and our identity [default: those that a pod is given]
    #[arg(
        long,
        env = "SPLITTER_KUBECONFIG",
        value_name = "FILE",
        conflicts_with = "manifests"
    )]
    pub kubeconfig: Option<PathBuf>,

    /// Read Ingresses, Services, EndpointSlices and Secrets of this namespace only
    #[arg(long, env = "SPLITTER_WATCH_NAMESPACE", value_name = "NAME", value_parser = name)]
    pub watch_namespace: Option<String>,

    /// Read Ingresses with these labels only, such as team=shop,stage!=test
    #[arg(long, env = "SPLITTER_INGRESS_SELECTOR", value_name = "LABELS")]
    pub ingress_selector: Option<String>,

    /// ConfigMap of ingress-nginx with what holds where an Ingress says nothing; followed
    #[arg(
        long,
        env = "SPLITTER_CONFIGMAP",
        value_name = "NAMESPACE/NAME",
        conflicts_with_all = ["manifests", "defaults"]
    )]
    pub configmap: Option<NamespacedName>,

    /// Node that this runs on: its addresses are our own, its pods are near
    #[arg(long, env = "SPLITTER_NODE_NAME", value_name = "NAME", value_parser = name)]
    pub node_name: Option<String>,

    /// Write our addresses into the status of Ingresses
    #[arg(
        long,
        env = "SPLITTER_UPDATE_STATUS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub update_status: bool,

    /// Take them out again when the last instance stops
    #[arg(
        long,
        env = "SPLITTER_UPDATE_STATUS_ON_SHUTDOWN",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub update_status_on_shutdown: bool,

    /// Service whose addresses are written [default: the addresses of the nodes]
    #[arg(long, env = "SPLITTER_PUBLISH_SERVICE", value_name = "NAMESPACE/NAME")]
    pub publish_service: Option<NamespacedName>,

    /// Address or host name to write, before any Service; repeatable
    #[arg(long, env = "SPLITTER_PUBLISH_STATUS_ADDRESS", value_name = "ADDRESS", value_delimiter = ',', value_parser = address)]
    pub publish_status_address: Vec<String>,

    /// Write internal addresses of nodes, not external ones
    #[arg(
        long,
        env = "SPLITTER_REPORT_NODE_INTERNAL_IP_ADDRESS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true"
    )]
    pub report_node_internal_ip_address: bool,

    /// Write Events about what is wrong with objects
    #[arg(
        long,
        env = "SPLITTER_EVENTS",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub events: bool,

    /// Name of the Lease that says which instance writes
    #[arg(long, env = "SPLITTER_ELECTION_ID", value_name = "NAME", default_value = StatusSettings::ELECTION_ID, value_parser = name)]
    pub election_id: String,

    /// For how long a Lease that nobody renews is left to its holder, at least 3s
    #[arg(
        long,
        env = "SPLITTER_ELECTION_TTL",
        value_name = "TIME",
        default_value = "30s",
        value_parser = ttl
    )]
    pub election_ttl: Duration,
}

impl From<ClusterArgs> for ClusterSettings {
    fn from(args: ClusterArgs) -> Self {
        ClusterSettings {
            secrets: Vec::new(),
            config_map: args.configmap,
            config_maps: Vec::new(),
            kubeconfig: args.kubeconfig,
            namespace: args.watch_namespace,
            ingress_selector: args.ingress_selector,
            node_name: args.node_name,
            status: StatusSettings {
                update: args.update_status,
                clear_on_shutdown: args.update_status_on_shutdown,
                publish_service: args.publish_service,
                addresses: args.publish_status_address,
                internal_node_addresses: args.report_node_internal_ip_address,
                events: args.events,
                election_id: args.election_id,
                election_ttl: args.election_ttl,
            },
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    if crate::config::is_name(text) {
        return Ok(text.to_owned());
    }
    Err("expected a name in lower case with digits, - and .".to_owned())
}

/// What the API server takes in a status: an IP address, or a DNS name.
fn address(text: &str) -> Result<String, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    // A name of digits and dots is a mistyped address.
    if crate::config::is_name(text) && text.contains(|c: char| c.is_ascii_alphabetic()) {
        return Ok(text.to_owned());
    }
    Err("expected an IP address or a host name in lower case".to_owned())
}

/// A Lease counts in whole seconds, and is renewed several times within its time.
fn ttl(text: &str) -> Result<Duration, String> {
    let time = values::duration(text)?;
    if time.subsec_nanos() == 0 && (3..=3600).contains(&time.as_secs()) {
        return Ok(time);
    }
    Err("expected whole seconds from 3s to 1h".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[arg(long)]
        manifests: Option<PathBuf>,
        #[arg(long)]
        defaults: Option<PathBuf>,
        #[command(flatten)]
        cluster: ClusterArgs,
    }

    fn parse(args: &[&str]) -> Result<ClusterSettings, String> {
        let all = std::iter::once("x").chain(args.iter().copied());
        let line = Line::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok(line.cluster.into())
    }

    #[test]
    fn nothing_said_is_every_default() {
        let expected = ClusterSettings {
            secrets: Vec::new(),
            config_map: None,
            config_maps: Vec::new(),
            kubeconfig: None,
            namespace: None,
            ingress_selector: None,
            node_name: None,
            status: StatusSettings::default(),
        };
        assert_eq!(parse(&[]).unwrap(), expected);
    }

    #[test]
    fn every_flag_sets_its_field() {
        let expected = ClusterSettings {
            secrets: Vec::new(),
            config_map: Some("in/nginx".parse().unwrap()),
            config_maps: Vec::new(),
            kubeconfig: Some("/k".into()),
            namespace: Some("shop".to_owned()),
            ingress_selector: Some("a=b,c!=d".to_owned()),
            node_name: Some("n1".to_owned()),
            status: StatusSettings {
                update: false,
                clear_on_shutdown: true,
                publish_service: Some("in/edge".parse().unwrap()),
                addresses: ["192.0.2.1", "edge.example", "2001:db8::1"]
                    .map(str::to_owned)
                    .to_vec(),
                internal_node_addresses: true,
                events: false,
                election_id: "l".to_owned(),
                election_ttl: Duration::from_secs(5),
            },
        };
        let found = parse(&[
            "--kubeconfig=/k",
            "--configmap=in/nginx",
            "--watch-namespace=shop",
            "--ingress-selector=a=b,c!=d",
            "--node-name=n1",
            "--update-status=false",
            "--update-status-on-shutdown",
            "--publish-service=in/edge",
            "--publish-status-address=192.0.2.1,edge.example",
            "--publish-status-address=2001:db8:0::1",
            "--report-node-internal-ip-address",
            "--events=false",
            "--election-id=l",
            "--election-ttl=5s",
        ]);
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn what_the_api_server_would_refuse_is_refused_here() {
        for args in [
            ["--watch-namespace=A", "expected a name"],
            ["--publish-service=edge", "namespace and a name"],
            ["--publish-status-address=1.2.3", "expected an IP address"],
            ["--publish-status-address=A_b", "expected an IP address"],
            ["--election-ttl=1s", "from 3s"],
            ["--election-ttl=3500ms", "whole seconds"],
        ] {
            let error = parse(&args[..1]).unwrap_err();
            assert!(error.contains(args[1]), "{args:?}: {error}");
        }
    }

    #[test]
    fn objects_come_from_one_place() {
        let error = parse(&["--manifests=m", "--kubeconfig=k"]).unwrap_err();
        assert!(error.contains("cannot be used with"), "{error}");
    }
}
