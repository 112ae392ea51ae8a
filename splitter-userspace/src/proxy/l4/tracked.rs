//! The open connections of one worker by Service port, so that those whose Endpoint is gone can be told.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::model::L4Key;
use crate::routing::L4Live;

/// All of them.
#[derive(Default)]
pub struct Tracked {
    services: RefCell<HashMap<L4Key, Service>>,
    next: std::cell::Cell<u64>,
}

#[derive(Default)]
struct Service {
    /// What was last looked at; the same again has nothing new to say.
    seen: Option<Arc<L4Live>>,
    open: HashMap<u64, (SocketAddr, Rc<Notify>)>,
}

/// One connection, until it is dropped.
pub struct Track {
    of: Rc<Tracked>,
    key: L4Key,
    number: u64,
    /// Told once when the Endpoint is gone.
    pub gone: Rc<Notify>,
}

impl Tracked {
    /// Notes a connection. Whether its Endpoint [is gone](Self::is_gone) already is not looked at.
    pub fn add(self: &Rc<Self>, live: &Arc<L4Live>, endpoint: SocketAddr) -> Track {
        let key = live.service.key.clone();
        let number = self.next.get();
        self.next.set(number + 1);
        let gone = Rc::new(Notify::new());
        let mut services = self.services.borrow_mut();
        let service = services.entry(key.clone()).or_default();
        service.open.insert(number, (endpoint, Rc::clone(&gone)));
        Track {
            of: Rc::clone(self),
            key,
            number,
            gone,
        }
    }

    /// Whether the present state has the Service port, and not the Endpoint.
    pub fn is_gone(present: &[Arc<L4Live>], key: &L4Key, endpoint: SocketAddr) -> bool {
        find(present, key).is_some_and(|it| !it.keeps(endpoint))
    }

    /// Tells the connections whose Endpoint the present state does not have any more. Those of Services
    /// that it does not have at all are left alone: nothing is known of their Endpoints.
    pub fn look(&self, present: &[Arc<L4Live>]) {
        for (key, service) in self.services.borrow_mut().iter_mut() {
            let Some(live) = find(present, key) else {
                continue;
            };
            if service
                .seen
                .as_ref()
                .is_some_and(|it| Arc::ptr_eq(it, live))
            {
                continue;
            }
            service.seen = Some(Arc::clone(live));
            let open = service.open.values();
            for (_, gone) in open.filter(|(endpoint, _)| !live.keeps(*endpoint)) {
                gone.notify_one();
            }
        }
    }
}

fn find<'l>(present: &'l [Arc<L4Live>], key: &L4Key) -> Option<&'l Arc<L4Live>> {
    let found = present.binary_search_by(|it| it.service.key.cmp(key)).ok();
    present.get(found?)
}

impl Drop for Track {
    fn drop(&mut self) {
        let mut services = self.of.services.borrow_mut();
        if let Some(service) = services.get_mut(&self.key) {
            service.open.remove(&self.number);
            if service.open.is_empty() {
                services.remove(&self.key);
            }
        }
    }
}
