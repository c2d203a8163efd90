//! The types of responses can read what the API sends, so that a client can use them.

use super::fixture::{ADMIN, Fixture, path_of};
use super::talk::Ask;
use quittance_admin::alerts::ShownAlerts;
use quittance_admin::audit::Audit;
use quittance_admin::bulk::{BulkList, DryRun};
use quittance_admin::dead::DeadLetters;
use quittance_admin::find::FoundOrders;
use quittance_admin::live::{ShownHistory, Snapshot};
use quittance_admin::node_state::{NodeState, ShownAccount};
use quittance_admin::nodes::ShownNodes;
use quittance_admin::pools::PoolList;
use quittance_admin::settings::ShownSettings;
use quittance_admin::stock::StockReport;
use quittance_admin::store_status::StoreStatus;
use quittance_admin::timeline::OrderTimeline;
use quittance_admin::usage::UsageReport;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads the body as `T` and writes it again: nothing may be lost.
fn reads<T: Serialize + DeserializeOwned>(path: &str, body: &Value) {
    let read: T = serde_json::from_value(body.clone()).unwrap_or_else(|why| panic!("{path}: {why}: {body}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), *body, "{path}");
}

#[tokio::test]
async fn every_response_is_read_by_its_type_without_loss() {
    let fixture = Fixture::new().await;
    fixture.heartbeat(1, "here").await;
    let dead = fixture.run_out(&path_of(&fixture.place("die-1").await.order(202))).await;
    fixture.place("a").await;
    let get = async |path: &str| fixture.ask(Ask::get(path).key(ADMIN)).await.order(200);
    reads::<ShownAlerts>("alerts", &get("/v1/admin/alerts").await);
    reads::<Audit>("audit", &get("/v1/admin/audit").await);
    reads::<BulkList>("bulk", &get("/v1/admin/dead/bulk").await);
    reads::<DeadLetters>("dead", &get("/v1/admin/dead").await);
    reads::<FoundOrders>("find", &get("/v1/admin/find?q=turnstile").await);
    reads::<Snapshot>("now", &get("/v1/admin/now").await);
    reads::<ShownHistory>("history", &get("/v1/admin/history").await);
    reads::<NodeState>("state", &get("/v1/admin/state").await);
    reads::<ShownAccount>("account", &get("/v1/account").await);
    reads::<ShownNodes>("nodes", &get("/v1/admin/nodes").await);
    reads::<PoolList>("pools", &get("/v1/pools").await);
    reads::<ShownSettings>("settings", &get("/v1/admin/settings").await);
    reads::<StoreStatus>("store", &get("/v1/admin/store").await);
    reads::<StockReport>("stock", &get("/v1/stock").await);
    reads::<UsageReport>("usage", &get("/v1/admin/usage?by=tenant,kind").await);
    reads::<OrderTimeline>(
        "order",
        &get(&format!("/v1/admin/orders/{}", dead["key"].as_str().unwrap())).await,
    );
    let dry_run = json!({ "action": "replay", "dry_run": true });
    let ask = Ask::post("/v1/admin/dead/bulk", &dry_run).key(ADMIN);
    reads::<DryRun>("bulk", &fixture.ask(ask).await.order(200));
}
