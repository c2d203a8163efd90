//! The operator's API over real sockets, on a gateway with two tenants. The fixture is that of the gateway's own tests.
#![expect(clippy::unwrap_used, reason = "a failure in a test must be seen at once")]

mod alerts;
#[path = "../../../gateway/tests/gateway/v1/apis.rs"]
#[expect(dead_code, reason = "the gateway's own tests use more of it")]
mod apis;
mod budgets;
#[path = "../../../gateway/tests/gateway/v1/counting_store.rs"]
mod counting_store;
mod dead;
#[path = "../../../gateway/tests/gateway/eventually.rs"]
mod eventually;
#[path = "../../../gateway/tests/gateway/v1/fixture.rs"]
#[expect(dead_code, reason = "the gateway's own tests use more of it")]
mod fixture;
#[path = "../../../gateway/tests/gateway/flaky_store.rs"]
mod flaky_store;
mod live;
mod money;
mod node_state;
mod pools;
#[path = "../../../gateway/tests/gateway/v1/provider.rs"]
#[expect(dead_code, reason = "the gateway's own tests use more of it")]
mod provider;
mod providers;
#[path = "../../../gateway/tests/gateway/webhooks/receiver.rs"]
#[expect(dead_code, reason = "the gateway's own tests use more of it")]
mod receiver;
mod round_trip;
mod stock;
#[path = "../../../gateway/tests/gateway/v1/talk.rs"]
mod talk;
mod usage;
