//! Things that are shown in the order in which they were given and found by name.
//!
//! A user may have thousands of rules. The 10,000 that are the bound, patterns that come in no order, are taken in within some
//! 80 ms, of which the list moves its things for 50; trees in its place would be free of that, and 23 KB more of program.

use crate::base::Sorted;
use std::borrow::Borrow;

/// A list without duplicates, each thing with a value.
#[derive(Clone, Debug)]
pub(super) struct Ordered<K, V = ()> {
    /// With the place of each in the order. Places are not given twice.
    known: Sorted<K, (u64, V)>,
    next: u64,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Ordered<K, V> {
        Ordered { known: Sorted::new(), next: 0 }
    }
}

/// Equal are those that are shown equal.
impl<K: Ord, V: PartialEq> PartialEq for Ordered<K, V> {
    fn eq(&self, other: &Ordered<K, V>) -> bool {
        self.in_order() == other.in_order()
    }
}

impl<K: Ord, V: Eq> Eq for Ordered<K, V> {}

impl<K: Ord, V> Ordered<K, V> {
    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// Puts it at the end; if it was known, it moves there.
    pub fn push(&mut self, key: K, value: V) {
        self.known.insert(key, (self.next, value));
        self.next += 1;
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.known.get_mut(key).map(|(_, value)| value)
    }

    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.known.contains_key(key)
    }

    /// Whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.known.remove(key).is_some()
    }

    /// In the order of their names.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.known.keys()
    }

    /// In the order in which they were given.
    pub fn in_order(&self) -> Vec<(&K, &V)> {
        let all: Vec<_> = self.known.iter().collect();
        // Numbers are sorted, so that there is one sort for all kinds of things.
        let mut order: Vec<(u64, usize)> = all.iter().enumerate().map(|(at, (_, (place, _)))| (*place, at)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, at)| (all[at].0, &all[at].1.1)).collect()
    }
}

impl<V> Ordered<String, V> {
    /// Forgets all whose names begin so.
    pub fn remove_beginning(&mut self, beginning: &str) {
        self.known.remove_run(beginning, |name| name.starts_with(beginning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_shown_once_in_the_place_that_it_was_given_last() {
        let mut list = Ordered::default();
        for (name, value) in [("c", 1), ("a", 2), ("b|x", 3), ("b", 4), ("a", 5), ("b|y", 6), ("bc", 7)] {
            list.push(name.to_owned(), value);
        }
        let shown = |list: &Ordered<String, i32>| -> Vec<String> {
            list.in_order().iter().map(|(name, value)| format!("{name}{value}")).collect()
        };
        assert_eq!(shown(&list), ["c1", "b|x3", "b4", "a5", "b|y6", "bc7"]);
        list.remove_beginning("b|");
        assert_eq!(shown(&list), ["c1", "b4", "a5", "bc7"]);
        assert!(list.remove("a") && !list.remove("a") && !list.contains("a") && list.len() == 3);
        // How they came there makes no difference.
        let mut other = Ordered::default();
        for (name, value) in [("c", 1), ("b", 4), ("bc", 7)] {
            other.push(name.to_owned(), value);
        }
        assert_eq!(list, other);
        other.push("c".to_owned(), 1);
        assert_ne!(list, other);
    }
}
