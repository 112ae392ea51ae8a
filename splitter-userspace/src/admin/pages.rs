use http::{Method, StatusCode};

use super::scrape::Scrape;
use super::{AdminState, dump};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

const INDEX: &str = "\
/healthz      200 while the process runs
/readyz       200 when it may be given traffic, else 503 and what it waits for
/metrics      Prometheus metrics
/config_dump  the routing state in use, with the weights now, as JSON
/problems     faults in objects, as JSON
";

/// What is answered.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Page {
    fn text(status: StatusCode, body: impl Into<Vec<u8>>) -> Self {
        Page {
            status,
            kind: TEXT,
            body: body.into(),
        }
    }

    fn json(body: serde_json::Result<Vec<u8>>) -> Self {
        match body {
            Ok(body) => Page {
                status: StatusCode::OK,
                kind: JSON,
                body,
            },
            Err(error) => Self::failed(&error),
        }
    }

    /// The page could not be made.
    pub(super) fn failed(error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "cannot make an admin page");
        let text = format!("cannot make this page: {error}\n");
        Self::text(StatusCode::INTERNAL_SERVER_ERROR, text)
    }
}

/// The pages there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Index,
    Healthz,
    Readyz,
    Metrics,
    ConfigDump,
    Problems,
    NotFound,
    WrongMethod,
}

impl Route {
    pub(super) fn of(method: &Method, path: &str) -> Self {
        if method != Method::GET && method != Method::HEAD {
            return Route::WrongMethod;
        }
        match path {
            "/" => Route::Index,
            "/healthz" => Route::Healthz,
            "/readyz" => Route::Readyz,
            "/metrics" => Route::Metrics,
            "/config_dump" => Route::ConfigDump,
            "/problems" => Route::Problems,
            _ => Route::NotFound,
        }
    }

    /// Whether making the page may take long, so that probes must not wait behind it.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Route::Metrics | Route::ConfigDump | Route::Problems)
    }

    pub(super) fn page(self, state: &AdminState, scrape: &Scrape) -> Page {
        match self {
            Route::Index => Page::text(StatusCode::OK, INDEX),
            Route::Healthz => Page::text(StatusCode::OK, "ok\n"),
            Route::Readyz => readyz(state),
            Route::Metrics => Page {
                kind: PROMETHEUS,
                ..Page::text(StatusCode::OK, scrape.page(state))
            },
            Route::ConfigDump => {
                let live = state.live.borrow().clone();
                Page::json(dump::config(&live, state))
            }
            Route::Problems => {
                let problems = state.problems.borrow().clone();
                Page::json(dump::problems(&problems))
            }
            Route::NotFound => {
                let text = format!("no such page; there are:\n{INDEX}");
                Page::text(StatusCode::NOT_FOUND, text)
            }
            Route::WrongMethod => {
                let text = "only GET and HEAD are answered here\n";
                Page::text(StatusCode::METHOD_NOT_ALLOWED, text)
            }
        }
    }
}

fn readyz(state: &AdminState) -> Page {
    let (ready, text) = state.readiness.report();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Page::text(status, text)
}
