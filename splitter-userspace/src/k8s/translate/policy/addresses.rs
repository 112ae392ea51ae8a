//! `allowlist-source-range`, `denylist-source-range`: a list that cannot be read closes the Ingress.

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::report::Problems;
use crate::model::{AddressSet, Addresses, BackendFault};

/// The older name of `allowlist-source-range`.
const OLDER: &str = "whitelist-source-range";

/// The lists of an Ingress.
///
/// # Errors
/// When one of them cannot be read: nobody may then be let in.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<Addresses>, BackendFault> {
    let name = "allowlist-source-range";
    let allow = aliased(view, name, OLDER, problems);
    let allow = allow.map(|annotation| list(view, annotation, problems));
    let deny = view.annotations.get("denylist-source-range");
    let deny = deny.map(|annotation| list(view, annotation, problems));
    // An allow list of everybody keeps nobody out, as on the Ingresses that cert-manager makes.
    let addresses = Addresses {
        allow: allow.transpose()?.filter(|set| !set.is_all()),
        deny: deny.transpose()?,
    };
    Ok((addresses != Addresses::default()).then_some(addresses))
}

/// An annotation that has two names: the newer one counts.
pub(super) fn aliased<'a>(
    view: &View<'a>,
    name: &str,
    older: &str,
    problems: &mut Problems,
) -> Option<Annotation<'a>> {
    let newer = view.annotations.own(name);
    let other = view.annotations.own(older);
    if let (Some(newer), Some(other)) = (newer, other)
        && newer.value != other.value
    {
        problems.warn(
            &view.subject,
            other.field(),
            "annotation-contradiction",
            format!("{older} and {name} are two names of one annotation and differ"),
            format!("{} counts", newer.key),
        );
    }
    newer.or(other).or_else(|| view.annotations.get(name))
}

fn list(
    view: &View<'_>,
    annotation: Annotation<'_>,
    problems: &mut Problems,
) -> Result<AddressSet, BackendFault> {
    annotation.value.parse().map_err(|error| {
        problems.error(
            &view.subject,
            annotation.field(),
            "source-range-invalid",
            format!("{error}"),
            "every path of the Ingress answers 503, as nobody can tell who may call it",
        );
        BackendFault::GuardInvalid
    })
}
