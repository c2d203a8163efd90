//! One call of a script: the form, with the key in it, and the answer, without.

use bytes::Bytes;
use quittance_protocol::classic::encode::{EncodedForm, encode};
use quittance_protocol::classic::{Form, Part};
use quittance_wire::{ApiKey, Client, Reply, WireError};
use std::time::Duration;

pub(crate) struct Exchange {
    pub(crate) client: Client,
    pub(crate) key: ApiKey,
}

impl Exchange {
    /// Sends the form with the key in it, by body, so that the key stands in no address.
    pub(crate) async fn post(
        &self,
        script: &str,
        mut form: Form,
        timeout: Duration,
    ) -> Result<Reply, WireError> {
        form.0.insert("key".to_owned(), Part::Text(self.key.reveal().to_owned()));
        form.0.insert("json".to_owned(), Part::Text("1".to_owned()));
        let EncodedForm { content_type, body } = encode(&form);
        let reply = self.client.post(script, &[], &content_type, Bytes::from(body), timeout).await?;
        Ok(Reply { body: self.key.taken_out_of(reply.body), ..reply })
    }
}
