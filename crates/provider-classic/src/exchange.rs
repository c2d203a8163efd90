//! One call: the request, its answer, and, when there is none, whether the request can have arrived. A call is tried
//! again in one case only: on a connection that had been used before and on which not one byte of this
//! request was written.

use crate::pool::{Line, Pool, Reply};
use crate::settings::{ApiKey, Base};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use quittance_classic::encode::{Encoded, encode};
use quittance_classic::{Form, Part};
use std::time::Duration;
use tokio::time::timeout;

const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));

/// A key of this length is no accident in an answer: it was repeated, and is taken out.
const TELLING_KEY_BYTES: usize = 16;

/// Why there is no answer. The words are for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Not one byte of it was handed to the kernel.
    NeverSent(String),
    WhoKnows(String),
}

pub(crate) struct Exchange {
    pub(crate) base: Base,
    pub(crate) key: ApiKey,
    pub(crate) pool: Pool,
    pub(crate) response_bytes_max: usize,
}

impl Exchange {
    /// Sends the form with the key in it, by body, so that the key stands in no address.
    pub(crate) async fn post(
        &self,
        script: &str,
        mut form: Form,
        patience: Duration,
    ) -> Result<Reply, Trouble> {
        form.0.insert("key".to_owned(), Part::Text(self.key.reveal().to_owned()));
        form.0.insert("json".to_owned(), Part::Text("1".to_owned()));
        let Encoded { content_type, body } = encode(&form);
        let body = Bytes::from(body);
        if let Some(line) = self.pool.rested() {
            match self.call(line, script, &content_type, body.clone(), patience).await {
                Err(Trouble::NeverSent(_)) => {}
                done => return done,
            }
        }
        let line = self.pool.fresh().await.map_err(Trouble::NeverSent)?;
        self.call(line, script, &content_type, body, patience).await
    }

    async fn call(
        &self,
        mut line: Line,
        script: &str,
        content_type: &str,
        body: Bytes,
        patience: Duration,
    ) -> Result<Reply, Trouble> {
        let request = Request::post(self.base.path(script))
            .header(HOST, &self.base.authority)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "*/*")
            .header(CONTENT_TYPE, content_type)
            .body(Full::new(body))
            .map_err(|_| Trouble::NeverSent("provider.url makes no request that can be sent".to_owned()))?;
        let before = line.meter.read();
        let why = match timeout(patience, line.call(request, self.response_bytes_max)).await {
            Ok(Ok(reply)) => {
                self.pool.give_back(line).await;
                return Ok(self.without_key(reply));
            }
            Ok(Err(why)) => why,
            Err(_) => format!("no answer within {patience:?}"),
        };
        let meter = line.meter.clone();
        // First the connection, then the count: after this nothing can leave any more.
        drop(line);
        if meter.has_sent_since(&before) {
            Err(Trouble::WhoKnows(why))
        } else {
            Err(Trouble::NeverSent(format!("{why}, before anything was sent")))
        }
    }

    fn without_key(&self, mut reply: Reply) -> Reply {
        let key = self.key.reveal();
        let repeats_it = |body: &[u8]| body.windows(key.len()).any(|window| window == key.as_bytes());
        if key.len() >= TELLING_KEY_BYTES && repeats_it(&reply.body) {
            let words = String::from_utf8_lossy(&reply.body).into_owned();
            reply.body = Bytes::from(self.key.conceal(words));
        }
        reply
    }
}

#[cfg(test)]
mod tests;
