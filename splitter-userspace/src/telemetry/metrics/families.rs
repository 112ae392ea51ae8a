//! Every family that more than one module needs to know. Those of ingress-nginx keep its names,
//! kinds and labels, because Flagger and the public dashboards query them.

use super::Family;

pub(crate) const REQUESTS: Family = Family::counter(
    "nginx_ingress_controller_requests",
    "Requests answered, by the main Ingress that owns their location",
);
pub(crate) const REQUEST_DURATION: Family = Family::histogram(
    "nginx_ingress_controller_request_duration_seconds",
    "Time from a request's head to the last byte of its answer",
);
pub(crate) const RESPONSE_DURATION: Family = Family::histogram(
    "nginx_ingress_controller_response_duration_seconds",
    "Time from the choice of the endpoint to the last byte of its response",
);
pub(crate) const HEADER_DURATION: Family = Family::histogram(
    "nginx_ingress_controller_header_duration_seconds",
    "Time from the choice of the endpoint to the head of its response",
);
pub(crate) const CONNECT_DURATION: Family = Family::histogram(
    "nginx_ingress_controller_connect_duration_seconds",
    "Time to connect to the endpoint; 0 when a kept connection was used",
);
pub(crate) const REQUEST_SIZE: Family = Family::histogram(
    "nginx_ingress_controller_request_size",
    "Bytes of a request, head and body",
);
pub(crate) const RESPONSE_SIZE: Family = Family::histogram(
    "nginx_ingress_controller_response_size",
    "Bytes of a response body sent to the client",
);
pub(crate) const BYTES_SENT: Family = Family::histogram(
    "nginx_ingress_controller_bytes_sent",
    "Bytes of a response body sent to the client; deprecated, use response_size",
);
pub(crate) const PROCESS_CONNECTIONS: Family = Family::gauge(
    "nginx_ingress_controller_nginx_process_connections",
    "Client connections now, by state: active is all, writing has a request, waiting has none",
);
pub(crate) const PROCESS_CONNECTIONS_TOTAL: Family = Family::counter(
    "nginx_ingress_controller_nginx_process_connections_total",
    "Client connections so far, by state: accepted is all, handled is those not refused",
);
pub(crate) const PROCESS_REQUESTS_TOTAL: Family = Family::counter(
    "nginx_ingress_controller_nginx_process_requests_total",
    "Requests so far",
);
pub(crate) const PROCESS_CPU: Family = Family::counter(
    "nginx_ingress_controller_nginx_process_cpu_seconds_total",
    "CPU time used by the process, in seconds",
);
pub(crate) const PROCESS_RESIDENT: Family = Family::gauge(
    "nginx_ingress_controller_nginx_process_resident_memory_bytes",
    "Resident memory of the process, in bytes",
);
pub(crate) const PROCESS_VIRTUAL: Family = Family::gauge(
    "nginx_ingress_controller_nginx_process_virtual_memory_bytes",
    "Virtual memory of the process, in bytes",
);
pub(crate) const PROCESS_START: Family = Family::gauge(
    "nginx_ingress_controller_nginx_process_oldest_start_time_seconds",
    "Start of the process, in seconds since 1970-01-01",
);
pub(crate) const RELOADS: Family = Family::counter(
    "nginx_ingress_controller_success",
    "Configurations applied so far",
);
pub(crate) const RELOAD_ERRORS: Family = Family::counter(
    "nginx_ingress_controller_errors",
    "Configurations that could not be applied",
);
pub(crate) const LAST_RELOAD_SUCCESSFUL: Family = Family::gauge(
    "nginx_ingress_controller_config_last_reload_successful",
    "1 when the last configuration could be applied, else 0",
);
pub(crate) const LAST_RELOAD_TIMESTAMP: Family = Family::gauge(
    "nginx_ingress_controller_config_last_reload_successful_timestamp_seconds",
    "When a configuration was last applied, in seconds since 1970-01-01",
);

/// What every request really met.
pub(crate) const TRUTH: Family = Family::counter(
    "splitter_requests_total",
    "Requests, by the location they belong to and the Ingress, Service and variant chosen for them",
);
pub(crate) const FAULTS: Family = Family::counter(
    "splitter_faults_total",
    "Answers made by the proxy itself and refusals before there was a request, by name",
);
pub(crate) const RETRIES: Family = Family::counter(
    "splitter_retries_total",
    "Further endpoints tried after the first one of a request",
);
pub(crate) const CONNECTIONS_OPEN: Family =
    Family::gauge("splitter_connections_open", "Client connections now");
pub(crate) const CONNECTIONS_ACCEPTED: Family = Family::counter(
    "splitter_connections_accepted_total",
    "Client connections accepted, those refused afterwards among them",
);
pub(crate) const CONNECTIONS_REFUSED: Family = Family::counter(
    "splitter_connections_refused_total",
    "Client connections closed at once because the pool was at its limit",
);
pub(crate) const REQUESTS_OPEN: Family =
    Family::gauge("splitter_requests_in_flight", "Requests being answered now");
pub(crate) const SERIES: Family = Family::gauge(
    "splitter_metrics_series",
    "Label sets held for requests, by family, added up over the workers",
);
pub(crate) const SERIES_DROPPED: Family = Family::counter(
    "splitter_metrics_dropped_total",
    "Observations left out because the limit of label sets was reached, by family",
);
pub(crate) const GENERATION: Family = Family::gauge(
    "splitter_config_generation",
    "Generation of the routing state in use",
);
pub(crate) const RELOAD_TOTAL: Family = Family::counter(
    "splitter_config_reloads_total",
    "Configurations applied or failed, by result",
);
pub(crate) const PROBLEMS: Family =
    Family::gauge("splitter_problems", "Faults in objects now, by severity");
pub(crate) const VARIANT_WEIGHT: Family = Family::gauge(
    "splitter_variant_weight",
    "Weight in use of each variant, for locations that have a canary",
);
pub(crate) const BUILD_INFO: Family =
    Family::gauge("splitter_build_info", "Always 1; the version is a label");
pub(crate) const LOG_DROPPED: Family = Family::counter(
    "splitter_access_log_dropped_total",
    "Access log lines lost, by cause: queue-full or write-failed",
);

/// When the certificate of a host expires.
pub const SSL_EXPIRE_TIME: Family = Family::gauge(
    "nginx_ingress_controller_ssl_expire_time_seconds",
    "When the certificate that a host is served with expires, in seconds since 1970-01-01",
);
/// What the certificate of a host is.
pub const SSL_CERTIFICATE_INFO: Family = Family::gauge(
    "nginx_ingress_controller_ssl_certificate_info",
    "Always 1; the labels say which certificate a host is served with",
);
/// Handshakes on TLS listeners: pool, version, group, result (full, resumed, failed), reason.
pub const TLS_HANDSHAKES: Family = Family::counter(
    "splitter_tls_handshakes_total",
    "TLS handshakes with clients, by version, key exchange group, result and reason of a failure",
);
/// Watches of the Kubernetes API that have failed, label `kind`.
pub const WATCH_FAILURES: Family = Family::counter(
    "splitter_watch_failures_total",
    "Failures in following the Kubernetes API, by kind of object",
);

/// Whether this instance is the one that writes to the cluster.
pub const LEADS: Family = Family::gauge(
    "splitter_leader",
    "1 for the instance that writes the status of Ingresses and Events",
);

/// Instances that are ready, as far as their pods say so; 0 where that is not known.
pub const READY_INSTANCES: Family = Family::gauge(
    "splitter_ready_instances",
    "Instances whose pods are ready, as this one sees them",
);

/// What was written to the cluster, labels `what` (status, event) and `result` (written, failed).
pub const OBJECT_WRITES: Family = Family::counter(
    "splitter_object_writes_total",
    "Statuses of Ingresses and Events written by this instance",
);

/// Which steering is in use: 1 for the mode in label `mode`.
pub const STEERING_MODE: Family = Family::gauge(
    "splitter_steering_mode",
    "1 for the way connections reach the pools",
);
/// Whether connections of processes to Services' own addresses are split: 1 for the state in label
/// `state`: `off`, `waiting`, `attached`, `aside`.
pub const CONNECT_HOOKS: Family = Family::gauge(
    "splitter_connect_hooks",
    "1 for what became of the hooks for connections to Services: attached; waiting for a Service that \
     is split; aside, for a reason that the log and splitter status have; or off",
);
/// What could not be written of how connections of processes are split.
pub const CONNECT_FAILURES: Family = Family::counter(
    "splitter_connect_failures_total",
    "Writes of how connections to Services are split that the kernel refused; the Service is left to the \
     cluster until they succeed, which is tried every 5 s",
);
/// What became of connections of processes to Services that are split, label `reason`.
pub const CONNECTS: Family = Family::counter(
    "splitter_connects_total",
    "Connections and datagrams of processes of the node to Services that are split, by what became of \
     them",
);
/// Interim answers of backends, labels `pool` and `result`.
pub const INTERIM_ANSWERS: Family = Family::counter(
    "splitter_interim_answers_total",
    "Interim answers (1xx) of backends, by result: passed to the client, or dropped as it could not \
     take them (HTTP/2, or an answer before it still on its way)",
);
/// Long answers that were to go through a pipe, labels `pool` and `result`: `taken`, `failed`,
/// `busy`.
pub const PIPES: Family = Family::counter(
    "splitter_pipes_total",
    "Long answers in the clear, by whether they went through a pipe of the kernel's: taken; or failed, \
     or busy (a worker has 128 in use), after which they were copied",
);
/// Fetches of keys that tokens are signed with, label `result`: `ok`, `failed`.
pub const KEY_FETCHES: Family = Family::counter(
    "splitter_jwks_fetches_total",
    "Fetches of the keys that tokens are signed with, by result: ok or failed",
);
/// Successors that asked for the listening sockets, label `result`: `given`, `broken-off`.
pub const HAND_OVERS: Family = Family::counter(
    "splitter_hand_overs_total",
    "Successors that asked for the listening sockets, by result: given, or broken-off, after which \
     this instance went on",
);
/// Times that the NICs that lead outside became others, label `result`: `moved`, `without-xdp`.
pub const INTERFACE_CHANGES: Family = Family::counter(
    "splitter_interface_changes_total",
    "Times that other network interfaces led outside, by result: moved, or without-xdp",
);
/// Endpoints taken out of the choice for a while because they refused, label `pool`.
pub const ENDPOINT_EJECTIONS: Family = Family::counter(
    "splitter_endpoint_ejections_total",
    "Endpoints left out for a while because they refused",
);
/// Copies of requests for canaries, labels `pool` and `result`: `answered`, `failed`, `dropped` (too
/// many were under way), `unfit` (it has a body or asks for another protocol: it is not copied).
pub const MIRRORED: Family = Family::counter(
    "splitter_mirrored_requests_total",
    "Copies of requests for canaries, by what became of them",
);
/// Clients that a limit forgot although they had used some of it.
pub const LIMIT_EVICTIONS: Family = Family::counter(
    "splitter_limit_evictions_total",
    "Clients of rate limits forgotten early because the table was full; they start anew",
);
/// Splits whose weights somebody changed past the objects.
pub const WEIGHT_OVERRIDES: Family = Family::gauge(
    "splitter_weight_overrides",
    "Splits whose weights in the map are not those of the objects",
);
/// Packets that XDP saw: class, verdict, reason.
pub const XDP_PACKETS: Family = Family::counter(
    "splitter_xdp_packets_total",
    "Packets on the NICs, by class of the source, verdict (pass, drop) and reason",
);
/// Bytes of the same.
pub const XDP_BYTES: Family = Family::counter(
    "splitter_xdp_bytes_total",
    "Bytes of the packets on the NICs, by class of the source, verdict and reason",
);
/// What XDP noticed without acting on it: class, rule.
pub const XDP_NOTICED: Family = Family::counter(
    "splitter_xdp_noticed_total",
    "Packets whose source cannot be real, counted by a rule that does not drop, by class and rule",
);
/// Look-ups of listeners: class, reason.
pub const STEER: Family = Family::counter(
    "splitter_steer_total",
    "Connections looked up by sk_lookup, by class of the caller and what became of them",
);
/// Connections and UDP sessions given to a Variant: namespace, service, port, protocol, variant.
pub(crate) const L4_CONNECTIONS: Family = Family::counter(
    "splitter_l4_connections_total",
    "Connections and UDP sessions that were given to an endpoint, by Service port and variant",
);
/// Those that are open, with the same labels.
pub(crate) const L4_OPEN: Family = Family::gauge(
    "splitter_l4_open_connections",
    "Connections and UDP sessions open now, by Service port and variant",
);
/// Bytes, with the same labels and `direction`: `in` from clients, `out` to them.
pub(crate) const L4_BYTES: Family = Family::counter(
    "splitter_l4_bytes_total",
    "Bytes carried, by Service port, variant and direction (in from clients, out to them)",
);
/// Packets that XDP forwarded, with the same labels.
pub(crate) const L4_PACKETS: Family = Family::counter(
    "splitter_l4_packets_total",
    "Packets forwarded by XDP, by Service port, variant and direction",
);
/// Packets for such ports that XDP saw, by class and reason.
pub const L4_XDP: Family = Family::counter(
    "splitter_l4_xdp_packets_total",
    "Packets for TCP and UDP services that XDP forwarded or left to user space, by class and reason",
);
/// What could not be written for XDP to forward by.
pub const L4_XDP_FAILURES: Family = Family::counter(
    "splitter_l4_xdp_failures_total",
    "What could not be set up for XDP to forward; it is tried again every 5 seconds",
);
/// Whether XDP forwards.
pub const L4_XDP_STATE: Family = Family::gauge(
    "splitter_l4_xdp",
    "Whether XDP forwards what TCP and UDP services get: 1 for the state that holds",
);
/// Connections that a canary without an Endpoint left to stable, with the same labels but `variant`.
pub(crate) const L4_FALLBACKS: Family = Family::counter(
    "splitter_l4_fallbacks_total",
    "Connections left to the Service itself because the canary chosen by weight has no endpoint",
);
/// Connections that got no Endpoint: namespace, service, port, protocol, reason.
pub(crate) const L4_REFUSED: Family = Family::counter(
    "splitter_l4_refused_total",
    "Connections and datagrams that got no endpoint, by Service port and reason",
);
/// Connections that were reset: namespace, service, port, protocol, reason.
pub(crate) const L4_CUT: Family = Family::counter(
    "splitter_l4_cut_total",
    "Connections and UDP sessions that did not end by themselves, by Service port and reason",
);
/// The weights in force, labels as for the connections.
pub(crate) const L4_WEIGHT: Family = Family::gauge(
    "splitter_l4_variant_weight",
    "Weight in force of each variant of a split Service port",
);
