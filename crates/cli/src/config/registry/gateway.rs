//! The doors: where and how we listen, who may ask and how much, whom we call, and what is logged.

use super::{BYTES, POSITIVE, REUSE, SOME, count, optional, row, span, text};
use crate::config::setting::Setting;
use crate::config::value::{Shape, Value};
use quittance_gateway::{Limits, OutboundSettings};

/// Whose manners the classic and JSON doors can have.
const FLAVOUR: Shape = Shape::OneOf(&["2captcha", "anticaptcha", "capsolver", "capmonster", "captchaai"]);

pub(super) static ROWS: &[Setting] = &[
    optional(
        "node.name",
        Shape::NodeName,
        "what people call this node, among those that share a store; absent: its host, and the port that it listens on",
    ),
    row(
        "listener.hosts",
        Shape::Hosts,
        |_| Some(Value::List(Vec::new())),
        "names under which clients reach this gateway; a gateway without tenants refuses requests for any host but these and localhost",
    ),
    row(
        "listener.connections_max",
        SOME,
        |_| count(Limits::default().connections_max),
        "connections open at once; whoever comes beyond them waits",
    ),
    row(
        "listener.requests_max",
        SOME,
        |_| count(Limits::default().requests_max),
        "requests worked on at once; those beyond are told to come again",
    ),
    row(
        "listener.body_bytes_max",
        BYTES,
        |_| count(Limits::default().body_bytes_max),
        "the largest body of a request; a picture of 2 MiB in base64 must fit",
    ),
    row(
        "listener.bodies_bytes_max",
        BYTES,
        |_| count(Limits::default().bodies_bytes_max),
        "bodies in memory at once, all together",
    ),
    row(
        "listener.head_bytes_max",
        BYTES,
        |_| count(Limits::default().head_bytes_max),
        "the largest head of a request; a token may come in its first line",
    ),
    row(
        "listener.read_wait",
        POSITIVE,
        |_| span(Limits::default().read_wait),
        "how long a handshake, a head or a body may take to arrive",
    ),
    row(
        "listener.write_wait",
        POSITIVE,
        |_| span(Limits::default().write_wait),
        "how long a caller may take to read on",
    ),
    row(
        "listener.idle_wait",
        POSITIVE,
        |_| span(Limits::default().idle_wait),
        "how long a connection may stay open between two requests",
    ),
    optional(
        "tls.listen",
        Shape::Listen,
        "where to listen for https; absent: 127.0.0.1:8743 if there is a certificate, else nowhere",
    ),
    optional("tls.cert_file", Shape::File, "the certificate and those between it and its root, in PEM"),
    optional("tls.key_file", Shape::File, "its private key, in PEM; both are read again when they change"),
    optional(
        "gateway.flavour",
        FLAVOUR,
        "how to speak to callers, if neither their path nor their tenant says",
    ),
    optional(
        "admin.key_sha256",
        Shape::Digest,
        "the hash of the operator's key, from `quittance tenant new --admin`",
    ),
    optional("admin.key_env", Shape::Variable, "variable with the operator's key"),
    optional("admin.key_file", Shape::File, "file with the operator's key"),
    row(
        "callbacks_out.allow",
        Shape::Networks,
        |_| Some(Value::List(Vec::new())),
        "what may be called inside your own network, when a caller asks to be called there",
    ),
    row(
        "callbacks_out.wait",
        POSITIVE,
        |_| span(OutboundSettings::default().wait),
        "how long one call of a caller may take",
    ),
    row(
        "log.level",
        Shape::OneOf(&["error", "warn", "info", "debug", "trace"]),
        |_| text("info"),
        "what `serve` tells on standard error; never a secret",
    ),
    row(
        "log.format",
        Shape::OneOf(&["text", "json"]),
        |_| text("text"),
        "for people, or one JSON object a line",
    ),
    optional(
        "traces.url",
        Shape::WebAddress,
        "whoever collects OpenTelemetry traces over HTTP, such as \"http://127.0.0.1:4318\"; absent: none are made",
    ),
    optional("tenant.*.name", Shape::Label, "who is asking"),
    optional(
        "tenant.*.key_sha256",
        Shape::Digest,
        "the hash of the tenant's key, from `quittance tenant new`",
    ),
    optional("tenant.*.key_env", Shape::Variable, "variable with the tenant's key"),
    optional("tenant.*.key_file", Shape::File, "file with the tenant's key"),
    optional(
        "tenant.*.hosts",
        Shape::Hosts,
        "page hosts that he may automate, of those in targets.allow; absent: all of them",
    ),
    optional("tenant.*.kinds", Shape::Kinds, "kinds that he may order; absent: all"),
    optional("tenant.*.reuse", REUSE, "as reuse.default, for what this tenant places"),
    optional(
        "tenant.*.rate",
        Shape::Rate,
        "how many orders he may place in how much time, with each node by itself; absent: 100 a second, 2500 at once",
    ),
    optional(
        "tenant.*.open_max",
        SOME,
        "how many of its orders may be open at once, on all nodes: exact on one; of several, each counts the orders of all in the \
         store before it accepts one (with more than 256, twice a second), so only orders that they accept at the same moment can \
         go over it; absent: 5000",
    ),
    optional(
        "tenant.*.balance",
        Shape::Flag,
        "whether it may see the balance of the provider's account, and so what all tenants spend; absent: it is told 10",
    ),
    optional("tenant.*.flavour", FLAVOUR, "as gateway.flavour, for this tenant"),
    optional(
        "tenant.*.webhook_secret_env",
        Shape::Variable,
        "variable with the secret that his callbacks are signed with",
    ),
    optional("tenant.*.webhook_secret_file", Shape::File, "file with that secret"),
];
