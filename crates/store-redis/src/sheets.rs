//! The sheets that all nodes agree on. They stand in one hash of the first partition, each with its version in front, and
//! take their versions from the same desk as orders do, so that none comes back.

use crate::Inner;
use crate::layout::FIRST;
use crate::row::{read_version, text};
use crate::trouble::Trouble;
use quittance_ports::sheet::SHEETS_MAX;
use quittance_ports::{Sheet, SheetFound, SheetWritten, Version};
use quittance_record::{decode_sheet, encode_sheet};
use redis::Value;

impl Inner {
    pub(crate) async fn read_sheets(&self) -> Result<Vec<SheetFound>, Trouble> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.layout.name(FIRST, "sheets"));
        let fields = match self.ask(&command).await? {
            Value::Array(fields) => fields,
            Value::Map(fields) => fields.into_iter().flat_map(|(name, sheet)| [name, sheet]).collect(),
            _ => return Err(Trouble::Garbled),
        };
        let mut texts = fields.into_iter().map(|value| text(value).map(Option::unwrap_or_default));
        let mut sheets = Vec::new();
        while let (Some(name), Some(written)) = (texts.next(), texts.next()) {
            sheets.extend(read_sheet(name?, &written?));
        }
        sheets.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(sheets)
    }

    pub(crate) async fn write_sheet(
        &self,
        name: &str,
        expected: Version,
        sheet: Option<&Sheet>,
    ) -> Result<SheetWritten, Trouble> {
        let keys = [self.layout.name(FIRST, "desk"), self.layout.name(FIRST, "sheets")];
        let (expected, room) = (expected.0.to_string(), SHEETS_MAX.to_string());
        let body = sheet.map(encode_sheet).unwrap_or_default();
        let args = [name.as_bytes(), expected.as_bytes(), &body, room.as_bytes()];
        let answer = self.run(&self.scripts.write_sheet, &keys, &args).await?;
        match &answer.word[..] {
            b"conflict" => Ok(SheetWritten::Conflict),
            b"no room" => Ok(SheetWritten::NoRoom),
            b"done" => {
                let version = answer.rest.into_iter().next().map(text).transpose()?.flatten();
                let version = version.as_deref().and_then(read_version).ok_or(Trouble::Garbled)?;
                Ok(SheetWritten::Done(version))
            }
            _ => Err(Trouble::Garbled),
        }
    }
}

/// One that cannot be read is left out, and must not hide the others.
fn read_sheet(name: Vec<u8>, written: &[u8]) -> Option<SheetFound> {
    let name = String::from_utf8(name).ok()?;
    let space = written.iter().position(|byte| *byte == b' ')?;
    let version = read_version(&written[..space])?;
    match decode_sheet(&written[space + 1..]) {
        Ok(sheet) => Some(SheetFound { name, version, sheet }),
        Err(error) => {
            tracing::debug!(%error, name, "a sheet cannot be read");
            None
        }
    }
}
