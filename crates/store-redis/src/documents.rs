//! The shared documents of all nodes. They are in one hash of the first partition, each with its version before it.
//! Their versions come from the same counter as those of orders, so that no version is used twice.

use crate::RedisInner;
use crate::failure::RedisFailure;
use crate::layout::{FIRST, VERSIONS};
use crate::row::{read_version, text};
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::{DocumentWritten, SharedDocument, StoredDocument, Version};
use quittance_record::{decode_document, encode_document};
use redis::Value;

impl RedisInner {
    pub(crate) async fn read_documents(&self) -> Result<Vec<StoredDocument>, RedisFailure> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.layout.name(FIRST, "documents"));
        let fields = match self.ask(&command).await? {
            Value::Array(fields) => fields,
            Value::Map(fields) => fields.into_iter().flat_map(|(name, document)| [name, document]).collect(),
            _ => return Err(RedisFailure::Garbled),
        };
        let mut texts = fields.into_iter().map(|value| text(value).map(Option::unwrap_or_default));
        let mut documents = Vec::new();
        while let (Some(name), Some(written)) = (texts.next(), texts.next()) {
            documents.extend(read_document(name?, &written?));
        }
        documents.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(documents)
    }

    pub(crate) async fn write_document(
        &self,
        name: &str,
        expected: Version,
        document: Option<&SharedDocument>,
    ) -> Result<DocumentWritten, RedisFailure> {
        let keys = [self.layout.name(FIRST, VERSIONS), self.layout.name(FIRST, "documents")];
        let (expected, room) = (expected.0.to_string(), DOCUMENTS_MAX.to_string());
        let body = document.map(encode_document).unwrap_or_default();
        let args = [name.as_bytes(), expected.as_bytes(), &body, room.as_bytes()];
        let answer = self.run(&self.scripts.write_document, &keys, &args).await?;
        match &answer.word[..] {
            b"conflict" => Ok(DocumentWritten::Conflict),
            b"no room" => Ok(DocumentWritten::NoRoom),
            b"done" => {
                let version = answer.rest.into_iter().next().map(text).transpose()?.flatten();
                let version = version.as_deref().and_then(read_version).ok_or(RedisFailure::Garbled)?;
                Ok(DocumentWritten::Done(version))
            }
            _ => Err(RedisFailure::Garbled),
        }
    }
}

/// Parses a document. One that cannot be parsed is left out, and must not hide the others.
fn read_document(name: Vec<u8>, written: &[u8]) -> Option<StoredDocument> {
    let name = String::from_utf8(name).ok()?;
    let space = written.iter().position(|byte| *byte == b' ')?;
    let version = read_version(&written[..space])?;
    match decode_document(&written[space + 1..]) {
        Ok(document) => Some(StoredDocument { name, version, document }),
        Err(error) => {
            tracing::debug!(%error, name, "a document cannot be read");
            None
        }
    }
}
