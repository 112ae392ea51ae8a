use std::path::Path;

use anyhow::Result;

use super::paths::{NamedPath, paths};
use super::rules::{Allowed, CRATES, MODULES, Module, TOP};
use super::{findings, sources};
use crate::process::root;

const LIBRARY: &str = "splitter-userspace/src";

/// Modules name only the modules and crates that their rule lets them.
pub(super) fn check() -> Result<()> {
    let library = root().join(LIBRARY);
    let mut found = Vec::new();
    for path in sources::below(&library)? {
        let file = path.strip_prefix(&library).unwrap_or(&path);
        let source = sources::read(&path)?;
        found.extend(violations(file, &source));
    }
    findings(&found)
}

/// What is wrong in one file, whose path is from the library's top.
fn violations(file: &Path, source: &str) -> Vec<String> {
    let place = module_path(file);
    let top = place.first().map_or("", String::as_str);
    if TOP.contains(&top) {
        return Vec::new();
    }
    let shown = Path::new(LIBRARY).join(file);
    let Some(module) = MODULES.iter().find(|module| module.name == top) else {
        return vec![format!(
            "{}: module {top} has no rule in xtask/src/verify/rules.rs",
            shown.display()
        )];
    };
    let all = paths(source);
    let faults = all.iter().filter_map(|path| {
        let what = fault(module, &place, path)?;
        Some(format!("{}:{}: {what}", shown.display(), path.line))
    });
    let mut faults: Vec<String> = faults.collect();
    // One tree of `use` can name a module several times.
    faults.dedup();
    faults
}

/// The modules that a file is, e.g. `proxy/pool/mod.rs` is `proxy`, `pool`.
fn module_path(file: &Path) -> Vec<String> {
    let stem = file.with_extension("");
    let parts = stem.iter().map(|part| part.to_string_lossy().into_owned());
    let mut parts: Vec<String> = parts.collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

fn fault(module: &Module, place: &[String], path: &NamedPath) -> Option<String> {
    match target(place, path) {
        Target::Module(name) => {
            let known = MODULES.iter().any(|module| module.name == name);
            let allowed = match &module.modules {
                Allowed::Every => true,
                Allowed::Only(names) => names.contains(&name),
            };
            let fault = known && !allowed && name != module.name;
            fault.then(|| format!("{} must not name crate::{name}", module.name))
        }
        Target::Crate(name) => {
            let (_, users) = CRATES.iter().find(|(names, _)| names.contains(&name))?;
            let fault = !users.contains(&module.name);
            fault.then(|| {
                let users = users.join(", ");
                format!("{} must not name {name}; only {users} may", module.name)
            })
        }
        Target::Inside => None,
    }
}

enum Target<'a> {
    /// A module at the library's top.
    Module(&'a str),
    /// Another crate, or something near by with a name of its own.
    Crate(&'a str),
    /// Somewhere inside the same top module.
    Inside,
}

fn target<'a>(place: &[String], path: &'a NamedPath) -> Target<'a> {
    let segments = &path.segments;
    let is_super = |segment: &&String| segment.as_str() == "super";
    let start = usize::from(segments.first().is_some_and(|first| first == "self"));
    let supers = segments.iter().skip(start).take_while(is_super).count();
    if supers > 0 {
        // At the top, `super` is the crate itself.
        if supers < place.len() + path.inside {
            return Target::Inside;
        }
        return match segments.get(start + supers) {
            Some(name) => Target::Module(name),
            None => Target::Inside,
        };
    }
    match segments.first().map_or("", String::as_str) {
        "crate" => segments
            .get(1)
            .map_or(Target::Inside, |name| Target::Module(name)),
        "self" | "" => Target::Inside,
        name => Target::Crate(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, source: &str) -> Vec<String> {
        violations(Path::new(file), source)
    }

    fn refused(file: &str, source: &str, says: &str) {
        let found = found(file, source);
        assert_eq!(found.len(), 1, "{file}: {source}: {found:?}");
        assert!(found[0].contains(says), "{found:?}");
    }

    fn fine(file: &str, source: &str) {
        let found = found(file, source);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_module_that_must_not_be_named_is_found_however_it_is_written() {
        let says = "routing must not name crate::proxy";
        for source in [
            "use crate::proxy::Pool;",
            "use crate::{model::Split, proxy::{self, Pool}};",
            "use crate::proxy as p;",
            "fn f(pool: &crate::proxy::Pool) {}",
            "x!(crate::proxy::Pool)",
            "pub use super::proxy::Pool;",
            "mod tests { use super::super::proxy::Pool; }",
        ] {
            refused("routing/mod.rs", source, says);
        }
        refused("routing/a/b.rs", "use super::super::super::proxy;", says);
        refused(
            "model/mod.rs",
            "use crate::routing::Live;",
            "model must not",
        );
        refused("proxy/mod.rs", "use crate::k8s::Objects;", "proxy must not");
        refused("k8s/mod.rs", "use crate::app::run;", "k8s must not");
    }

    #[test]
    fn a_crate_that_must_not_be_named_is_found() {
        for (file, source, says) in [
            (
                "model/a.rs",
                "use tokio::sync::watch;",
                "must not name tokio",
            ),
            (
                "routing/a.rs",
                "fn f() { hyper::Error::new() }",
                "must not name hyper",
            ),
            (
                "routing/a.rs",
                "use {http::Uri, kube::Client};",
                "only k8s may",
            ),
            ("proxy/a.rs", "use aya::Ebpf;", "only dataplane may"),
            ("app.rs", "use aya::Ebpf;", "only dataplane may"),
            ("admin/a.rs", "use k8s_openapi as k;", "only k8s may"),
            (
                "model/a.rs",
                "#[tokio::test] async fn f() {}",
                "must not name tokio",
            ),
            ("model/a.rs", "extern crate libc;", "must not name libc"),
        ] {
            refused(file, source, says);
        }
    }

    #[test]
    fn what_the_rules_allow_is_no_finding() {
        fine("routing/a.rs", "use crate::model::Split; use http::Uri;");
        fine(
            "routing/a/b.rs",
            "use super::super::find; use super::c; use crate::routing::d;",
        );
        fine(
            "routing/a.rs",
            "mod tests { use super::*; use super::super::b; }",
        );
        fine(
            "proxy/a.rs",
            "use hyper::body::Body; use crate::telemetry::Record;",
        );
        fine("dataplane/a.rs", "use aya::Ebpf;");
        fine(
            "app.rs",
            "use crate::{admin, proxy, k8s}; use tokio::runtime;",
        );
        fine("lib.rs", "pub mod model;");
        fine(
            "model/a.rs",
            "// tokio::x\n/// [`kube::Client`]\nconst A: &str = \"aya::Ebpf\";",
        );
        fine("model/a.rs", "let tokio = self.tokio; x.hyper::<T>();");
    }

    #[test]
    fn a_module_without_a_rule_is_a_finding() {
        refused("fresh/mod.rs", "", "module fresh has no rule");
        refused("fresh.rs", "", "module fresh has no rule");
    }

    #[test]
    fn findings_name_file_and_line() {
        let found = found("model/a.rs", "\n\nuse tokio::time;\n");
        assert!(
            found[0].starts_with("splitter-userspace/src/model/a.rs:3: "),
            "{found:?}"
        );
    }
}
