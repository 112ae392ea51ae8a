//! What is changed in answers: `proxy-redirect-from`, `proxy-redirect-to`, `proxy-cookie-domain`,
//! `proxy-cookie-path`. As in nginx, what is looked for is a pattern behind `~` (behind `~*`, and in
//! domains, without regard to case), and variables are filled in.

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::pattern;
use crate::k8s::translate::report::Problems;
use crate::model::{AnswerEdits, Pattern, Replace, Sought, Template};

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<AnswerEdits> {
    let edits = AnswerEdits {
        redirect: redirect(view, problems),
        cookie_domain: pair(view, "proxy-cookie-domain", domain, problems),
        cookie_path: pair(view, "proxy-cookie-path", replace, problems),
    };
    (edits != AnswerEdits::default()).then_some(edits)
}

/// `off` and `default` say the same: nginx's default looks for the address that it asks pods by,
/// which is the name of a list of pods and stands in no answer.
fn redirect(view: &View<'_>, problems: &mut Problems) -> Option<Replace> {
    let (from, to) = ("proxy-redirect-from", "proxy-redirect-to");
    let off = |it: &Annotation<'_>| ["off", "default"].contains(&it.value.trim());
    let given_from = given(view, from, problems);
    let given_to = given(view, to, problems);
    if given_from.as_ref().is_some_and(off) {
        return None;
    }
    let given_to = given_to.filter(|it| it.value.trim() != "off");
    let (lone, missing) = match (given_from, given_to) {
        (Some(from), Some(to)) => {
            let sought = sought(from.value.trim(), false);
            let sought = told(view, from, sought, problems)?;
            let target = target(&sought, to.value.trim());
            let to = told(view, to, target, problems)?;
            return Some(Replace { from: sought, to });
        }
        (Some(lone), None) => (lone, to),
        (None, Some(lone)) => (lone, from),
        (None, None) => return None,
    };
    // A default is completed by each Ingress for itself.
    if view.annotations.own(lone.name()).is_some() {
        problems.warn(
            &view.subject,
            lone.field(),
            "answer-edit-incomplete",
            format!("it has a meaning only beside {missing}"),
            UNCHANGED,
        );
    }
    None
}

/// What happens to an answer whose change cannot be read.
const UNCHANGED: &str = "it counts as not set: answers are passed on as they are";

/// What was read, or nothing and a Problem.
fn told<T>(
    view: &View<'_>,
    annotation: Annotation<'_>,
    read: Result<T, String>,
    problems: &mut Problems,
) -> Option<T> {
    read.map_err(|why| report(view, annotation, &why, problems))
        .ok()
}

/// Two texts, as in `inner.example a.example`.
fn pair(
    view: &View<'_>,
    name: &str,
    read: fn(&str, &str) -> Result<Replace, String>,
    problems: &mut Problems,
) -> Option<Replace> {
    let annotation = given(view, name, problems)?;
    let mut words = annotation.value.split_ascii_whitespace();
    let replace = match (words.next(), words.next(), words.next()) {
        (Some("off"), None, _) => return None,
        (Some(from), Some(to), None) => read(from, to),
        _ => Err("it is neither off nor two texts with a blank between them".to_owned()),
    };
    told(view, annotation, replace, problems)
}

fn replace(from: &str, to: &str) -> Result<Replace, String> {
    let from = sought(from, false)?;
    let to = target(&from, to)?;
    Ok(Replace { from, to })
}

/// Of domains the dots before them do not count, unless a pattern looks.
fn domain(from: &str, to: &str) -> Result<Replace, String> {
    let bare = |text: &str| text.strip_prefix('.').unwrap_or(text).to_owned();
    let (from, to) = match from.starts_with('~') {
        true => (from.to_owned(), to.to_owned()),
        false => (bare(from), bare(to)),
    };
    let from = sought(&from, true)?;
    let to = target(&from, &to)?;
    Ok(Replace { from, to })
}

fn sought(text: &str, any_case: bool) -> Result<Sought, String> {
    let Some(behind) = text.strip_prefix('~') else {
        let template = template(text)?;
        return match template.has_captures() {
            true => Err("there is no pattern whose groups could stand in it".to_owned()),
            false => Ok(Sought::Text(template)),
        };
    };
    let (any_case, text) = match behind.strip_prefix('*') {
        Some(text) => (true, text),
        None => (any_case, behind),
    };
    let pattern = pattern::compile(text).and_then(|pattern: Pattern| match any_case {
        // As it stood it was a pattern, so nothing in it ends the group.
        true => pattern::compile(&format!("(?i:{text})")),
        false => Ok(pattern),
    });
    Ok(Sought::Pattern(pattern?))
}

fn target(sought: &Sought, text: &str) -> Result<Template, String> {
    let template = template(text)?;
    match (sought, template.has_captures()) {
        (Sought::Text(_), true) => {
            Err("there is no pattern whose groups could stand in it".to_owned())
        }
        _ => Ok(template),
    }
}

/// A text that can stand in a field of an answer.
fn template(text: &str) -> Result<Template, String> {
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    let odd = |byte: u8| !byte.is_ascii_graphic() || b";,\"'\\".contains(&byte);
    match text.bytes().find(|byte| odd(*byte)) {
        Some(odd) => Err(format!("{:?} cannot stand in it", char::from(odd))),
        None => Ok(template),
    }
}

fn report(view: &View<'_>, annotation: Annotation<'_>, why: &str, problems: &mut Problems) {
    problems.error(
        &view.subject,
        annotation.field(),
        "answer-edit-invalid",
        format!("{:?}: {why}", annotation.value),
        UNCHANGED,
    );
}
