//! What belongs to sockets, found by their [`Token`]s: in the places that the tokens name, which are small and dense.

use crate::net::Token;

/// A map from tokens.
#[derive(Debug)]
pub struct Slots<V> {
    places: Vec<Option<(Token, V)>>,
}

impl<V> Slots<V> {
    #[must_use]
    pub const fn new() -> Slots<V> {
        Slots { places: Vec::new() }
    }

    /// Puts it in the place of whatever an earlier owner of the slot has left.
    pub fn insert(&mut self, token: Token, value: V) {
        if self.places.len() <= token.slot() {
            self.places.resize_with(token.slot() + 1, || None);
        }
        self.places[token.slot()] = Some((token, value));
    }

    pub fn remove(&mut self, token: Token) -> Option<V> {
        let place = self.places.get_mut(token.slot())?;
        let (_, value) = place.take_if(|(owner, _)| *owner == token)?;
        Some(value)
    }

    #[must_use]
    pub fn get(&self, token: Token) -> Option<&V> {
        let (owner, value) = self.places.get(token.slot())?.as_ref()?;
        (*owner == token).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_owner_of_a_slot_is_not_taken_for_the_one_before() {
        let tokens: [Token; 4] = std::array::from_fn(|slot| Token::made_up(slot, slot as u32));
        let mut slots = Slots::new();
        tokens.iter().zip(["a", "b", "c", "d"]).for_each(|(&token, value)| slots.insert(token, value));
        assert_eq!((slots.get(tokens[0]), slots.get(tokens[2])), (Some(&"a"), Some(&"c")));
        assert_eq!((slots.remove(tokens[2]), slots.remove(tokens[2])), (Some("c"), None));
        assert_eq!(slots.get(tokens[2]), None);

        let later = Token::made_up(1, 4);
        slots.insert(later, "e");
        assert_eq!(
            (slots.get(later).copied(), slots.get(tokens[1]).copied(), slots.remove(tokens[1])),
            (Some("e"), None, None)
        );
        assert_eq!(slots.get(later), Some(&"e"));
        let beyond = Token::made_up(100, 5);
        assert_eq!((slots.get(beyond).copied(), slots.remove(beyond)), (None, None));
    }
}
