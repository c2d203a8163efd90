//! The doors: where and how we listen, who may ask and how much, whom we call, and what is logged.

use super::{BYTES, POSITIVE, REUSE, SOME, count, optional, row, span, text};
use crate::setting::Setting;
use crate::value::{Shape, Value};
use quittance_gateway::{Limits, WebhookSettings};

/// Whose manners the classic and JSON doors can have.
const FLAVOUR: Shape = Shape::OneOf(&["2captcha", "anticaptcha", "capsolver", "capmonster", "captchaai"]);

pub(super) static ROWS: &[Setting] = &[
    optional(
        "node.name",
        Shape::NodeName,
        "name of this node among the nodes that share a store; absent: its host name and port",
    ),
    row(
        "listener.hosts",
        Shape::Hosts,
        |_| Some(Value::List(Vec::new())),
        "host names under which clients reach this gateway; without tenants, requests for any other host but localhost are refused",
    ),
    row(
        "listener.connections_max",
        SOME,
        |_| count(Limits::default().connections_max),
        "connections open at once; further connections wait",
    ),
    row(
        "listener.requests_max",
        SOME,
        |_| count(Limits::default().requests_max),
        "requests in progress at once; further requests are refused and can be retried",
    ),
    row(
        "listener.body_bytes_max",
        BYTES,
        |_| count(Limits::default().body_bytes_max),
        "largest body of a request; a 2 MiB image in base64 must fit",
    ),
    row(
        "listener.bodies_bytes_max",
        BYTES,
        |_| count(Limits::default().bodies_bytes_max),
        "bytes of all request bodies in memory at once",
    ),
    row(
        "listener.head_bytes_max",
        BYTES,
        |_| count(Limits::default().head_bytes_max),
        "largest head of a request; its first line may contain a token",
    ),
    row(
        "listener.read_wait",
        POSITIVE,
        |_| span(Limits::default().read_wait),
        "how long a TLS handshake, a head or a body may take to arrive",
    ),
    row(
        "listener.write_wait",
        POSITIVE,
        |_| span(Limits::default().write_wait),
        "how long a caller may stop reading a response",
    ),
    row(
        "listener.idle_wait",
        POSITIVE,
        |_| span(Limits::default().idle_wait),
        "how long a connection may be idle between two requests",
    ),
    optional(
        "tls.listen",
        Shape::Listen,
        "address to listen on for https; absent: 127.0.0.1:8743 if there is a certificate, else none",
    ),
    optional("tls.cert_file", Shape::File, "certificate with its intermediate certificates, in PEM"),
    optional(
        "tls.key_file",
        Shape::File,
        "private key of the certificate, in PEM; both files are reloaded when they change",
    ),
    optional(
        "gateway.flavour",
        FLAVOUR,
        "dialect for callers, where neither the path nor the tenant sets it",
    ),
    optional(
        "admin.key_sha256",
        Shape::Digest,
        "hash of the operator's key, from `quittance tenant new --admin`",
    ),
    optional("admin.key_env", Shape::Variable, "variable with the operator's key"),
    optional("admin.key_file", Shape::File, "file with the operator's key"),
    row(
        "callbacks_out.allow",
        Shape::Networks,
        |_| Some(Value::List(Vec::new())),
        "hosts and networks inside your own network that webhooks may call",
    ),
    row(
        "callbacks_out.wait",
        POSITIVE,
        |_| span(WebhookSettings::default().wait),
        "how long one webhook delivery may take",
    ),
    row(
        "log.level",
        Shape::OneOf(&["error", "warn", "info", "debug", "trace"]),
        |_| text("info"),
        "what `serve` logs on standard error; never a secret",
    ),
    row(
        "log.format",
        Shape::OneOf(&["text", "json"]),
        |_| text("text"),
        "text for people, or one JSON object per line",
    ),
    optional(
        "traces.url",
        Shape::WebAddress,
        "OpenTelemetry collector that takes traces over HTTP, such as \"http://127.0.0.1:4318\"; absent: no traces",
    ),
    optional("tenant.*.name", Shape::Label, "name of the tenant, here and in the usage"),
    optional("tenant.*.key_sha256", Shape::Digest, "hash of the tenant's key, from `quittance tenant new`"),
    optional("tenant.*.key_env", Shape::Variable, "variable with the tenant's key"),
    optional("tenant.*.key_file", Shape::File, "file with the tenant's key"),
    optional(
        "tenant.*.hosts",
        Shape::Hosts,
        "page hosts that the tenant may automate, of those in targets.allow; absent: all of them",
    ),
    optional("tenant.*.kinds", Shape::Kinds, "kinds that the tenant may order; absent: all"),
    optional("tenant.*.reuse", REUSE, "overrides reuse.default for orders of this tenant"),
    optional(
        "tenant.*.rate",
        Shape::Rate,
        "orders that the tenant may place per unit of time, on each node separately; absent: 100 a second, 2500 at once",
    ),
    optional(
        "tenant.*.open_max",
        SOME,
        "orders of the tenant that may be open at once, on all nodes together; exact also under concurrency. Places that a \
         killed node has leased are free again after 30 s; absent: 5000",
    ),
    optional(
        "tenant.*.balance",
        Shape::Flag,
        "whether the tenant may see the balance of the provider's account, and so what all tenants spend; absent: it sees 10",
    ),
    optional("tenant.*.flavour", FLAVOUR, "overrides gateway.flavour for this tenant"),
    optional(
        "tenant.*.webhook_secret_env",
        Shape::Variable,
        "variable with the secret that signs the tenant's webhooks",
    ),
    optional(
        "tenant.*.webhook_secret_file",
        Shape::File,
        "file with the secret that signs the tenant's webhooks",
    ),
];
