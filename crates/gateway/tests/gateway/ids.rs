//! Tests of the ids that clients see.

use quittance_gateway::{NotAnId, OrderId};
use quittance_lifecycle::Key;

#[test]
fn an_id_fits_into_every_client_and_leads_back_to_its_key() {
    for first in [0x00, 0x01, 0x7f, 0x80, 0xff] {
        for is_from_stock in [false, true] {
            let key = Key([first; 32]);
            let id = OrderId::new(&key, is_from_stock);
            assert!((1..=1 << 53).contains(&id.number()), "{id}");
            assert_eq!(id.head(), key.head());
            assert_eq!(id.is_from_stock(), is_from_stock);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}

#[test]
fn what_is_no_id_is_not_taken_for_one() {
    for odd in
        ["", "0", "01", "-1", "+1", " 1", "1 ", "1.0", "1e3", "9007199254740993", "٣", "99999999999999999999"]
    {
        assert_eq!(odd.parse::<OrderId>(), Err(NotAnId), "{odd}");
    }
    assert!("9007199254740992".parse::<OrderId>().is_ok(), "2^53 itself");
}
