//! Cursors of lists, as callers see them: opaque, and valid only for the list that they were made for. A cursor holds
//! the key of an order, which callers must not see, and cannot be forged.

use hmac::{Hmac, KeyInit, Mac};
use quittance_lifecycle::Key;
use quittance_ports::{OrderClass, Which};
use sha2::Sha256;
use subtle::ConstantTimeEq;

const MAC_BYTES: usize = 16;
const CURSOR_BYTES: usize = MAC_BYTES + 32;

/// Makes and reads the cursors of one list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CursorOf<'a>(pub(crate) Which<'a>);

impl CursorOf<'_> {
    /// Encrypts and signs a key. The MAC is also the nonce, so each key has its own mask.
    pub(crate) fn seal(self, root: &[u8; 32], key: &Key) -> String {
        let mac = self.mac(root, key);
        let masked = masked(root, &mac, key);
        mac.iter().chain(&masked.0).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a cursor; `None` if this gateway did not make it for this list.
    pub(crate) fn open(self, root: &[u8; 32], cursor: &str) -> Option<Key> {
        let bytes = bytes_of(cursor)?;
        let (mac, rest) = bytes.split_at(MAC_BYTES);
        let mac: [u8; MAC_BYTES] = mac.try_into().ok()?;
        let key = masked(root, &mac, &Key(rest.try_into().ok()?));
        bool::from(self.mac(root, &key).ct_eq(&mac)).then_some(key)
    }

    fn mac(self, root: &[u8; 32], key: &Key) -> [u8; MAC_BYTES] {
        let Which { class, tenant } = self.0;
        let class: &[u8] = match class {
            None => b"all",
            Some(OrderClass::Open) => b"open",
            Some(OrderClass::Dead) => b"dead",
            Some(OrderClass::AtRest) => b"rest",
        };
        let tenant = tenant.unwrap_or_default().as_bytes();
        let mac = hmac(root, &[b"quittance/cursor/1", class, tenant, &key.0]);
        mac[..MAC_BYTES].try_into().expect("half of it")
    }
}

fn masked(root: &[u8; 32], mac: &[u8; MAC_BYTES], key: &Key) -> Key {
    let mask = hmac(root, &[b"quittance/cursor-mask/1", mac]);
    Key(std::array::from_fn(|at| key.0[at] ^ mask[at]))
}

fn hmac(root: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(root).expect("HMAC takes a key of any length, and ours is 32 bytes");
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn bytes_of(text: &str) -> Option<[u8; CURSOR_BYTES]> {
    if text.len() != 2 * CURSOR_BYTES || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; CURSOR_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: [u8; 32] = [7; 32];

    #[test]
    fn a_cursor_leads_on_in_the_list_that_it_was_given_out_for_and_in_no_other() {
        let (key, list) = (Key([0xab; 32]), CursorOf(Which::ALL.of("bob")));
        let cursor = list.seal(&ROOT, &key);
        assert_eq!(list.open(&ROOT, &cursor), Some(key));
        assert!(!cursor.contains("abab"), "it does not show the key: {cursor}");
        assert_eq!(CursorOf(Which::ALL.of("alice")).open(&ROOT, &cursor), None);
        assert_eq!(CursorOf(Which::OPEN.of("bob")).open(&ROOT, &cursor), None);
        assert_eq!(list.open(&[8; 32], &cursor), None);
        for at in 0..cursor.len() {
            let mut forged = cursor.clone().into_bytes();
            forged[at] = if forged[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(list.open(&ROOT, std::str::from_utf8(&forged).unwrap()), None, "{at}");
        }
        for odd in ["", "ab", &key.to_string(), &cursor[1..], &format!("+{}", &cursor[1..])] {
            assert_eq!(list.open(&ROOT, odd), None, "{odd}");
        }
    }
}
