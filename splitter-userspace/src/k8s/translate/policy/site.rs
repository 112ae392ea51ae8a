//! What an annotation says for a whole host: `app-root`, `from-to-www-redirect`, `server-alias`.

use std::collections::BTreeSet;

use http::HeaderValue;

use super::tls_terms::TlsWish;
use super::{flag, tls_terms};
use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::host;
use crate::k8s::translate::report::Problems;
use crate::model::{HostPattern, Redirect, Template};

pub(in crate::k8s::translate) const PASSTHROUGH: &str = "ssl-passthrough";

/// What an Ingress says for each of its hosts.
#[derive(Clone, Debug, Default)]
pub(in crate::k8s::translate) struct SiteTerms {
    /// Where `/` is sent to (`app-root`).
    pub app_root: Option<Redirect>,
    /// Whether the name with, or without, `www.` is sent to the host (`from-to-www-redirect`).
    pub www: bool,
    /// Further names (`server-alias`).
    pub aliases: BTreeSet<HostPattern>,
    /// How TLS is spoken with their clients.
    pub tls: TlsWish,
    /// Whether their TLS is left to the pods (`ssl-passthrough`).
    pub passthrough: bool,
}

pub(in crate::k8s::translate) fn read(view: &View<'_>, problems: &mut Problems) -> SiteTerms {
    SiteTerms {
        app_root: app_root(view, problems),
        www: flag::read(view, "from-to-www-redirect", false, problems),
        aliases: aliases(view, problems),
        tls: tls_terms::read(view, problems),
        passthrough: passthrough(view, problems),
    }
}

fn passthrough(view: &View<'_>, problems: &mut Problems) -> bool {
    let wanted = flag::read(view, PASSTHROUGH, false, problems);
    if wanted
        && !view.passthrough
        && let Some(annotation) = view.annotations.get(PASSTHROUGH)
    {
        problems.warn(
            &view.subject,
            annotation.field(),
            "passthrough-off",
            "it needs --enable-ssl-passthrough",
            "TLS ends here, as for other hosts",
        );
    }
    wanted && view.passthrough
}

fn app_root(view: &View<'_>, problems: &mut Problems) -> Option<Redirect> {
    let annotation = given(view, "app-root", problems)?;
    let path = annotation.value.trim();
    let target = match Template::parse(&format!("$scheme://$http_host{path}")) {
        Err(error) => Err(error.to_string()),
        Ok(_) if !path.starts_with('/') => Err(format!("{path:?} does not begin with /")),
        Ok(_) if path == "/" => Err("/ would be sent to itself".to_owned()),
        Ok(_) if HeaderValue::from_str(path).is_err() || path.contains(char::is_whitespace) => {
            Err(format!("{path:?} is no path"))
        }
        Ok(target) => Ok(target),
    };
    match target {
        Ok(target) => Some(Redirect {
            target,
            status: 302,
            cut_slash: false,
        }),
        Err(why) => {
            let effect = "it counts as not set: / is not redirected";
            let field = annotation.field();
            problems.error(&view.subject, field, "app-root-invalid", why, effect);
            None
        }
    }
}

fn aliases(view: &View<'_>, problems: &mut Problems) -> BTreeSet<HostPattern> {
    let Some(annotation) = given(view, "server-alias", problems) else {
        return BTreeSet::new();
    };
    let names = annotation.value.split(',').map(str::trim);
    let mut aliases = BTreeSet::new();
    for name in names.filter(|name| !name.is_empty()) {
        let parsed = if name.starts_with('~') {
            Err("a regular expression is not supported as a further name")
        } else {
            host::parse(name)
        };
        match parsed {
            Ok(alias) => {
                aliases.insert(alias);
            }
            Err(why) => problems.error(
                &view.subject,
                annotation.field(),
                "alias-invalid",
                format!("{name:?}: {why}"),
                "this name is left out, the others work",
            ),
        }
    }
    aliases
}
