//! What makes handshakes differ, as a digest: sessions of one kind are not resumed by another.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};

use super::Authorities;
use crate::model::{Handshake, ObjectRef};

/// The digest of a kind of handshake with the present content of its authorities: another one once
/// these, or what they have revoked, are others. The same on every node.
pub(super) fn digest(
    handshake: &Handshake,
    authorities: &HashMap<ObjectRef, Arc<Authorities>>,
) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    let mut add = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_be_bytes());
        context.update(bytes);
    };
    let terms = &handshake.terms;
    add(format!("{:?} {}", terms.versions, terms.server_order).as_bytes());
    for suite in &terms.suites {
        add(suite.name().as_bytes());
    }
    for secret in &handshake.authorities {
        add(secret.to_string().as_bytes());
        let content = authorities.get(secret);
        add(content.map_or(&[][..], |it| it.digest()));
    }
    finish(context)
}

/// The digest of the entries of a Secret with authorities.
pub(super) fn of_entries<'d>(entries: impl IntoIterator<Item = Option<&'d [u8]>>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for entry in entries {
        let length = entry.map_or(u64::MAX, |it| it.len() as u64);
        context.update(&length.to_be_bytes());
        context.update(entry.unwrap_or_default());
    }
    finish(context)
}

fn finish(context: Context) -> [u8; 32] {
    let mut digest = [0; 32];
    // Of the same length.
    let made = context.finish();
    digest
        .iter_mut()
        .zip(made.as_ref())
        .for_each(|(to, from)| *to = *from);
    digest
}
