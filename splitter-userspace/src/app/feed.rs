//! Where the objects come from: manifests or the Kubernetes API, behind one face.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;

use super::certificates::secret_ref;
use super::{privileges, process};
use crate::config::{ClassSettings, Identity, NamespacedName, ProcessDefaults, Source};
use crate::k8s::{
    Cluster, ManifestWatcher, Manifests, Names, NodeFacts, Objects, Served, Translation, Translator,
};
use crate::model::{ObjectRef, Problem, SecretData};

/// A source of objects that is being followed.
pub struct Feed {
    source: Followed,
    /// What is known of what was read before; gone while a thread uses it.
    reader: Reader,
}

/// Translates, and adds what flags ask for.
#[derive(Default)]
struct Reader {
    translator: Translator,
    /// The Secrets of the last translation, with those that flags named then, and both together.
    secrets: Option<(Secrets, BTreeMap<ObjectRef, SecretData>, Secrets)>,
}

type Secrets = Arc<BTreeMap<ObjectRef, SecretData>>;

enum Followed {
    /// A directory.
    Manifests {
        /// Says when it changes.
        watcher: ManifestWatcher,
        /// What it says; gone while a thread reads it.
        manifests: Manifests,
    },
    /// A cluster.
    Cluster {
        /// Its objects.
        cluster: Box<Cluster>,
        /// What its ConfigMap said about the process when that was started.
        at_start: ProcessDefaults,
    },
}

/// What the objects of one moment come to.
pub struct Reading {
    /// The routing state and its Problems.
    pub translation: Translation,
    /// What is wrong with the source itself.
    pub problems: Vec<Problem>,
    /// What Nodes say about addresses; none for manifests.
    pub nodes: Option<NodeFacts>,
}

impl Feed {
    /// Starts to follow the source.
    ///
    /// # Errors
    /// When it can never be read: no thread for manifests, no identity for the Kubernetes API.
    pub async fn start(source: &Source, identity: &Identity) -> anyhow::Result<Self> {
        let source = match source {
            Source::Manifests(directory) => Followed::Manifests {
                // Watched before it is read, so that no change falls between the two.
                watcher: privileges::without(|| ManifestWatcher::start(directory))
                    .with_context(|| format!("cannot watch {}", directory.display()))?,
                manifests: Manifests::new(directory),
            },
            Source::Cluster(settings) => {
                let cluster = Cluster::start((**settings).clone(), identity).await?;
                Followed::Cluster {
                    cluster: Box::new(cluster),
                    at_start: ProcessDefaults::default(),
                }
            }
        };
        Ok(Feed {
            source,
            reader: Reader::default(),
        })
    }

    /// What readiness waits for.
    pub fn name(&self) -> &'static str {
        match &self.source {
            Followed::Manifests { .. } => "manifests",
            Followed::Cluster { .. } => "kube-sync",
        }
    }

    /// The cluster, if it is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        match &self.source {
            Followed::Manifests { .. } => None,
            Followed::Cluster { cluster, .. } => Some(cluster),
        }
    }

    /// Says what is served from now on; a cluster's objects then say so.
    pub fn serves(&mut self, served: Served) {
        if let Followed::Cluster { cluster, .. } = &mut self.source {
            cluster.serves(served);
        }
    }

    /// Says that nothing is served any more.
    pub async fn stop(&mut self) {
        if let Followed::Cluster { cluster, .. } = &mut self.source {
            cluster.stop().await;
        }
    }

    /// Waits until there is something whole to read. May be cancelled.
    pub async fn synced(&mut self) {
        if let Followed::Cluster { cluster, .. } = &mut self.source {
            cluster.synced().await;
        }
    }

    /// What the ConfigMap says about the process. To be asked once, when it starts: what it says
    /// otherwise later is a Problem.
    pub fn process(&mut self) -> ProcessDefaults {
        let Followed::Cluster { cluster, at_start } = &mut self.source else {
            return ProcessDefaults::default();
        };
        if let Some(defaults) = cluster.defaults() {
            (*at_start, _) = ProcessDefaults::read(&defaults);
        }
        at_start.clone()
    }

    /// Waits until something has changed and come to rest. May be cancelled: no change is lost.
    pub async fn changed(&mut self) {
        match &mut self.source {
            Followed::Manifests { watcher, .. } => watcher.changed().await,
            Followed::Cluster { cluster, .. } => cluster.changed().await,
        }
    }

    /// Reads everything and translates it with what is known of names, off this thread. `named` are
    /// Secrets that flags name.
    ///
    /// # Errors
    /// When our code has panicked; what was read before is then read anew.
    pub async fn read(
        &mut self,
        source: &Source,
        class: &ClassSettings,
        names: Names,
        named: Vec<NamespacedName>,
    ) -> anyhow::Result<Reading> {
        let mut class = class.clone();
        let mut reader = std::mem::take(&mut self.reader);
        match &mut self.source {
            Followed::Manifests { manifests, .. } => {
                let Source::Manifests(directory) = source else {
                    anyhow::bail!("the source is not the one that was started");
                };
                let mut taken = std::mem::replace(manifests, Manifests::new(directory));
                let (taken, reader, translation, problems) = blocking(move || {
                    let (mut objects, problems): (Objects, Vec<Problem>) = taken.reload();
                    objects.names = names;
                    let translation = reader.read(&objects, &class, &named);
                    (taken, reader, translation, problems)
                })
                .await?;
                *manifests = taken;
                self.reader = reader;
                Ok(Reading {
                    translation,
                    problems,
                    nodes: None,
                })
            }
            Followed::Cluster { cluster, at_start } => {
                let state = cluster.state().await;
                let mut objects = state.objects;
                objects.names = names;
                let mut problems = Vec::from_iter(state.problem);
                if let Some(defaults) = state.defaults {
                    problems.extend(process::problems(&defaults, at_start));
                    class.defaults = defaults;
                }
                let (reader, translation) = blocking(move || {
                    let translation = reader.read(&objects, &class, &named);
                    (reader, translation)
                })
                .await?;
                self.reader = reader;
                Ok(Reading {
                    translation,
                    problems,
                    nodes: Some(state.nodes),
                })
            }
        }
    }
}

impl Reader {
    /// What the objects come to, with the Secrets that flags name, which no Ingress does.
    fn read(
        &mut self,
        objects: &Objects,
        class: &ClassSettings,
        named: &[NamespacedName],
    ) -> Translation {
        let mut translation = self.translator.translate(objects, class);
        let found = named.iter().filter_map(|name| {
            let data = self.translator.secret(&name.namespace, &name.name)?;
            Some((secret_ref(name), data))
        });
        let found: BTreeMap<_, _> = found.collect();
        if found.is_empty() {
            return translation;
        }
        let known = self.secrets.as_ref().filter(|(of, with, _)| {
            // The same map as before is not looked through by anybody.
            Arc::ptr_eq(of, &translation.secrets) && *with == found
        });
        let all = known.map(|(_, _, all)| Arc::clone(all)).unwrap_or_else(|| {
            let of_ingresses = translation.secrets.iter();
            let of_ingresses = of_ingresses.map(|(name, data)| (name.clone(), data.clone()));
            Arc::new(of_ingresses.chain(found.clone()).collect())
        });
        self.secrets = Some((translation.secrets, found, Arc::clone(&all)));
        translation.secrets = all;
        translation
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.context("reading the objects failed")
}
