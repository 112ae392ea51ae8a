/// What a family's samples mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bound, with sum and count.
    Histogram,
}

impl MetricKind {
    /// The word of a `# TYPE` line.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// Name, kind and meaning of a metric family. Declared once as a `static` or `const` by the module
/// that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The full name.
    pub name: &'static str,
    /// One sentence for the `# HELP` line.
    pub help: &'static str,
    /// What its samples mean.
    pub kind: MetricKind,
}

impl Family {
    /// A counter; own names end in `_total`.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Family {
            name,
            help,
            kind: MetricKind::Counter,
        }
    }

    /// A gauge.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Family {
            name,
            help,
            kind: MetricKind::Gauge,
        }
    }

    /// A histogram.
    pub const fn histogram(name: &'static str, help: &'static str) -> Self {
        Family {
            name,
            help,
            kind: MetricKind::Histogram,
        }
    }

    /// Whether its samples carry the labels `controller_namespace`, `controller_class` and
    /// `controller_pod`: those of ingress-nginx do, as its dashboards select by them.
    pub(crate) fn has_controller_labels(&self) -> bool {
        self.name.starts_with("nginx_ingress_controller_")
    }
}
