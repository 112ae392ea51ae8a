//! What Ingresses demand of their callers, in words: for `splitter check`.

use crate::model::{
    ClaimTest, ClientCert, ClientVerify, External, Guarded, Jwt, Location, Policy, TrafficClass,
};

/// What the Location demands, in the order in which it is asked.
pub(super) fn of(location: &Location) -> Vec<String> {
    let Some(policy) = location.policy.as_deref() else {
        return Vec::new();
    };
    let mut demands: Vec<String> = policy.traffic_class.map(class).into_iter().collect();
    demands.extend(known(policy));
    if policy.upstream_tls.as_ref().is_some_and(|tls| !tls.verify) {
        let what = "nothing of its pods, whose TLS is taken without a proof (proxy-ssl-verify)";
        demands.push(what.to_owned());
    }
    demands
}

fn class(class: TrafficClass) -> String {
    match class {
        TrafficClass::NorthSouth => "to be outside",
        TrafficClass::EastWest => "to be a pod or the node itself",
    }
    .to_owned()
}

/// What callers are known by.
fn known(policy: &Policy) -> Vec<String> {
    let addresses = addresses(policy);
    let guards = policy.guards.as_deref();
    let asked = guards.map_or_else(Vec::new, guarded);
    let certificate = policy.client_cert.as_ref().map(certificate);
    if guards.is_some_and(|it| it.any) {
        let all = addresses.into_iter().chain(asked);
        let any = all.collect::<Vec<_>>().join(", or ");
        return certificate.into_iter().chain([any]).collect();
    }
    addresses
        .into_iter()
        .chain(certificate)
        .chain(asked)
        .collect()
}

fn addresses(policy: &Policy) -> Vec<String> {
    let Some(lists) = &policy.addresses else {
        return Vec::new();
    };
    let deny = lists
        .deny
        .as_ref()
        .map(|set| format!("an address that is none of {set}"));
    let allow = lists
        .allow
        .as_ref()
        .map(|set| format!("an address of {set}"));
    deny.into_iter().chain(allow).collect()
}

fn certificate(cert: &ClientCert) -> String {
    let what = match cert.verify {
        ClientVerify::On => "a certificate",
        ClientVerify::Optional => "a good certificate or none",
        ClientVerify::OptionalNoCa => "a certificate of anybody or none",
    };
    let name = cert.common_name.as_ref();
    let name = name.map_or_else(String::new, |it| {
        format!(", with a name like {:?}", it.as_str())
    });
    let names = cert.identities.as_ref();
    let names = names.map_or_else(String::new, |it| format!(", with one of the names {it}"));
    format!("{what}{name}{names}, by the {}", cert.authorities)
}

fn guarded(guarded: &Guarded) -> Vec<String> {
    let basic = guarded.basic.as_ref();
    let basic = basic.map(|it| format!("a name and its password, by the {}", it.users));
    let token = guarded.jwt.as_ref().map(token);
    let external = guarded.external.as_ref().map(service);
    basic.into_iter().chain(token).chain(external).collect()
}

fn token(jwt: &Jwt) -> String {
    let audiences = jwt.audiences.join(" or ");
    let claim = |it: &ClaimTest| format!("{}={}", it.claim.text, it.values.join(","));
    let claims: Vec<_> = jwt.claims.iter().map(claim).collect();
    let claims = match claims.is_empty() {
        true => String::new(),
        false => format!(", with {}", claims.join("; ")),
    };
    format!("a token of {} for {audiences}{claims}", jwt.issuer)
}

fn service(external: &External) -> String {
    let scheme = match external.tls {
        Some(_) => "https",
        None => "http",
    };
    let port = &external.service.port;
    format!("a yes of {scheme}://{}:{port}", external.host)
}
