//! What only this store can get wrong about sheets.

use super::{Place, run};
use quittance_lifecycle::Timestamp;
use quittance_ports::{Roster, Sheet, SheetWritten, TrustSheet, Version};
use quittance_servers::shared_redis;
use std::time::Duration;

fn sheet(site: &str) -> Sheet {
    let mut sheet = TrustSheet {
        tenant: "ann".into(),
        kind: "riddle".into(),
        site: site.into(),
        trust: Default::default(),
    };
    sheet.trust.refused(Timestamp::from_millis(5), Duration::from_secs(1));
    Sheet::Trust(sheet)
}

#[test]
fn a_sheet_that_cannot_be_read_is_left_out_and_cannot_be_written_over_by_accident() {
    run(async {
        let place = Place::on_one_server(4);
        let store = place.open().await;
        let (good, bad) = (sheet("good.example.com"), sheet("bad.example.com"));
        for sheet in [&good, &bad] {
            let written = store.write_sheet(&sheet.name(), Version::ABSENT, Some(sheet)).await.unwrap();
            assert!(matches!(written, SheetWritten::Done(_)));
        }
        let sheets = format!("{{{}:0}}:sheets", place.prefix);
        for garbage in ["garbage", "12 garbage", ""] {
            shared_redis().command(&["HSET", &sheets, &bad.name(), garbage]);
            let found = store.sheets().await.unwrap();
            assert_eq!(found.iter().map(|found| &found.name).collect::<Vec<_>>(), [&good.name()]);
            let written = store.write_sheet(&bad.name(), Version::ABSENT, Some(&bad)).await.unwrap();
            assert_eq!(written, SheetWritten::Conflict);
        }
    });
}

#[test]
fn sheets_cost_one_round_trip() {
    run(async {
        let store = Place::on_one_server(4).open().await;
        let sheet = sheet("example.com");
        let _first = store.write_sheet(&sheet.name(), Version::ABSENT, Some(&sheet)).await.unwrap();
        let before = store.round_trips();
        let _lost = store.write_sheet(&sheet.name(), Version::ABSENT, Some(&sheet)).await.unwrap();
        assert_eq!(store.sheets().await.unwrap().len(), 1);
        assert_eq!(store.round_trips() - before, 2);
    });
}
