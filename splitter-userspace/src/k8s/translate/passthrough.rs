//! `ssl-passthrough`: hosts whose TLS is left to the pods. Their connections go where `/` goes.

use std::collections::{BTreeMap, HashMap};

use super::mains::{Draft, Drafts};
use super::policy::PASSTHROUGH;
use super::report::Problems;
use super::site::Site;
use crate::model::{HostPattern, LocationKey, ObjectRef, PathKind};

/// The hosts, and the Location of each that says who answers.
#[derive(Default)]
pub(super) struct Passed(BTreeMap<HostPattern, LocationKey>);

impl Passed {
    /// The host and key of each.
    pub(super) fn into_keys(self) -> BTreeMap<HostPattern, LocationKey> {
        self.0
    }
}

/// Finds them; the oldest Ingress of a host decides.
pub(super) fn settle(
    sites: &[Site<'_, '_>],
    drafts: &Drafts<'_>,
    problems: &mut Problems,
) -> Passed {
    let mut passed = Passed::default();
    if !sites.iter().any(|site| site.terms.passthrough) {
        return passed;
    }
    let others = others(drafts);
    for site in sites.iter().filter(|site| site.terms.passthrough) {
        for host in &site.hosts {
            let why = match root(drafts, host, &site.view.subject.object) {
                _ if *host == HostPattern::Any => {
                    Err("a rule without a host has no name that a hello could say".to_owned())
                }
                None => Err(format!("the Ingress has no path / for {host}")),
                Some(_) if passed.0.contains_key(host) => continue,
                Some(draft) => Ok(draft),
            };
            let draft = match why {
                Ok(draft) => draft,
                Err(why) => {
                    let effect = "TLS ends here, as for other hosts";
                    warn(site, "passthrough-without-root", why, effect, problems);
                    continue;
                }
            };
            passed.0.insert(host.clone(), draft.key.clone());
            let others = others.get(host).copied().unwrap_or(0);
            report(site, draft, others, problems);
        }
    }
    passed
}

/// The Location of `/` that an Ingress owns.
fn root<'d, 'c>(
    drafts: &'d Drafts<'c>,
    host: &HostPattern,
    owner: &ObjectRef,
) -> Option<&'d Draft<'c>> {
    let kinds = [PathKind::Prefix, PathKind::Regex, PathKind::Exact];
    let mut roots = kinds.into_iter().filter_map(|kind| {
        let path = "/".into();
        let host = host.clone();
        let draft = drafts.get(&LocationKey { host, path, kind })?;
        (draft.owner == *owner && draft.policy.as_ref().is_none_or(|it| it.redirect.is_none()))
            .then_some(draft)
    });
    roots.next()
}

/// How many paths but `/` each host has.
fn others(drafts: &Drafts<'_>) -> HashMap<HostPattern, usize> {
    let mut others = HashMap::new();
    for draft in drafts.list.iter().filter(|it| &*it.key.path != "/") {
        *others.entry(draft.key.host.clone()).or_default() += 1;
    }
    others
}

fn report(site: &Site<'_, '_>, draft: &Draft<'_>, others: usize, problems: &mut Problems) {
    let host = &draft.key.host;
    let guard = draft.policy.as_ref().and_then(|it| it.request_guard());
    if let Some(guard) = guard {
        let what = format!("{guard} cannot be kept where TLS is left to the pods");
        let field = site.view.annotations.get(PASSTHROUGH);
        let field = field.map_or_else(String::new, |it| it.field());
        let effect = "TLS connections to the host are refused; it is kept on the plain port";
        let code = "passthrough-guarded";
        problems.error(&site.view.subject, field, code, what, effect);
    }
    if others > 0 {
        let what = format!("the host {host} has {others} more paths, which nobody sees inside TLS");
        let effect = "over TLS they are not asked";
        warn(site, "passthrough-paths", what, effect, problems);
    }
}

fn warn(
    site: &Site<'_, '_>,
    code: &'static str,
    what: String,
    effect: &str,
    problems: &mut Problems,
) {
    let field = site.view.annotations.get(PASSTHROUGH);
    let field = field.map_or_else(String::new, |it| it.field());
    problems.warn(&site.view.subject, field, code, what, effect);
}
