//! The identity of this store. It is in every partition, because a script can only read its own. If a node knows
//! another identity or a later epoch, its commits are refused until it has put back its orders in hand.

use crate::failure::RedisFailure;
use crate::layout::{FIRST, FORMAT};
use crate::row::text;
use crate::{RedisInner, RedisStore};
use futures_util::future::try_join_all;
use quittance_lifecycle::Timestamp;
use quittance_ports::membership::RECOVERY_SPAN;
use quittance_ports::{MarkRequest, StoreError, StoreMark};
use redis::Value;
use std::sync::PoisonError;
use std::time::Duration;

impl RedisStore {
    /// The identity and the epoch of this store. If the identity is lost, or the epoch is behind what the node knows,
    /// the drawn identity replaces it, and a recovery begins.
    pub async fn mark(&self, request: MarkRequest<'_>) -> Result<StoreMark, StoreError> {
        let record = self.inner().mark_all(&request).await;
        record.map_err(|failure| failure.unavailable("looking at the identity of the store"))
    }

    /// Sets the identity and epoch that commits require. A store with another identity or an earlier epoch refuses
    /// them.
    pub fn trust(&self, identity: [u8; 16], epoch: u64) {
        *self.inner().known.lock().unwrap_or_else(PoisonError::into_inner) = Some((identity, epoch));
    }
}

impl RedisInner {
    /// The identity and the epoch that this node knows, as arguments of scripts. Both are empty if it knows none.
    pub(crate) fn known(&self) -> (Vec<u8>, String) {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.map_or_else(Default::default, |(identity, epoch)| (identity.to_vec(), epoch.to_string()))
    }

    async fn mark_all(&self, request: &MarkRequest<'_>) -> Result<StoreMark, RedisFailure> {
        let mut mark = self.mark_first(request, false).await?;
        if !self.adopt(request, &mark).await? {
            mark = self.mark_first(request, true).await?;
            self.adopt(request, &mark).await?;
        }
        Ok(mark)
    }

    /// Marks the first partition, which decides. `is_renewed` means that another partition has lost something.
    async fn mark_first(
        &self,
        request: &MarkRequest<'_>,
        is_renewed: bool,
    ) -> Result<StoreMark, RedisFailure> {
        let keys = ["identity", "secret", "secrets"].map(|what| self.layout.name(FIRST, what));
        let (known, known_epoch) = of_known(request);
        let span = RECOVERY_SPAN.as_millis().to_string();
        let flag = |is_so: bool| if is_so { &b"1"[..] } else { b"0" };
        let mut args: Vec<&[u8]> = vec![
            &request.drawn,
            &known,
            known_epoch.as_bytes(),
            span.as_bytes(),
            flag(request.is_putting_back),
        ];
        args.push(flag(is_renewed));
        let drawn_at = request.drawn_at.map(|at| at.as_millis().to_string()).unwrap_or_default();
        args.extend([drawn_at.as_bytes(), flag(request.is_at_work)]);
        args.extend(request.secrets.iter().map(|secret| &secret[..]));
        let Value::Array(values) = self.run_plain(&self.scripts.mark, &keys, &args).await? else {
            return Err(RedisFailure::Garbled);
        };
        let mut texts = Vec::new();
        for value in values {
            texts.push(text(value)?.unwrap_or_default());
        }
        let [identity, epoch, recovery, drawn_at, secrets @ ..] = &texts[..] else {
            return Err(RedisFailure::Garbled);
        };
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        let epoch = number(epoch).ok_or(RedisFailure::Garbled)?;
        if epoch == 1 {
            // The next node must divide the orders as we do.
            let (format, parts) = (FORMAT.to_string(), self.layout.partitions.to_string());
            let args = [format.as_bytes(), parts.as_bytes()];
            self.run_plain(&self.scripts.settle, &[self.layout.meta()], &args).await?;
        }
        Ok(StoreMark {
            identity: identity.as_slice().try_into().map_err(|_| RedisFailure::Garbled)?,
            epoch,
            secrets: secrets.iter().filter_map(|secret| secret.as_slice().try_into().ok()).collect(),
            drawn_at: Timestamp::from_millis(number(drawn_at).ok_or(RedisFailure::Garbled)?),
            recovery: Duration::from_millis(number(recovery).ok_or(RedisFailure::Garbled)?),
        })
    }

    /// Whether all other partitions have what this node knows.
    async fn adopt(&self, request: &MarkRequest<'_>, mark: &StoreMark) -> Result<bool, RedisFailure> {
        let (known, known_epoch) = of_known(request);
        let epoch = mark.epoch.to_string();
        let args: [&[u8]; 4] = [&mark.identity, epoch.as_bytes(), &known, known_epoch.as_bytes()];
        let adopt = async |partition| {
            let key = [self.layout.name(partition, "identity")];
            self.run_plain(&self.scripts.adopt, &key, &args).await
        };
        let answers = try_join_all(self.layout.all().skip(1).map(adopt)).await?;
        Ok(!answers.contains(&Value::Int(0)))
    }
}

fn of_known(request: &MarkRequest<'_>) -> (Vec<u8>, String) {
    match request.known {
        Some((identity, epoch)) => (identity.to_vec(), epoch.to_string()),
        None => (Vec::new(), "0".to_owned()),
    }
}
