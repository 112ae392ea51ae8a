//! From Secrets to what requests are judged by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::jwks::KeySet;
use super::keys::{KeyRing, Keys, Wish};
use super::users::{Fault, Users};
use crate::model::{
    Basic, Jwt, KeySource, KeyUrl, ObjectRef, Problem, SecretData, Severity, Snapshot, UserLayout,
};

/// What guards need, at one moment.
#[derive(Debug, Default)]
pub struct Guards {
    users: HashMap<(ObjectRef, UserLayout), Arc<Users>>,
    keys: HashMap<KeySource, KeyRing>,
}

impl Guards {
    /// The names that a policy is about; none where their Secret is gone.
    pub fn users(&self, basic: &Basic) -> Option<&Arc<Users>> {
        self.users.get(&(basic.users.clone(), basic.layout))
    }

    /// The keys that a policy is about; none where nothing is known of them.
    pub fn keys(&self, jwt: &Jwt) -> Option<&KeyRing> {
        self.keys.get(&jwt.keys)
    }
}

/// What is asked of the store.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The Secrets with names and passwords, and how they are laid out.
    users: BTreeSet<(ObjectRef, UserLayout)>,
    /// Where keys are, each with an Ingress that wants them.
    keys: BTreeMap<KeySource, ObjectRef>,
}

impl Demand {
    /// What the Locations of a state need.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut demand = Demand::default();
        for location in &snapshot.locations {
            let policy = location.policy.as_deref();
            let Some(guarded) = policy.and_then(|it| it.guards.as_deref()) else {
                continue;
            };
            if let Some(basic) = &guarded.basic {
                demand.users.insert((basic.users.clone(), basic.layout));
            }
            if let Some(jwt) = &guarded.jwt {
                let ingress = || location.ingress.clone();
                demand.keys.entry(jwt.keys.clone()).or_insert_with(ingress);
            }
        }
        demand
    }

    /// The URLs that keys are to be fetched from.
    pub fn urls(&self) -> impl Iterator<Item = &KeyUrl> {
        self.keys.keys().filter_map(|source| match source {
            KeySource::Url(url) => Some(url),
            KeySource::Object(_) => None,
        })
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct GuardStore {
    demand: Demand,
    users: HashMap<(ObjectRef, UserLayout), (SecretData, Arc<Users>)>,
    keys: Keys,
    current: Arc<Guards>,
}

impl GuardStore {
    /// What is in use now.
    pub fn current(&self) -> &Arc<Guards> {
        &self.current
    }

    /// Reads what is new. What is in use changes only if something of it did.
    pub fn update(&mut self, demand: Demand, secrets: &BTreeMap<ObjectRef, SecretData>) {
        self.demand = demand;
        let users = self.read_users(secrets);
        let keys = self.keys.update(&self.demand.keys, secrets);
        if users || keys {
            self.renew();
        }
    }

    /// Notes where newer keys of a URL are asked for.
    pub fn follow(&mut self, url: &KeyUrl, wish: Arc<dyn Wish>) {
        self.keys.follow(url, wish);
        self.renew();
    }

    /// Takes over what was fetched from a URL, or why nothing was.
    pub fn fetched(&mut self, url: &KeyUrl, fetch: u64, fetched: Result<KeySet, String>) {
        self.keys.fetched(url, fetch, fetched);
        self.renew();
    }

    /// What is wrong with the Secrets and keys in use.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::from_iter(self.keys.problems(&self.demand.keys));
        for ((secret, _), (_, users)) in &self.users {
            report(secret, users, &mut problems);
        }
        problems.sort();
        problems.dedup();
        problems
    }

    fn renew(&mut self) {
        let users = self.users.iter();
        let users = users.map(|(key, (_, users))| (key.clone(), users.clone()));
        self.current = Arc::new(Guards {
            users: users.collect(),
            keys: self.keys.rings(),
        });
    }

    fn read_users(&mut self, secrets: &BTreeMap<ObjectRef, SecretData>) -> bool {
        let wanted = &self.demand.users;
        let before = self.users.len();
        let present = |secret: &ObjectRef| secrets.contains_key(secret);
        self.users
            .retain(|key, _| wanted.contains(key) && present(&key.0));
        let mut changed = self.users.len() != before;
        for key in wanted {
            let Some(data) = secrets.get(&key.0) else {
                continue;
            };
            if self.users.get(key).is_none_or(|(known, _)| known != data) {
                let users = Arc::new(Users::read(data, key.1));
                self.users.insert(key.clone(), (data.clone(), users));
                changed = true;
            }
        }
        changed
    }
}

/// How many faults of one Secret are told.
const TOLD: usize = 10;

fn report(secret: &ObjectRef, users: &Users, problems: &mut Vec<Problem>) {
    let mut add = |severity, message: String, effect: &str| {
        problems.push(Problem {
            severity,
            object: secret.clone(),
            source: String::new(),
            field: "data".to_owned(),
            code: "users-invalid",
            message,
            effect: effect.to_owned(),
        });
    };
    for fault in users.faults().iter().take(TOLD) {
        let message = match fault {
            Fault::Hash { user, error } => format!("the user {user:?} has {error}"),
            Fault::Line(number) => format!("line {number} is not NAME:HASH"),
            Fault::NotText => "it holds something that is no text".to_owned(),
            Fault::TooMany => "there are too many users".to_owned(),
        };
        add(Severity::Warning, message, "nobody is let in by it");
    }
    if users.is_empty() {
        let message = "it lets nobody in".to_owned();
        add(
            Severity::Error,
            message,
            "every request is answered with 401",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Issuer, jwk, jwks};
    use super::*;
    use crate::model::Kind;

    fn secrets(secret: &ObjectRef, key: &str, text: &str) -> BTreeMap<ObjectRef, SecretData> {
        let entries = [(key.to_owned(), text.as_bytes().to_vec())];
        let data = SecretData::new(BTreeMap::from(entries));
        BTreeMap::from([(secret.clone(), data)])
    }

    #[test]
    fn what_has_not_changed_is_not_read_again_and_faults_name_no_hash() {
        let secret = ObjectRef::new(Kind::Secret, "demo", "users");
        let key = (secret.clone(), UserLayout::File);
        let demand = Demand {
            users: BTreeSet::from([key.clone()]),
            ..Demand::default()
        };
        let mut store = GuardStore::default();
        let mut update = |secrets: &BTreeMap<_, _>| {
            store.update(demand.clone(), secrets);
            (store.current().clone(), store.problems())
        };
        let good = secrets(&secret, "auth", "ann:{PLAIN}a");
        let (one, problems) = update(&good);
        assert_eq!(problems, []);
        assert!(Arc::ptr_eq(&one, &update(&good).0));
        let (two, problems) = update(&secrets(&secret, "auth", "ann:topsecret"));
        assert!(!Arc::ptr_eq(&one, &two) && two.users[&key].is_empty());
        assert_eq!(problems.len(), 2);
        let said = format!("{problems:?}");
        assert!(
            said.contains("ann") && !said.contains("topsecret"),
            "{said}"
        );
        assert!(update(&BTreeMap::new()).0.users.is_empty());
    }

    #[test]
    fn keys_that_turn_bad_keep_the_last_good_ones() {
        let secret = ObjectRef::new(Kind::Secret, "demo", "keys");
        let source = KeySource::Object(secret.clone());
        let demand = Demand {
            keys: BTreeMap::from([(source.clone(), secret.clone())]),
            ..Demand::default()
        };
        let mut store = GuardStore::default();
        let mut update = |text: &str| {
            store.update(demand.clone(), &secrets(&secret, KeySource::ENTRY, text));
            let set = store.current().keys[&source].set.clone();
            (set.map(|set| set.id()), store.problems().len())
        };
        assert_eq!(update("junk"), (None, 1));
        let (first, problems) = update(&jwks(&[jwk(&Issuer::new().key, "one")]));
        assert!(first.is_some() && problems == 0);
        assert_eq!(update("junk"), (first, 1));
    }

    #[test]
    fn what_was_fetched_stays_while_it_is_wanted() {
        let url = KeyUrl {
            url: "https://id.test/keys".into(),
            authorities: None,
        };
        let ingress = ObjectRef::new(Kind::Ingress, "demo", "web");
        let demand = Demand {
            keys: BTreeMap::from([(KeySource::Url(url.clone()), ingress)]),
            ..Demand::default()
        };
        assert_eq!(demand.urls().count(), 1);
        struct Never;
        impl Wish for Never {
            fn newer(&self, _: u64) -> bool {
                false
            }
        }
        let mut store = GuardStore::default();
        store.update(demand.clone(), &BTreeMap::new());
        store.follow(&url, Arc::new(Never));
        let set = |store: &GuardStore| {
            let ring = store.current().keys.get(&KeySource::Url(url.clone()))?;
            ring.set.as_ref().map(|set| set.id())
        };
        store.fetched(&url, 1, Err("no answer".to_owned()));
        assert_eq!((set(&store), store.problems().len()), (None, 1));
        store.fetched(&url, 2, Ok(Issuer::new().keys));
        let first = set(&store);
        assert!(first.is_some() && store.problems().is_empty());
        store.fetched(&url, 3, Err("no answer".to_owned()));
        store.update(demand, &BTreeMap::new());
        assert_eq!((set(&store), store.problems().len()), (first, 1));
        store.update(Demand::default(), &BTreeMap::new());
        assert_eq!((set(&store), store.problems().len()), (None, 0));
    }
}
