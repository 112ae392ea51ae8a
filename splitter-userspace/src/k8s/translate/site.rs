//! What Ingresses ask for whole hosts: further names, redirects of `/` and of the name with or
//! without `www.`, and whether a host has TLS. The oldest Ingress of a host wins.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use super::View;
use super::backends::Target;
use super::mains::{Draft, Drafts};
use super::passthrough;
use super::policy::{HttpsTerms, SiteTerms};
use super::report::Problems;
use super::rules::Place;
use crate::model::{
    HostPattern, HttpsRedirect, LocationKey, ObjectRef, PathKind, Policy, Redirect, Template,
};

/// What one main Ingress asks for its hosts.
pub(super) struct Site<'v, 'o> {
    pub view: &'v View<'o>,
    pub hosts: BTreeSet<HostPattern>,
    pub terms: SiteTerms,
}

/// Settles what the Ingresses, oldest first, ask for the hosts of the drafts.
/// `covering` are wildcards of other Ingresses that have TLS.
pub(super) fn settle(
    sites: &[Site<'_, '_>],
    covering: &[HostPattern],
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    let owners = Owners::of(sites, drafts);
    let mut rooted = BTreeSet::new();
    let mut termed = HashMap::new();
    for site in sites {
        let mut told = HashSet::new();
        for host in &site.hosts {
            add_tls(site, host, &mut termed, drafts, problems);
            add_aliases(site, host, &mut told, drafts, problems);
            add_app_root(site, host, &owners, &mut rooted, drafts, problems);
        }
    }
    // After all names are known: an ordinary host or alias comes before an implied name.
    for site in sites.iter().filter(|site| site.terms.www) {
        for host in &site.hosts {
            add_www(site, host, &owners, drafts, problems);
        }
    }
    drafts.passthrough = passthrough::settle(sites, drafts, problems).into_keys();
    add_https(sites, covering, drafts);
}

/// The Service of an Ingress on a host, for those that redirect: it names their Locations in
/// metrics. An Ingress that owns nothing on a host has no say in it.
struct Owners(HashMap<(HostPattern, ObjectRef), Target>);

impl Owners {
    fn of(sites: &[Site<'_, '_>], drafts: &Drafts<'_>) -> Self {
        let redirects = |site: &&Site<'_, '_>| site.terms.www || site.terms.app_root.is_some();
        let wanted: HashSet<&ObjectRef> = sites
            .iter()
            .filter(redirects)
            .map(|site| &site.view.subject.object)
            .collect();
        let mut owners = HashMap::new();
        for draft in drafts.list.iter().filter(|it| wanted.contains(&it.owner)) {
            let known = (draft.key.host.clone(), draft.owner.clone());
            owners.entry(known).or_insert_with(|| draft.stable.clone());
        }
        Owners(owners)
    }

    fn get(&self, site: &Site<'_, '_>, host: &HostPattern) -> Option<&Target> {
        self.0
            .get(&(host.clone(), site.view.subject.object.clone()))
    }
}

/// `told` are the aliases of this Ingress that something was said of: with many hosts once is enough.
fn add_aliases<'s>(
    site: &'s Site<'_, '_>,
    host: &HostPattern,
    told: &mut HashSet<&'s HostPattern>,
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    for alias in &site.terms.aliases {
        let taken = if drafts.hosts.contains(alias) {
            "a host of its own".to_owned()
        } else {
            match drafts.aliases.get(alias) {
                None => {
                    drafts.aliases.insert(alias.clone(), host.clone());
                    continue;
                }
                Some(owner) if owner == host => continue,
                Some(owner) => format!("a further name of {owner} already"),
            }
        };
        if !told.insert(alias) {
            continue;
        }
        problems.error(
            &site.view.subject,
            field(site, "server-alias"),
            "alias-taken",
            format!("{alias} is {taken}"),
            format!("it is no further name of {}", shown(host)),
        );
    }
}

/// The oldest Ingress that says itself how TLS is spoken with the clients of a host decides.
fn add_tls<'s>(
    site: &'s Site<'_, '_>,
    host: &HostPattern,
    termed: &mut HashMap<HostPattern, &'s ObjectRef>,
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    let wish = &site.terms.tls;
    let Some(said) = wish.said else {
        return;
    };
    match drafts.tls_terms.get(host) {
        None => {
            termed.insert(host.clone(), &site.view.subject.object);
            drafts.tls_terms.insert(host.clone(), wish.terms.clone());
        }
        Some(terms) if *terms == wish.terms => {}
        Some(_) => {
            let older = termed
                .get(host)
                .map_or_else(String::new, ToString::to_string);
            let host = shown(host);
            let message = format!("{older} is older and says how TLS is spoken for {host}");
            let effect = "this Ingress has no say in it";
            let (subject, field) = (&site.view.subject, field(site, said));
            problems.warn(subject, field, "tls-terms-taken", message, effect);
        }
    }
}

/// `/` of a host is sent elsewhere, whichever path the Ingress is for.
fn add_app_root(
    site: &Site<'_, '_>,
    host: &HostPattern,
    owners: &Owners,
    rooted: &mut BTreeSet<HostPattern>,
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    let Some(redirect) = &site.terms.app_root else {
        return;
    };
    if !rooted.insert(host.clone()) {
        let message = format!("/ of {} is redirected by an older Ingress", shown(host));
        let field = field(site, "app-root");
        let effect = "this one is not used there";
        problems.warn(&site.view.subject, field, "app-root-taken", message, effect);
        return;
    }
    let key = LocationKey {
        host: host.clone(),
        path: "/".into(),
        kind: PathKind::Exact,
    };
    let written = drafts.get_mut(&key);
    if let Some(draft) = written.filter(|draft| draft.key == key) {
        draft.policy = sends_away(redirect);
        draft.https = HttpsTerms::NONE;
    } else {
        add_redirect(site, owners.get(site, host), key, redirect, drafts);
    }
}

fn add_www(
    site: &Site<'_, '_>,
    host: &HostPattern,
    owners: &Owners,
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    let other = www_name(host).ok_or_else(|| format!("{} has no name with www.", shown(host)));
    let redirect =
        Template::parse(&format!("$scheme://{host}$request_uri")).map(|target| Redirect {
            target,
            status: 308,
            cut_slash: true,
        });
    let other = other.and_then(|other| match &redirect {
        Err(error) => Err(error.to_string()),
        Ok(_) if drafts.hosts.contains(&other) => Err(format!("{other} is a host of its own")),
        Ok(_) if drafts.aliases.contains_key(&other) => Err(format!("{other} is an alias")),
        Ok(redirect) => Ok((other, redirect)),
    });
    match other {
        Ok((other, redirect)) => {
            let key = LocationKey {
                host: other,
                path: "/".into(),
                kind: PathKind::Prefix,
            };
            add_redirect(site, owners.get(site, host), key, redirect, drafts);
        }
        Err(why) => {
            let field = field(site, "from-to-www-redirect");
            let effect = "nothing is redirected to the host";
            problems.warn(&site.view.subject, field, "www-redirect-taken", why, effect);
        }
    }
}

/// The name with `www.` of a host without, and the other way round.
pub(super) fn www_name(host: &HostPattern) -> Option<HostPattern> {
    let HostPattern::Exact(name) = host else {
        return None;
    };
    Some(HostPattern::Exact(match name.strip_prefix("www.") {
        Some(bare) => bare.into(),
        None => format!("www.{name}").into(),
    }))
}

/// Adds a Location that sends everybody away: no request gets to its Service.
fn add_redirect(
    site: &Site<'_, '_>,
    stable: Option<&Target>,
    key: LocationKey,
    redirect: &Redirect,
    drafts: &mut Drafts<'_>,
) {
    let Some(stable) = stable else {
        return;
    };
    drafts.add(Draft {
        key,
        owner: site.view.subject.object.clone(),
        stable: stable.clone(),
        service_upstream: false,
        policy: sends_away(redirect),
        wish: Arc::default(),
        place: Place::DefaultBackend,
        regex: false,
        pattern: None,
        left_out: false,
        https: HttpsTerms::NONE,
        implicit: false,
        canaries: Vec::new(),
    });
}

fn sends_away(redirect: &Redirect) -> Option<Arc<Policy>> {
    let redirect = Some(redirect.clone());
    let policy = Policy {
        redirect,
        ..Policy::default()
    };
    policy.into_shared()
}

/// Adds the redirect to https to the policies of the Locations that have it.
fn add_https(sites: &[Site<'_, '_>], covering: &[HostPattern], drafts: &mut Drafts<'_>) {
    let with_tls: BTreeSet<&HostPattern> = sites
        .iter()
        .flat_map(|site| site.hosts.iter().filter(|host| has_tls(site.view, host)))
        .chain(covering)
        .collect();
    // Locations of one Ingress share a policy still.
    let mut made: HashMap<(*const Policy, HttpsRedirect), Arc<Policy>> = HashMap::new();
    for draft in &mut drafts.list {
        let host = &draft.key.host;
        let has_tls = with_tls.contains(host)
            || wildcard(host).is_some_and(|wildcard| with_tls.contains(&wildcard));
        let Some(https) = draft.https.at(&draft.key.path, has_tls) else {
            continue;
        };
        let base = draft.policy.take();
        let known = (base.as_ref().map_or(std::ptr::null(), Arc::as_ptr), https);
        let policy = made.entry(known).or_insert_with(|| {
            let mut policy = base.as_deref().cloned().unwrap_or_default();
            policy.https = Some(https);
            Arc::new(policy)
        });
        draft.policy = Some(Arc::clone(policy));
    }
}

/// Whether `spec.tls` names the host. An entry without hosts is for all hosts of its Ingress.
fn has_tls(view: &View<'_>, host: &HostPattern) -> bool {
    let entries = view.spec().and_then(|spec| spec.tls.as_ref());
    let covers = |entry: &IngressTLS| {
        let names = entry.hosts.as_deref().unwrap_or_default();
        let wildcard = wildcard(host).map(|wildcard| wildcard.to_string());
        let is = |name: &String| {
            let name = name.to_ascii_lowercase();
            name == host.to_string() || Some(&name) == wildcard.as_ref()
        };
        names.is_empty() || names.iter().any(is)
    };
    entries.into_iter().flatten().any(covers)
}

/// The wildcards among the hosts of a main Ingress that have TLS by it.
pub(super) fn covering(view: &View<'_>, hosts: &BTreeSet<HostPattern>) -> Vec<HostPattern> {
    let covers =
        |host: &&HostPattern| matches!(host, HostPattern::Wildcard(_)) && has_tls(view, host);
    hosts.iter().filter(covers).cloned().collect()
}

/// The wildcard that a name falls under.
pub(super) fn wildcard(host: &HostPattern) -> Option<HostPattern> {
    let HostPattern::Exact(name) = host else {
        return None;
    };
    let (_, parent) = name.split_once('.')?;
    Some(HostPattern::Wildcard(parent.into()))
}

fn field(site: &Site<'_, '_>, name: &str) -> String {
    let annotation = site.view.annotations.get(name);
    annotation.map_or_else(|| name.to_owned(), |annotation| annotation.field())
}

fn shown(host: &HostPattern) -> String {
    match host {
        HostPattern::Any => "the rules without a host".to_owned(),
        host => host.to_string(),
    }
}
