//! Stores without watches.

use kube::runtime::watcher;

use super::Stores;
use super::secrets::Wanted;
use crate::k8s::objects::{Object, Objects, Sourced};

/// The stores of a cluster that nobody watches: for measuring what a change costs without an API
/// server.
#[derive(Default)]
pub struct Shelves {
    stores: Stores,
    wanted: Wanted,
}

impl Shelves {
    /// Takes an object in, as if a watch had said it.
    pub fn apply(&self, object: &Object) {
        match object {
            Object::Ingress(it) => drop(self.stores.ingresses.apply(said(it))),
            Object::IngressClass(it) => drop(self.stores.classes.apply(said(it))),
            Object::Service(it) => drop(self.stores.services.apply(said(it))),
            Object::EndpointSlice(it) => drop(self.stores.slices.apply(said(it))),
            // Those that are named are read one by one.
            Object::Secret(_) | Object::ConfigMap(_) => {}
        }
    }

    /// Everything as it is now.
    pub fn objects(&mut self) -> Objects {
        let ingresses = self.stores.ingresses.rows();
        self.wanted.follow(&ingresses);
        Objects {
            ingresses,
            classes: self.stores.classes.rows().iter().cloned().collect(),
            services: self.stores.services.rows(),
            slices: self.stores.slices.rows(),
            class_by_name_only: true,
            ..Objects::default()
        }
    }
}

fn said<K: Clone>(object: &Sourced<K>) -> watcher::Event<K> {
    watcher::Event::Apply((*object.object).clone())
}
