//! Tests of documents that are special to this store.

use super::{FreshPrefix, run};
use quittance_lifecycle::Timestamp;
use quittance_ports::{DocumentWritten, Membership, SharedDocument, TrustDocument, Version};
use quittance_servers::shared_redis;
use std::time::Duration;

fn document(site: &str) -> SharedDocument {
    let mut document = TrustDocument {
        tenant: "ann".into(),
        kind: "riddle".into(),
        site: site.into(),
        trust: Default::default(),
    };
    document.trust.refused(Timestamp::from_millis(5), Duration::from_secs(1));
    SharedDocument::Trust(document)
}

#[test]
fn a_document_that_cannot_be_read_is_left_out_and_cannot_be_written_over_by_accident() {
    run(async {
        let place = FreshPrefix::on_one_server(4);
        let store = place.open().await;
        let (good, bad) = (document("good.example.com"), document("bad.example.com"));
        for document in [&good, &bad] {
            let written =
                store.write_document(&document.name(), Version::ABSENT, Some(document)).await.unwrap();
            assert!(matches!(written, DocumentWritten::Done(_)));
        }
        let documents = format!("{{{}:0}}:documents", place.prefix);
        for garbage in ["garbage", "12 garbage", ""] {
            shared_redis().command(&["HSET", &documents, &bad.name(), garbage]);
            let record = store.documents().await.unwrap();
            assert_eq!(record.iter().map(|record| &record.name).collect::<Vec<_>>(), [&good.name()]);
            let written = store.write_document(&bad.name(), Version::ABSENT, Some(&bad)).await.unwrap();
            assert_eq!(written, DocumentWritten::Conflict);
        }
    });
}

#[test]
fn documents_cost_one_round_trip() {
    run(async {
        let store = FreshPrefix::on_one_server(4).open().await;
        let document = document("example.com");
        let _first = store.write_document(&document.name(), Version::ABSENT, Some(&document)).await.unwrap();
        let before = store.round_trips();
        let _lost = store.write_document(&document.name(), Version::ABSENT, Some(&document)).await.unwrap();
        assert_eq!(store.documents().await.unwrap().len(), 1);
        assert_eq!(store.round_trips() - before, 2);
    });
}
