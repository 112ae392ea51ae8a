use super::*;
use crate::model::*;
use std::net::SocketAddr;
use std::sync::Arc;
#[derive(Default)]
pub struct Blocks;
pub struct D<'a>(&'a mut fastrand::Rng);
impl Draw for D<'_> {
    fn point(&mut self, total: u32) -> u32 {
        self.0.u32(..total)
    }
}
impl Blocks {
    pub fn draw<'a>(
        &'a mut self,
        _s: Option<SlotId>,
        _w: &Weights,
        r: &'a mut fastrand::Rng,
    ) -> D<'a> {
        D(r)
    }
}
pub struct Balance(u64);
impl Balance {
    pub fn new(s: u64) -> Self {
        Balance(s)
    }
    pub fn pick(
        &mut self,
        b: &Backend,
        tried: &[Option<SocketAddr>],
        _now: u32,
    ) -> Option<Endpoint> {
        self.0 = self.0.wrapping_add(1);
        let n = b.endpoints.len();
        if n == 0 {
            return None;
        }
        (0..n)
            .map(|i| b.endpoints[(self.0 as usize + i) % n])
            .find(|e| !tried.contains(&Some(e.addr)))
    }
    pub fn failed(&mut self, _a: SocketAddr, _n: u32) {}
    pub fn answered(&mut self, _a: SocketAddr) {}
}
pub enum Found {
    Location(LocationId),
    NoHost,
    NoPath(u32),
    Ambiguous,
}
pub struct Router(std::collections::HashMap<String, Vec<(String, LocationId)>>);
impl Router {
    pub fn build(s: &Snapshot) -> Self {
        let mut m = std::collections::HashMap::new();
        for (i, l) in s.locations.iter().enumerate() {
            m.entry(l.key.host.to_string())
                .or_insert_with(Vec::new)
                .push((l.key.path.to_string(), LocationId(i as u32)));
        }
        Router(m)
    }
    pub fn find(&self, h: &str, p: &str) -> Found {
        let Some(v) = self.0.get(h) else {
            return Found::NoHost;
        };
        v.iter()
            .filter(|(x, _)| p.starts_with(x.as_str()))
            .max_by_key(|(x, _)| x.len())
            .map_or(Found::NoPath(0), |(_, i)| Found::Location(*i))
    }
}
pub struct Resolved {
    pub decision: Decision,
    pub backend: BackendId,
}
pub fn decide(s: &Split, _h: &http::HeaderMap, w: &Weights, d: &mut impl Draw) -> Decision {
    if s.variants.len() < 2 {
        return Decision {
            variant: 0,
            reason: Reason::Only,
        };
    }
    Decision {
        variant: w.at(d.point(w.total())),
        reason: Reason::Weight,
    }
}
pub fn resolve(_s: &Snapshot, l: &Arc<Location>, d: Decision) -> Result<Resolved, ()> {
    Ok(Resolved {
        decision: d,
        backend: l.split.variants[d.variant].backend,
    })
}
pub mod host {
    pub fn normalize(s: &str) -> Option<std::borrow::Cow<'_, str>> {
        Some(s.split(':').next().unwrap_or("").into())
    }
}

impl Live {
    pub fn empty() -> Self {
        let s = Arc::new(Snapshot::default());
        Live {
            generation: 0,
            router: Arc::new(Router::build(&s)),
            snapshot: s,
            slots: vec![],
        }
    }
    pub fn next(&self, generation: u64, snapshot: Arc<Snapshot>, slots: Vec<SlotId>) -> Live {
        Live {
            generation,
            router: Arc::new(Router::build(&snapshot)),
            snapshot,
            slots,
        }
    }
}
