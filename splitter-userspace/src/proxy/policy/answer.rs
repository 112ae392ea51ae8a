//! Changes in the fields of an answer.

use http::header::{HeaderMap, HeaderValue, LOCATION, REFRESH, SET_COOKIE};

use crate::model::{AnswerEdits, CustomHeaders};
use crate::routing::{Wanted, answer};

/// Changes what the pod says of other places and of cookies.
pub fn edit(edits: &AnswerEdits, wanted: &Wanted<'_>, headers: &mut HeaderMap) {
    if edits.redirect.is_some() {
        for (name, change) in [
            (LOCATION, answer::location as Change),
            (REFRESH, answer::refresh as Change),
        ] {
            if let Some(value) = headers.get_mut(name) {
                replace(edits, wanted, change, value);
            }
        }
    }
    if edits.cookie_domain.is_none() && edits.cookie_path.is_none() {
        return;
    }
    if let http::header::Entry::Occupied(mut cookies) = headers.entry(SET_COOKIE) {
        for value in cookies.iter_mut() {
            replace(edits, wanted, answer::cookie, value);
        }
    }
}

type Change = fn(&AnswerEdits, &Wanted<'_>, &[u8]) -> Option<Vec<u8>>;

fn replace(edits: &AnswerEdits, wanted: &Wanted<'_>, change: Change, value: &mut HeaderValue) {
    let changed = change(edits, wanted, value.as_bytes());
    if let Some(Ok(changed)) =
        changed.map(|it| HeaderValue::from_maybe_shared(bytes::Bytes::from(it)))
    {
        *value = changed;
    }
}

/// Sets the fields that every answer has.
pub fn set(fields: &CustomHeaders, headers: &mut HeaderMap) {
    for (name, value) in &fields.0 {
        headers.insert(name, value.clone());
    }
}
