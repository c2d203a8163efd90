//! How the evidence about callbacks is written: when one arrived, and when none could arrive.

use crate::error::{RecordError, Within};
use crate::fields::{mirror, moment, need_moment};
use quittance_lifecycle::{Outage, Receipt};

mirror! { ReceiptRecord { at: u64, outages: Vec<OutageRecord> } }

mirror! { OutageRecord { from: u64, to: u64 } }

impl ReceiptRecord {
    pub(crate) fn of(receipt: &Receipt) -> Self {
        let Receipt { at, outages } = receipt;
        Self { at: moment(*at), outages: write_outages(outages) }
    }

    pub(crate) fn read(self) -> Result<Receipt, RecordError> {
        Ok(Receipt { at: need_moment(self.at, "at")?, outages: read_outages(self.outages)? })
    }
}

impl OutageRecord {
    fn of(outage: &Outage) -> Self {
        let Outage { from, to } = outage;
        Self { from: moment(*from), to: moment(*to) }
    }

    fn read(self) -> Result<Outage, RecordError> {
        Ok(Outage { from: need_moment(self.from, "from")?, to: need_moment(self.to, "to")? })
    }
}

pub(crate) fn write_outages(outages: &[Outage]) -> Option<Vec<OutageRecord>> {
    (!outages.is_empty()).then(|| outages.iter().map(OutageRecord::of).collect())
}

pub(crate) fn read_outages(raw: Option<Vec<OutageRecord>>) -> Result<Vec<Outage>, RecordError> {
    let read = |(index, outage): (usize, OutageRecord)| outage.read().within_item("outages", index);
    raw.unwrap_or_default().into_iter().enumerate().map(read).collect()
}
