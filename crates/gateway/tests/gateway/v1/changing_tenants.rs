//! Tests of tenants that change while the gateway works: keys hold at once, limits count what was there before, and a
//! store that is away changes nothing.

use super::fixture::{ANNA, BERT, Fixture, order, path_of};
use super::talk::Ask;
use quittance_gateway::{KeyDigest, Rate, TenantSettings, Tenants, WebhookSettings};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn anna() -> TenantSettings {
    TenantSettings::new("anna", KeyDigest::of(ANNA))
}

fn bert() -> TenantSettings {
    TenantSettings::new("bert", KeyDigest::of(BERT))
}

async fn change(fixture: &Fixture, tenants: Vec<TenantSettings>) {
    let orders = fixture.gateway.orders();
    let counted = orders.count_for(Tenants::new(tenants, None)).await.expect("the store is there");
    orders.reload(counted, WebhookSettings::default());
}

async fn place(fixture: &Fixture, key: &str, sitekey: &str) -> u16 {
    let mut order = order(sitekey);
    order["reuse"] = json!("exclusive");
    fixture.ask(Ask::post("/v1/orders", &order).key(key)).await.status
}

/// Promise: a new key is accepted with the next request, and a removed one is refused.
#[tokio::test]
async fn a_new_tenant_is_let_in_at_once_and_a_removed_one_is_refused() {
    let fixture = Fixture::with(vec![anna()]).await;
    assert_eq!(place(&fixture, BERT, "hold-1").await, 401);
    change(&fixture, vec![anna(), bert()]).await;
    assert_eq!(place(&fixture, BERT, "hold-2").await, 202);
    let open = fixture.ask(Ask::post("/v1/orders", &order("hold-3")).key(ANNA)).await.order(202);
    change(&fixture, vec![bert()]).await;
    assert_eq!(place(&fixture, ANNA, "hold-4").await, 401);
    assert_eq!(place(&fixture, BERT, "hold-5").await, 202);
    // It comes back, and finds its order.
    change(&fixture, vec![anna()]).await;
    fixture.get(&path_of(&open)).await.order(200);
}

/// Trap: a limit that is new begins to count at zero, and the tenant gets twice as many places.
#[tokio::test]
async fn a_new_limit_counts_the_orders_that_are_open_already() {
    let fixture = Fixture::with(vec![anna()]).await;
    for n in 0..3 {
        assert_eq!(place(&fixture, ANNA, &format!("hold-{n}")).await, 202);
    }
    change(&fixture, vec![TenantSettings { open_max: Some(4), ..anna() }]).await;
    assert_eq!(place(&fixture, ANNA, "hold-3").await, 202);
    assert_eq!(place(&fixture, ANNA, "hold-4").await, 429);
}

/// Trap: each reload gives a tenant a new rate, so that it places as fast as settings change.
#[tokio::test]
async fn the_used_part_of_a_rate_stays_used() {
    let rate = Some(Rate { every: Duration::from_secs(60), burst: 2 });
    let limited = || vec![TenantSettings { rate, ..anna() }];
    let fixture = Fixture::with(limited()).await;
    assert_eq!(place(&fixture, ANNA, "hold-1").await, 202);
    change(&fixture, limited()).await;
    assert_eq!(place(&fixture, ANNA, "hold-2").await, 202);
    change(&fixture, limited()).await;
    assert_eq!(place(&fixture, ANNA, "hold-3").await, 429);
}

/// Promise: if the open orders cannot be counted, nothing has changed.
#[tokio::test]
async fn a_store_that_is_away_changes_no_tenant() {
    let fixture = Fixture::with(vec![anna()]).await;
    fixture.store_is_away.store(true, Ordering::Relaxed);
    let tenants = Tenants::new(vec![TenantSettings { open_max: Some(4), ..bert() }], None);
    assert!(fixture.gateway.orders().count_for(tenants).await.is_err());
    fixture.store_is_away.store(false, Ordering::Relaxed);
    assert_eq!(place(&fixture, ANNA, "hold-1").await, 202);
    assert_eq!(place(&fixture, BERT, "hold-2").await, 401);
}
