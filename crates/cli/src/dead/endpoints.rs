//! `quittance dead endpoints`: the hosts that webhooks cannot reach, and switching one on again.

use crate::exit::{CliError, Exit};
use crate::output;
use crate::output::harmless;
use crate::text_table::{self, Cell, cell};
use hyper::Method;
use quittance_admin::failing_endpoints::{ShownEndpoint, ShownEndpoints, SwitchOn};
use quittance_daemon::ApiClient;

pub(super) async fn list(client: &ApiClient, as_json: bool) -> Result<Exit, CliError> {
    let shown: ShownEndpoints = client.get("/v1/admin/webhook-endpoints").await?;
    output::show(as_json, &shown, || as_text(&shown.endpoints))
}

pub(super) async fn switch_on(
    client: &ApiClient,
    host: &str,
    tenant: &str,
    as_json: bool,
) -> Result<Exit, CliError> {
    let body = SwitchOn { tenant: tenant.to_owned(), host: host.to_owned() };
    let shown: ShownEndpoints = client.send(Method::POST, "/v1/admin/webhook-endpoints/on", &body).await?;
    output::show(as_json, &shown, || {
        let (host, tenant) = (harmless(host), harmless(tenant));
        format!(
            "webhooks of {tenant} to {host} are sent again; `quittance dead replay --cause delivery --tenant {tenant}` \
             replays those that are dead letters\n"
        )
    })
}

fn cells(endpoint: &ShownEndpoint) -> [Cell; 5] {
    let state = if endpoint.off_since.is_some() { "off" } else { "failing" };
    [
        cell("TENANT", harmless(&endpoint.tenant)),
        cell("HOST", harmless(&endpoint.host)),
        cell("STATE", state),
        cell("FAILING SINCE", endpoint.failing_since.clone().unwrap_or_default()),
        cell("LAST FAILURE", harmless(&endpoint.why)),
    ]
}

fn as_text(endpoints: &[ShownEndpoint]) -> String {
    if endpoints.is_empty() {
        return "no webhook endpoint has failed for ten minutes\n".to_owned();
    }
    text_table::render(endpoints.iter().map(cells))
}
