//! Signatures as in Standard Webhooks. The receiver can check that we sent the message, that it was not changed, and
//! that it is not an old message that was sent again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use quittance_lifecycle::{Key, Timestamp};
use sha2::Sha256;

/// The headers of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedHeaders {
    pub(crate) id: String,
    pub(crate) timestamp: String,
    pub(crate) signature: String,
}

/// The id of a message. A retry has the same id, so that the receiver can tell it from a new message.
pub(crate) fn message_id(order: &Key, born: Timestamp, webhook: u32) -> String {
    format!("msg_{}_{}_{webhook}", &order.to_string()[..24], born.as_millis())
}

pub(crate) fn sign(secret: &[u8; 32], id: String, now: Timestamp, body: &[u8]) -> SignedHeaders {
    let timestamp = (now.as_millis() / 1000).to_string();
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length, and ours is 32 bytes");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    SignedHeaders { id, timestamp, signature }
}

/// The secret in the text form that libraries for Standard Webhooks read.
#[must_use]
pub fn secret_for_people(secret: &[u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// The secret of a tenant for which the operator has set none. It is derived from the root secret, so it is equal on
/// every node.
#[must_use]
pub fn derived_secret(root: &[u8; 32], tenant: &str) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(root).expect("HMAC takes a key of any length, and ours is 32 bytes");
    mac.update(b"quittance/webhook/1");
    mac.update(tenant.as_bytes());
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard, which its libraries also check.
    #[test]
    fn a_signature_is_what_the_libraries_expect() {
        let secret: [u8; 32] = core::array::from_fn(|n| u8::try_from(n).unwrap_or(0));
        let signed = sign(&secret, "msg_1".into(), Timestamp::from_millis(1_700_000_000_999), b"{\"a\":1}");
        assert_eq!(signed.timestamp, "1700000000");
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
        mac.update(b"msg_1.1700000000.{\"a\":1}");
        assert_eq!(signed.signature, format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    }

    #[test]
    fn each_tenant_has_a_secret_of_its_own() {
        assert_ne!(derived_secret(&[1; 32], "a"), derived_secret(&[1; 32], "b"));
        assert_ne!(derived_secret(&[1; 32], "a"), derived_secret(&[2; 32], "a"));
    }
}
