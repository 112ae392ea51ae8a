//! What is changed in answers: `proxy-redirect-from`, `proxy-redirect-to`, `proxy-cookie-domain`,
//! `proxy-cookie-path`.

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::report::Problems;
use crate::model::{AnswerEdits, Replace};

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<AnswerEdits> {
    let edits = AnswerEdits {
        redirect: redirect(view, problems),
        cookie_domain: pair(view, "proxy-cookie-domain", problems).map(without_dots),
        cookie_path: pair(view, "proxy-cookie-path", problems),
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
            let from = plain(view, from, problems)?;
            let to = plain(view, to, problems)?;
            return Some(Replace {
                from: from.into(),
                to: to.into(),
            });
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

/// One text without nginx's syntax.
fn plain<'a>(
    view: &View<'_>,
    annotation: Annotation<'a>,
    problems: &mut Problems,
) -> Option<&'a str> {
    let text = annotation.value.trim();
    match fault(text) {
        None => Some(text),
        Some(why) => {
            report(view, annotation, &why, problems);
            None
        }
    }
}

/// Two texts, as in `inner.example a.example`.
fn pair(view: &View<'_>, name: &str, problems: &mut Problems) -> Option<Replace> {
    let annotation = given(view, name, problems)?;
    let mut words = annotation.value.split_ascii_whitespace();
    let why = match (words.next(), words.next(), words.next()) {
        (Some("off"), None, _) => return None,
        (Some(from), Some(to), None) => match fault(from).or_else(|| fault(to)) {
            None => {
                return Some(Replace {
                    from: from.into(),
                    to: to.into(),
                });
            }
            Some(why) => why,
        },
        _ => "it is neither off nor two texts with a blank between them".to_owned(),
    };
    report(view, annotation, &why, problems);
    None
}

fn without_dots(replace: Replace) -> Replace {
    let bare = |text: &str| text.strip_prefix('.').unwrap_or(text).into();
    Replace {
        from: bare(&replace.from),
        to: bare(&replace.to),
    }
}

/// Why a text cannot stand in a field of an answer as it is.
fn fault(text: &str) -> Option<String> {
    if text.starts_with('~') {
        return Some("a regular expression is not supported here".to_owned());
    }
    let odd = |byte: u8| !byte.is_ascii_graphic() || b"$;,\"'\\{}".contains(&byte);
    let odd = text.bytes().find(|byte| odd(*byte))?;
    Some(format!("{:?} cannot stand in it", char::from(odd)))
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
