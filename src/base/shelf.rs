//! A map for large values.
//!
//! A list makes room for more than it holds, and moves what it holds; a map of one or two large values would pay for four, and
//! with a thousand masters, each with a replica and two peers, that would be most of what they take. Here each value has a
//! place of its own and the list holds where that is.

use super::Sorted;
use std::borrow::Borrow;
use std::ops::Index;

/// A map in the order of its keys. The methods are those of [`std::collections::BTreeMap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shelf<K, V>(Sorted<K, Box<V>>);

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Shelf<K, V> {
        Shelf(Sorted::new())
    }
}

impl<K: Ord, V> Shelf<K, V> {
    #[must_use]
    pub fn new() -> Shelf<K, V> {
        Shelf::default()
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert(key, Box::new(value));
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).map(|value| *value)
    }

    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(|value| &**value)
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key).map(|value| &mut **value)
    }

    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + DoubleEndedIterator + Clone {
        self.0.keys()
    }

    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + DoubleEndedIterator + Clone {
        self.0.values().map(|value| &**value)
    }

    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> + DoubleEndedIterator {
        self.0.values_mut().map(|value| &mut **value)
    }

    pub fn into_values(self) -> impl ExactSizeIterator<Item = V> + DoubleEndedIterator {
        self.0.into_values().map(|value| *value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> + DoubleEndedIterator + Clone {
        self.0.iter().map(|(key, value)| (key, &**value))
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

impl<K: Ord + Borrow<Q>, Q: Ord + ?Sized, V> Index<&Q> for Shelf<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the key is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map_in_the_order_of_its_keys() {
        let mut shelf = Shelf::new();
        for key in [3, 1, 2] {
            shelf.insert(key, [key; 20]);
        }
        shelf.insert(2, [7; 20]);
        shelf.values_mut().for_each(|value| value[1] = 0);
        shelf.get_mut(&1).unwrap()[2] = 9;
        assert_eq!(shelf.keys().copied().collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(shelf.values().map(|value| value[0]).collect::<Vec<_>>(), [1, 7, 3]);
        assert!(shelf.iter().all(|(key, value)| shelf[key] == *value && value[1] == 0));
        assert_eq!((shelf.len(), shelf.contains_key(&1), shelf.get(&4)), (3, true, None));
        assert_eq!(shelf.remove(&1).map(|value| value[2]), Some(9));
        assert_eq!(shelf.remove(&1), None);
        assert_eq!(shelf.into_values().map(|value| value[0]).collect::<Vec<_>>(), [7, 3]);
        assert!(Shelf::<u8, u8>::default().is_empty());
    }
}
