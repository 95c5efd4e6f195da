//! Maps and sets that are sorted lists.
//!
//! A tree pays from some thousands of keys on, and where they come and go in no order. Most of what we keep is a handful, or
//! its keys only grow; then a list is found in as fast and takes half the memory. It takes a tenth of the code as well: each
//! pair of key and value has its own copy of either in the program, of four kilobytes for a tree.
//!
//! Measured up to a start with 5,000 masters (and 1,000), whose keys only grow. What puts keys in in no order, or takes all of
//! them out from the front one by one, moves the rest each time: that is quadratic, a millisecond for 5,000 small keys and six for 10,000.

use std::borrow::Borrow;

/// A map in the order of its keys. The methods are those of [`std::collections::BTreeMap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted<K, V>(Vec<(K, V)>);

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Sorted<K, V> {
        Sorted::new()
    }
}

impl<K, V> Sorted<K, V> {
    #[must_use]
    pub const fn new() -> Sorted<K, V> {
        Sorted(Vec::new())
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + DoubleEndedIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + DoubleEndedIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> + DoubleEndedIterator {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl ExactSizeIterator<Item = V> + DoubleEndedIterator {
        self.0.into_iter().map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> + DoubleEndedIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Ord, V> Sorted<K, V> {
    /// Where the key is, or where it belongs.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    /// Returns what the key had before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &self.0[at].1)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.place(key).ok().map(|at| &mut self.0[at].1)
    }

    /// What the key has; it is made where there is nothing yet.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let at = self.place(&key).unwrap_or_else(|at| {
            self.0.insert(at, (key, V::default()));
            at
        });
        &mut self.0[at].1
    }

    /// Forgets the keys from this one on, as far as the condition holds without a break.
    pub fn remove_run<Q: Ord + ?Sized>(&mut self, from: &Q, gone: impl Fn(&K) -> bool)
    where
        K: Borrow<Q>,
    {
        let from = self.place(from).unwrap_or_else(|at| at);
        let count = self.0[from..].iter().take_while(|(key, _)| gone(key)).count();
        self.0.drain(from..from + count);
    }

    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.place(key).is_ok()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Sorted<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Sorted<K, V> {
        let mut map = Sorted::new();
        for (key, value) in pairs {
            map.insert(key, value);
        }
        map
    }
}

/// A set in order. The methods are those of [`std::collections::BTreeSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<T>(Sorted<T, ()>);

impl<T> Default for SortedSet<T> {
    fn default() -> SortedSet<T> {
        SortedSet::new()
    }
}

impl<T> SortedSet<T> {
    #[must_use]
    pub const fn new() -> SortedSet<T> {
        SortedSet(Sorted::new())
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator + Clone {
        self.0.keys()
    }

    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    pub fn pop_first(&mut self) -> Option<T> {
        let list = &mut self.0.0;
        if list.is_empty() { None } else { Some(list.remove(0).0) }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Ord> SortedSet<T> {
    /// Whether it is new.
    pub fn insert(&mut self, item: T) -> bool {
        self.0.insert(item, ()).is_none()
    }

    /// Whether it was there.
    pub fn remove<Q: Ord + ?Sized>(&mut self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.remove(item).is_some()
    }

    #[must_use]
    pub fn contains<Q: Ord + ?Sized>(&self, item: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.contains_key(item)
    }
}

/// One by one, where sorting all at once would do: std's sort would be compiled once more for each type, and what is collected
/// is little or in order already.
impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> SortedSet<T> {
        SortedSet(items.into_iter().map(|item| (item, ())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn it_does_what_a_tree_does(steps in prop::collection::vec((0..6, 0u8..20, 0u32..9), 0..60)) {
            let (mut list, mut tree) = (Sorted::new(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(list.remove(&key), tree.remove(&key)),
                    1 => {
                        *list.or_default(key) += value;
                        *tree.entry(key).or_default() += value;
                    }
                    2 => {
                        list.retain(|&known, _| known % 7 != key);
                        tree.retain(|&known, _| known % 7 != key);
                    }
                    3 => {
                        list.remove_run(&key, |&known| u32::from(known) < u32::from(key) + value);
                        tree.retain(|&known, _| known < key || u32::from(known) >= u32::from(key) + value);
                    }
                    _ => prop_assert_eq!(list.insert(key, value), tree.insert(key, value)),
                }
                prop_assert!(list.iter().eq(&tree) && list.keys().eq(tree.keys()) && list.values().eq(tree.values()));
                prop_assert_eq!((list.len(), list.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert_eq!((list.get(&key), list.contains_key(&key)), (tree.get(&key), tree.contains_key(&key)));
                prop_assert_eq!(list.get_mut(&key), tree.get_mut(&key));
            }
            prop_assert_eq!(tree.into_iter().rev().collect::<Sorted<_, _>>(), list.clone());
            list.clear();
            prop_assert_eq!(list, Sorted::default());
        }

        #[test]
        fn a_set_does_so_too(steps in prop::collection::vec((0..3, 0u8..20), 0..60)) {
            let (mut list, mut tree) = (SortedSet::new(), BTreeSet::new());
            for (step, item) in steps {
                match step {
                    0 => prop_assert_eq!(list.remove(&item), tree.remove(&item)),
                    1 => prop_assert_eq!(list.pop_first(), tree.pop_first()),
                    _ => prop_assert_eq!(list.insert(item), tree.insert(item)),
                }
                prop_assert!(list.iter().eq(&tree) && list.first() == tree.first() && list.len() == tree.len());
                prop_assert_eq!((list.contains(&item), list.is_empty()), (tree.contains(&item), tree.is_empty()));
            }
            prop_assert_eq!(tree.into_iter().rev().collect::<SortedSet<_>>(), list.clone());
            list.clear();
            prop_assert_eq!(list, SortedSet::default());
        }
    }
}
