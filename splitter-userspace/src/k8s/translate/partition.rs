//! Which Ingresses have hosts in common, directly or through others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Sorts things `0..hosts.len()` into groups: two that share a key are in one group, and so is what
/// either shares a key with. Groups, and things in them, keep the order of the things.
pub(super) fn partition<K: Eq + Hash>(
    keys: impl IntoIterator<Item = impl IntoIterator<Item = K>>,
) -> Vec<Vec<usize>> {
    let mut parents: Vec<usize> = Vec::new();
    let mut first: HashMap<K, usize> = HashMap::new();
    for (thing, keys) in keys.into_iter().enumerate() {
        parents.push(thing);
        for key in keys {
            match first.entry(key) {
                Entry::Vacant(free) => {
                    free.insert(thing);
                }
                Entry::Occupied(other) => join(&mut parents, *other.get(), thing),
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for thing in 0..parents.len() {
        let root = root(&mut parents, thing);
        let place = *places.entry(root).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(place) {
            group.push(thing);
        }
    }
    groups
}

fn join(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    // The lower number is the root, so no order of keys makes another one.
    let (low, high) = (one.min(other), one.max(other));
    if let Some(parent) = parents.get_mut(high) {
        *parent = low;
    }
}

fn root(parents: &mut [usize], thing: usize) -> usize {
    let mut at = thing;
    while let Some(&parent) = parents.get(at) {
        if parent == at {
            break;
        }
        // Halves the way for whoever comes next.
        let above = parents.get(parent).copied().unwrap_or(parent);
        if let Some(place) = parents.get_mut(at) {
            *place = above;
        }
        at = above;
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn those_that_share_a_key_are_together() {
        let keys = [
            vec!["a"],
            vec!["b", "c"],
            vec![],
            vec!["c", "d"],
            vec!["a"],
            vec!["d", "a"],
            vec!["x"],
        ];
        assert_eq!(partition(keys), [vec![0, 1, 3, 4, 5], vec![2], vec![6]]);
    }

    proptest! {
        #[test]
        fn no_two_groups_share_a_key_and_none_could_be_split(
            things in proptest::collection::vec(proptest::collection::vec(0u8..20, 0..4), 0..30),
        ) {
            let groups = partition(things.clone());
            let all: Vec<usize> = groups.iter().flatten().copied().collect();
            prop_assert_eq!(all.iter().copied().collect::<BTreeSet<_>>().len(), things.len());
            let keys = |group: &[usize]| -> BTreeSet<u8> {
                group.iter().flat_map(|it| things[*it].clone()).collect()
            };
            for (index, group) in groups.iter().enumerate() {
                prop_assert!(group.is_sorted());
                for other in &groups[..index] {
                    prop_assert!(keys(group).is_disjoint(&keys(other)));
                }
                // Reached from its first member by shared keys alone.
                let mut reached = BTreeSet::from([group[0]]);
                loop {
                    let known: Vec<_> = reached.iter().copied().collect();
                    let seen = keys(&known);
                    let meets = |it: &&usize| things[**it].iter().any(|key| seen.contains(key));
                    let more: BTreeSet<_> = group.iter().filter(meets).copied().collect();
                    if more.is_subset(&reached) {
                        break;
                    }
                    reached.extend(more);
                }
                prop_assert_eq!(reached.len(), group.len());
            }
        }
    }
}
