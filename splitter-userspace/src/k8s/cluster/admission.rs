//! What the cluster says now, for the review of one Ingress.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::config_map::Followed;
use super::{Cluster, Stores, secrets, sourced};
use crate::config::ClassSettings;
use crate::k8s::admission::{Opinion, review};
use crate::k8s::names::Names;
use crate::k8s::objects::Objects;
use crate::model::{KeySource, UserLayout};

/// What is looked for in Secrets that annotations name.
const ENTRIES: [&str; 3] = ["ca.crt", UserLayout::FILE_KEY, KeySource::ENTRY];

/// Reviews Ingresses among what the cluster says at the moment. Cheap to clone.
#[derive(Clone)]
pub struct Reviewer {
    stores: Stores,
    config_map: Option<Followed>,
    class: ClassSettings,
    allow_local: bool,
}

impl Cluster {
    /// Reviews Ingresses by these settings; what the ConfigMap says comes on top. `allow_local` as in
    /// [`Names`].
    pub fn reviewer(&self, class: &ClassSettings, allow_local: bool) -> Reviewer {
        Reviewer {
            stores: self.stores.clone(),
            config_map: self.config_map.clone(),
            class: class.clone(),
            allow_local,
        }
    }
}

impl Reviewer {
    /// What is thought of `new`, which is to replace `old`. May take some milliseconds.
    pub fn review(&self, new: Ingress, old: Option<&Ingress>) -> Opinion {
        // Before everything was read nothing can be said.
        if !self.stores.are_filled() {
            return Opinion::default();
        }
        let mut class = self.class.clone();
        if let Some(followed) = &self.config_map {
            class.defaults = followed.defaults().0;
        }
        let named = [Some(&new), old];
        let objects = Objects {
            ingresses: self.stores.ingresses.rows(),
            classes: self.stores.classes.rows().iter().cloned().collect(),
            services: self.stores.services.rows(),
            slices: self.stores.slices.rows(),
            secrets: sourced(secrets(named.into_iter().flatten())),
            config_maps: sourced(config_maps(named.into_iter().flatten())),
            // Nobody is asked for addresses here; what a name says by itself counts.
            names: Names {
                allow_local: self.allow_local,
                ..Names::default()
            },
            class_by_name_only: true,
        };
        review(objects, new, old, &class)
    }
}

/// Something in the place of each Secret that is named. What is in it is its own business, and a
/// fault of it none of the Ingress's.
fn secrets<'a>(ingresses: impl Iterator<Item = &'a Ingress>) -> Vec<Arc<Secret>> {
    let stand_in = |key| {
        let data = ENTRIES.map(|name| (name.to_owned(), ByteString(Vec::from(*b"-"))));
        Arc::new(Secret {
            metadata: metadata(key),
            data: Some(data.into()),
            ..Secret::default()
        })
    };
    let names = secrets::named(ingresses);
    names.into_iter().map(stand_in).collect()
}

/// The same for ConfigMaps.
fn config_maps<'a>(ingresses: impl Iterator<Item = &'a Ingress>) -> Vec<Arc<ConfigMap>> {
    let stand_in = |key| {
        let data = [(KeySource::ENTRY.to_owned(), "-".to_owned())];
        Arc::new(ConfigMap {
            metadata: metadata(key),
            data: Some(data.into()),
            ..ConfigMap::default()
        })
    };
    let names = secrets::named_maps(ingresses);
    names.into_iter().map(stand_in).collect()
}

fn metadata((namespace, name): secrets::Key) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_string()),
        name: Some(name.to_string()),
        ..ObjectMeta::default()
    }
}
