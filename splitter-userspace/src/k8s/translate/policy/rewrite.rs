//! `rewrite-target`, `x-forwarded-prefix`, `use-regex`.

use super::flag;
use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::report::Problems;
use crate::model::{Piece, Rewrite, Template, Variable};

/// The most variables in one target. Each can be as long as the client's path.
const VARIABLES_MAX: usize = 16;

/// What an Ingress says about its paths.
#[derive(Clone, Debug, Default)]
pub(in crate::k8s::translate) struct PathTerms {
    /// Its paths are patterns (`use-regex`).
    pub regex: bool,
    /// The target as written, trimmed: a path that is equal to it is not rewritten.
    pub target: Option<String>,
    /// It asks for a rewrite that cannot be made.
    pub broken: bool,
}

impl PathTerms {
    /// Whether requests of this path are rewritten.
    pub(in crate::k8s::translate) fn rewrites(&self, path: &str) -> bool {
        self.target.as_deref().is_some_and(|target| target != path)
    }
}

/// Reads them, and the rewrite for the paths that have one.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> (PathTerms, Option<Rewrite>) {
    let mut terms = PathTerms {
        regex: flag::read(view, "use-regex", false, problems),
        ..PathTerms::default()
    };
    let target = given(view, "rewrite-target", problems);
    let prefix = prefix(view, target.is_some(), problems);
    let Some(annotation) = target else {
        return (terms, None);
    };
    let target = annotation.value.trim();
    terms.target = Some(target.to_owned());
    match rewrite(target) {
        Ok(rewrite) => (terms, Some(Rewrite { prefix, ..rewrite })),
        Err(why) => {
            problems.error(
                &view.subject,
                annotation.field(),
                "rewrite-invalid",
                format!("{target:?}: {why}"),
                "every path of the Ingress answers 503, as pods would see paths they are not for",
            );
            terms.broken = true;
            (terms, None)
        }
    }
}

fn rewrite(target: &str) -> Result<Rewrite, String> {
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) || target.contains('#') {
        return Err("a target has no blanks, no # and no letters but those of ASCII".to_owned());
    }
    if !target.starts_with(['/', '$']) {
        return Err("a target begins with / or with a variable".to_owned());
    }
    let drop_query = target.ends_with('?');
    let target = target.strip_suffix('?').unwrap_or(target);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    if path.split('/').any(|element| element == "..") {
        return Err("a target has no element ..".to_owned());
    }
    let path = template(path)?;
    let whole = |piece: &Piece| {
        let queries = [Variable::RequestUri, Variable::Args, Variable::IsArgs];
        matches!(piece, Piece::Variable(it) if queries.contains(it))
    };
    if path.pieces().iter().any(whole) {
        return Err("a variable with a query in it cannot be a part of a path".to_owned());
    }
    let query = query.filter(|query| !query.is_empty());
    Ok(Rewrite {
        path,
        query: query.map(template).transpose()?,
        drop_query,
        prefix: None,
    })
}

fn template(text: &str) -> Result<Template, String> {
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    let is_text = |piece: &&Piece| matches!(piece, Piece::Text(_));
    let pieces = template.pieces();
    let variables = pieces.len() - pieces.iter().filter(is_text).count();
    if variables > VARIABLES_MAX {
        return Err(format!("it has more than {VARIABLES_MAX} variables"));
    }
    Ok(template)
}

fn prefix(view: &View<'_>, rewrites: bool, problems: &mut Problems) -> Option<Template> {
    let annotation = given(view, "x-forwarded-prefix", problems)?;
    if !rewrites {
        let message = "it has a meaning only beside rewrite-target";
        report_prefix(view, annotation, message.to_owned(), problems);
        return None;
    }
    let value = annotation.value.trim();
    let read = match template(value) {
        Ok(_) if !value.bytes().all(|byte| byte.is_ascii_graphic()) => Err(format!(
            "{value:?} has blanks, or letters other than those of ASCII"
        )),
        read => read,
    };
    match read {
        Ok(template) => Some(template),
        Err(why) => {
            report_prefix(view, annotation, why, problems);
            None
        }
    }
}

fn report_prefix(
    view: &View<'_>,
    annotation: Annotation<'_>,
    message: String,
    problems: &mut Problems,
) {
    let code = "forwarded-prefix-invalid";
    let effect = "no X-Forwarded-Prefix is sent";
    problems.warn(&view.subject, annotation.field(), code, message, effect);
}
