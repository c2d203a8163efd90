//! The orders in hand of a node that stops, in one file in its folder. The store may be empty at the next start, and
//! other nodes may not know of the orders. The next process of this node compares them with the store, and puts back
//! what the store has forgotten. The file is not needed if the store had them all at the stop and is still the same.

use crate::callback_secret;
use quittance_lifecycle::Order;
use quittance_record::{decode_order, decode_terms, encode_order, encode_terms};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the file for the orders that a node had in hand when it stopped.
pub const IN_HAND_NAME: &str = "orders-in-hand";
/// The new name of a file with orders that this version cannot read.
const UNREADABLE_NAME: &str = "orders-in-hand.unreadable";
/// The most bytes of the file. Over this limit the last orders are left out, which are answered ones.
const BYTES_MAX: usize = 128 << 20;
/// The line after the address if the store had all of these orders.
const ALL_STORED: &[u8] = b"all-stored";

#[derive(Clone, Debug)]
pub(crate) struct InHandFile {
    dir: PathBuf,
    /// The address of the store of these orders.
    address: String,
}

/// The orders in the file.
#[derive(Debug, Default)]
pub(crate) struct KeptOrders {
    pub(crate) orders: Vec<Order>,
    /// Whether the store had all of these orders when the file was written.
    pub(crate) is_all_stored: bool,
    /// How many orders cannot be read.
    pub(crate) unreadable: usize,
}

impl InHandFile {
    pub(crate) const fn new(dir: PathBuf, address: String) -> Self {
        Self { dir, address }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(IN_HAND_NAME)
    }

    /// Writes these orders into the file, in place of its old content. Returns how many fit. They are safe on the
    /// disk when this returns.
    pub(crate) fn keep(&self, orders: &[Arc<Order>], is_all_stored: bool) -> io::Result<usize> {
        let mut bytes = format!("{}\n", self.address).into_bytes();
        if is_all_stored {
            bytes.extend_from_slice(ALL_STORED);
            bytes.push(b'\n');
        }
        let mut kept = 0;
        for order in orders {
            let (terms, order) = (encode_terms(&order.terms), encode_order(order));
            if bytes.len() + terms.len() + order.len() + 2 > BYTES_MAX {
                break;
            }
            for line in [terms, order] {
                bytes.extend_from_slice(&line);
                bytes.push(b'\n');
            }
            kept += 1;
        }
        callback_secret::keep(&self.dir, IN_HAND_NAME, &bytes)?;
        Ok(kept)
    }

    /// Reads the file. `None` if there is no file, or if it belongs to another store.
    pub(crate) fn read(&self) -> io::Result<Option<KeptOrders>> {
        let bytes = match fs::read(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        if lines.next() != Some(self.address.as_bytes()) {
            return Ok(None);
        }
        let is_all_stored = lines.next_if_eq(&ALL_STORED).is_some();
        let mut kept = KeptOrders { is_all_stored, ..KeptOrders::default() };
        while let Some(terms) = lines.next().filter(|line| !line.is_empty()) {
            let order = lines.next().unwrap_or_default();
            match decode_terms(terms).and_then(|terms| decode_order(order, Arc::new(terms))) {
                Ok(order) => kept.orders.push(order),
                Err(_) => kept.unreadable += 1,
            }
        }
        Ok(Some(kept))
    }

    /// Removes the file, because the store has the orders. A file with unreadable orders is renamed, for a version
    /// that can read them.
    pub(crate) fn remove(&self, unreadable: usize) -> io::Result<()> {
        if unreadable > 0 {
            return fs::rename(self.path(), self.dir.join(UNREADABLE_NAME));
        }
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::{Draft, KeySettings, Placement, Policy, Timestamp, place};

    fn order(site_key: &str) -> Arc<Order> {
        let kind = quittance_protocol::kinds::kind("turnstile").expect("a known kind");
        let draft = Draft::new("ada").with("sitekey", site_key).with("pageurl", "https://shop.example.com/");
        let now = Timestamp::from_millis(1_000);
        let (key, terms) =
            draft.check(&kind, KeySettings::default(), &Policy::DEFAULT, now, 7).expect("the order is good");
        match place(None, None, key, &Arc::new(terms), now, &Policy::DEFAULT) {
            Placement::Commit { advance, .. } => Arc::new(advance.next),
            other => panic!("a new order is made, not {other:?}"),
        }
    }

    #[test]
    fn orders_in_hand_are_read_as_they_were_kept_and_only_for_their_own_store() {
        let dir = tempfile::tempdir().unwrap();
        let file = InHandFile::new(dir.path().to_owned(), "redis://a:1".into());
        assert!(file.read().unwrap().is_none());
        let orders = [order("0x4AAAAAAA1"), order("0x4AAAAAAA2")];
        assert_eq!(file.keep(&orders, true).unwrap(), 2);
        assert!(file.read().unwrap().expect("it was kept").is_all_stored);
        assert_eq!(file.keep(&orders, false).unwrap(), 2);
        let kept = file.read().unwrap().expect("it was kept");
        assert_eq!((kept.unreadable, kept.is_all_stored), (0, false));
        assert_eq!(kept.orders, orders.map(Arc::unwrap_or_clone));
        let other = InHandFile::new(dir.path().to_owned(), "redis://b:1".into());
        assert!(other.read().unwrap().is_none());

        let bytes = fs::read(file.path()).unwrap();
        fs::write(file.path(), &bytes[..bytes.len() - 20]).unwrap();
        let kept = file.read().unwrap().expect("it was kept");
        assert_eq!((kept.orders.len(), kept.unreadable), (1, 1));
        file.remove(kept.unreadable).unwrap();
        assert!(
            !file.path().exists() && dir.path().join(UNREADABLE_NAME).exists(),
            "a person may still need it"
        );
    }
}
