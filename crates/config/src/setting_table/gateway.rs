//! How the node listens, who may place orders and how many, which addresses the node calls, and what it logs.

use super::{ANY, BYTES, MOST_RETRIES, POSITIVE, REUSE, SOME, count, rows};
use crate::Config;
use crate::setting::Setting;
use crate::setting_shape::{HOSTS, SettingShape};
use quittance_engine::Settings;
use quittance_gateway::TenantSettings;

pub(super) fn rows() -> impl Iterator<Item = &'static Setting> {
    GATEWAY.iter().chain(ENDPOINTS).chain(LOG).chain(TENANTS)
}

static GATEWAY: &[Setting] = rows! {
    Config:
    "node.name" [node_name] SettingShape::NodeName,
        "name of this node among the nodes that share a store; absent: its host name and port";
    "listener.hosts" [hosts] HOSTS,
        "host names under which clients reach this gateway; without tenants, requests for any other host but \
         localhost are refused";
    "listener.connections_max" [listener.connections_max] SOME,
        "connections open at once; a tenant beyond its share makes room for further ones, else they wait";
    "listener.requests_max" [listener.requests_max] SOME,
        "requests in progress at once; further requests are refused and can be retried";
    "listener.body_bytes_max" [listener.body_bytes_max] BYTES,
        "largest body of a request; a 2 MiB image in base64 must fit";
    "listener.bodies_bytes_max" [listener.bodies_bytes_max] BYTES, "bytes of all request bodies in memory at once";
    "listener.head_bytes_max" [listener.head_bytes_max] BYTES,
        "largest head of a request; its first line may contain a token";
    "listener.read_wait" [listener.read_wait] POSITIVE,
        "how long a TLS handshake, a head or a body may take to arrive";
    "listener.write_wait" [listener.write_wait] POSITIVE, "how long a caller may read nothing of a response before the connection is closed";
    "listener.idle_wait" [listener.idle_wait] POSITIVE, "how long a connection may be idle between two requests";
    "tls.listen" [tls.listen] SettingShape::ListenAddress,
        "address to listen on for https; absent: 127.0.0.1:8743 if there is a certificate, else none";
    "tls.cert_file" [tls.cert_file] SettingShape::File, "certificate with its intermediate certificates, in PEM";
    "tls.key_file" [tls.key_file] SettingShape::File,
        "private key of the certificate, in PEM; both files are reloaded when they change";
    "gateway.dialect" [dialect] SettingShape::Dialect, "dialect for callers, where neither the path nor the tenant sets it";
    "admin.key_sha256" [] SettingShape::KeyHash, "hash of the operator's key, from `quittance tenant new --admin`";
    "admin.key_env" [] SettingShape::Variable, "variable with the operator's key";
    "admin.key_file" [] SettingShape::File, "file with the operator's key";
    "webhooks.allow" [webhooks.allow] SettingShape::List(&SettingShape::Network),
        "hosts and networks inside your own network that webhooks may call";
    "webhooks.wait" [webhooks.wait] POSITIVE, "how long one webhook delivery may take";
    "webhooks.pauses" [policy.webhook_pauses] SettingShape::List(&SettingShape::Pause),
        "pauses between the tries of a delivery, at most 16; after the last one it is a dead letter";
};

static ENDPOINTS: &[Setting] = rows! {
    Settings:
    "webhooks.off_after" [webhook_off_after] ANY,
        "after this time with failures only, deliveries to that host of the tenant become dead letters at once; one an \
         hour is tried, and the first success switches the host on again. 0s: never";
};

static LOG: &[Setting] = rows! {
    Config:
    "log.level" [log.level] SettingShape::OneOf(&["error", "warn", "info", "debug", "trace"]),
        "what `serve` logs on standard error; never a secret";
    "log.format" ["text"] SettingShape::OneOf(&["text", "json"]), "text for people, or one JSON object per line";
    "traces.url" [traces] SettingShape::WebAddress,
        "OpenTelemetry collector that takes traces over HTTP, such as \"http://127.0.0.1:4318\"; absent: no traces";
};

static TENANTS: &[Setting] = rows! {
    TenantSettings:
    "tenant.*.name" [] SettingShape::Label, "name of the tenant, here and in the usage";
    "tenant.*.key_sha256" [] SettingShape::KeyHash, "hash of the tenant's key, from `quittance tenant new`";
    "tenant.*.key_env" [] SettingShape::Variable, "variable with the tenant's key";
    "tenant.*.key_file" [] SettingShape::File, "file with the tenant's key";
    "tenant.*.hosts" [] HOSTS,
        "page hosts that the tenant may automate, of those in targets.allow; absent: all of them";
    "tenant.*.kinds" [kinds] SettingShape::List(&SettingShape::Kind), "kinds that the tenant may order; absent: all";
    "tenant.*.reuse" [reuse] REUSE, "overrides reuse.default for orders of this tenant";
    "tenant.*.weight" [weight] count(1, 1000),
        "turns that the tenant gets in the queue to the provider, for one of a tenant with weight 1; absent: 1";
    "tenant.*.priority" [priority] SettingShape::OneOf(&["interactive", "normal", "bulk"]),
        "how urgent orders of this tenant are, among its own, if they set no `priority`; absent: normal";
    "tenant.*.rate" [rate] SettingShape::Rate,
        "orders that the tenant may place per unit of time, on each node separately; absent: 100 a second, 2500 at \
         once";
    "tenant.*.open_max" [open_max] SOME,
        "orders of the tenant that may be open at once, on all nodes together; exact also under concurrency. A new \
         order needs a place, and so does an order that has ended or was cancelled and is placed again; an operator's \
         replay needs none. Places that a killed node has leased are free again after 30 s; absent: 5000";
    "tenant.*.balance" [sees_balance] SettingShape::Flag,
        "whether the tenant may see the balance of the provider's account, and so what all tenants spend; absent: it \
         sees 10";
    "tenant.*.max_retries" [] MOST_RETRIES, "overrides retry.max_retries, and that of a kind, for orders of this tenant";
    "tenant.*.retry_base" [] POSITIVE, "overrides retry.base, and that of a kind, for orders of this tenant";
    "tenant.*.retry_cap" [] POSITIVE, "overrides retry.cap, and that of a kind, for orders of this tenant";
    "tenant.*.dialect" [dialect] SettingShape::Dialect, "overrides gateway.dialect for this tenant";
    "tenant.*.webhook_secret_env" [] SettingShape::Variable, "variable with the secret that signs the tenant's webhooks";
    "tenant.*.webhook_secret_file" [] SettingShape::File, "file with the secret that signs the tenant's webhooks";
};
