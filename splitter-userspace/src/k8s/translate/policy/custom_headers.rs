//! Fields of every answer, from a ConfigMap: `custom-headers`.

use http::{HeaderName, HeaderValue};

use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, CustomHeaders};

/// The default that says which fields may be set, separated by commas.
pub(in crate::k8s::translate) const ALLOWED: &str = "global-allowed-response-headers";

/// The most fields that one ConfigMap may set.
const MOST: usize = 64;

/// What frames a message or is for one hop only: another hop would read another message.
const NEVER: [&str; 8] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The fields that the ConfigMap has.
///
/// # Errors
/// When they cannot be set as they are written: browsers may be told by them what to keep out. As in
/// ingress-nginx the Ingress is closed then.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<CustomHeaders, BackendFault> {
    let Some(annotation) = given(view, "custom-headers", problems) else {
        return Ok(CustomHeaders::default());
    };
    fields(view, annotation.value.trim()).map_err(|why| {
        problems.error(
            &view.subject,
            annotation.field(),
            "custom-headers-invalid",
            why,
            "every path of the Ingress answers 503, as its answers would lack these fields",
        );
        BackendFault::GuardInvalid
    })
}

fn fields(view: &View<'_>, name: &str) -> Result<CustomHeaders, String> {
    let own = &*view.subject.object.namespace;
    let (namespace, name) = name.split_once('/').unwrap_or((own, name));
    let map = view.secrets.config_map(namespace, name);
    let map = map.ok_or_else(|| format!("there is no ConfigMap {namespace}/{name}"))?;
    let allowed = view.annotations.preset(ALLOWED).unwrap_or_default();
    let mut fields = Vec::new();
    for (name, value) in map {
        fields.push(field(name, value, allowed)?);
    }
    if fields.len() > MOST {
        return Err(format!("it has more than {MOST} fields"));
    }
    fields.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    let twice = fields
        .windows(2)
        .find(|it| matches!(it, [a, b] if a.0 == b.0));
    match twice.and_then(|it| it.first()) {
        Some((name, _)) => Err(format!("the ConfigMap has {name} twice")),
        None => Ok(CustomHeaders(fields)),
    }
}

fn field(name: &str, value: &str, allowed: &str) -> Result<(HeaderName, HeaderValue), String> {
    let shown = name;
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("{shown:?} in the ConfigMap is no name of a header"))?;
    if NEVER.contains(&name.as_str()) {
        return Err(format!("{shown} is for the connection and cannot be set"));
    }
    let mut allowed = allowed.split(',').map(str::trim);
    if !allowed.any(|it| it.eq_ignore_ascii_case(shown)) {
        return Err(format!(
            "{shown} is not among the headers that {ALLOWED} of the defaults allows"
        ));
    }
    let value = value.trim();
    let plain = value
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    match HeaderValue::from_str(value) {
        Ok(value) if plain => Ok((name, value)),
        _ => Err(format!(
            "the value of {shown} in the ConfigMap is not plain text"
        )),
    }
}
