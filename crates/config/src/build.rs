//! From effective values to the types that the engine takes. Every struct is written out in full, so that a field
//! that is added there cannot be forgotten here.

use super::Config;
use super::alerts::AlertsConfig;
use super::check;
use super::effective::Effective;
use super::entries::{list_at, prices, providers, reuse_named, tenants, throttle, without_slash};
use super::error::Wrong;
use super::layers::Environment;
use super::lifetimes::lifetimes;
use super::name::Name;
use super::pools::{self, pools};
use super::secret::{CallerKey, Credential};
use super::store::StoreConfig;
use super::types::{
    CallbacksOut, EngineLimits, KindOverride, KindTable, LogConfig, ProviderConfig, ReuseEntry, ReuseRules,
    TlsConfig,
};
use super::value::{Value, signal_word};
use quittance_engine::Targets;
use quittance_engine::targets::HostPattern;
use quittance_gateway::{Allowed, Limits};
use quittance_lifecycle::{Backoff, FaultTable, Jitter, KeySettings, Pace, Policy, Signal, UnsettledDoubt};

pub fn config(effective: Effective, environment: &Environment, wrong: &mut Wrong) -> Config {
    check::relations(&effective, wrong);
    check::names(&effective, wrong);
    wrong.keep(check::one_provider(&effective));
    wrong.keep(check::usage(&effective));
    let kinds = kinds(&effective);
    check::kinds(&effective, &kinds, wrong);
    let providers = providers(&effective, environment, wrong);
    let config = Config {
        listen: effective.text("listen").parse().expect("its shape is that of an address"),
        public_url: effective.text_at(&Name::of(["public_url"])).map(|url| without_slash(&url)),
        callback_secret: wrong
            .keep(Credential::find(&effective, &Name::top(), "callback_secret", environment))
            .flatten(),
        listener: listener(&effective),
        hosts: patterns(&effective, "listener.hosts"),
        tls: tls(&effective),
        admin: wrong.keep(CallerKey::find(&effective, &Name::of(["admin"]), environment)).flatten(),
        flavour: effective.text_at(&Name::of(["gateway", "flavour"])),
        callbacks_out: callbacks_out(&effective),
        alerts: AlertsConfig::of(&effective, environment, wrong),
        log: LogConfig {
            level: effective.text("log.level").parse().expect("its shape is that of a level"),
            is_json: effective.text("log.format") == "json",
        },
        traces: effective.text_at(&Name::of(["traces", "url"])),
        store: StoreConfig::of(&effective, environment, wrong),
        node_name: effective.text_at(&Name::of(["node", "name"])),
        spill_bytes_max: effective.count("store.spill_max"),
        targets: targets(&effective),
        keys: KeySettings {
            proxy_counts: effective.flag("keys.proxy_counts"),
            window: effective.span_at(&Name::of(["keys", "window"])),
            secret: None,
        },
        policy: Policy {
            unsolvable: providers.first().map_or(Policy::DEFAULT.unsolvable, ProviderConfig::unsolvable),
            ..policy(&effective)
        },
        engine: engine(&effective),
        throttle: throttle(&effective, &Name::of(["provider_rules"])),
        reuse: reuse(&effective),
        usage_days: effective.count("usage.detail_days"),
        sums_days: effective.count("usage.sum_days"),
        prices: prices(&effective, &Name::of(["prices"])),
        pools: pools(&effective, wrong),
        lifetimes: lifetimes(&effective, &kinds, &providers, wrong),
        kinds,
        providers,
        tenants: tenants(&effective, environment, wrong),
        warnings: Vec::new(),
        effective,
    };
    check::secrets(&config, wrong);
    pools::check(&config, wrong);
    config
}

fn listener(effective: &Effective) -> Limits {
    Limits {
        connections_max: effective.count("listener.connections_max"),
        requests_max: effective.count("listener.requests_max"),
        body_bytes_max: effective.count("listener.body_bytes_max"),
        bodies_bytes_max: effective.count("listener.bodies_bytes_max"),
        head_bytes_max: effective.count("listener.head_bytes_max"),
        read_wait: effective.span("listener.read_wait"),
        write_wait: effective.span("listener.write_wait"),
        idle_wait: effective.span("listener.idle_wait"),
    }
}

fn callbacks_out(effective: &Effective) -> CallbacksOut {
    let allowed = list_at(effective, &Name::of(["callbacks_out", "allow"])).unwrap_or_default();
    let allowed =
        allowed.iter().map(|text| Allowed::parse(text).expect("they are checked when they are read"));
    CallbacksOut { allow: allowed.collect(), wait: effective.span("callbacks_out.wait") }
}

fn tls(effective: &Effective) -> TlsConfig {
    let text = |key| effective.text_at(&Name::of(["tls", key]));
    let listen = text("listen").map(|text| text.parse().expect("its shape is that of an address"));
    TlsConfig::new(listen, text("cert_file").map(Into::into), text("key_file").map(Into::into))
}

fn targets(effective: &Effective) -> Targets {
    let allow = patterns(effective, "targets.allow");
    let undescribed = match effective.get(&Name::of(["targets", "undescribed"])).map(|held| &held.value) {
        Some(Value::Flag(flag)) => *flag,
        _ => effective.of_list("tenant").is_empty(),
    };
    let table = Name::of(["targets", "vendors"]);
    let vendors = effective.below(&table).filter_map(|(name, held)| match &held.value {
        Value::List(hosts) => {
            Some((name.last().to_owned(), hosts.iter().map(|host| pattern(host)).collect()))
        }
        _ => None,
    });
    let vendors = vendors.collect();
    Targets { allow, images: effective.flag("targets.images"), undescribed: Some(undescribed), vendors }
}

fn patterns(effective: &Effective, name: &str) -> Vec<HostPattern> {
    let Value::List(hosts) = &effective.held(name).value else { unreachable!("it has the shape of a list") };
    hosts.iter().map(|host| pattern(host)).collect()
}

fn pattern(host: &str) -> HostPattern {
    HostPattern::parse(host).expect("patterns are checked when they are read")
}

fn policy(effective: &Effective) -> Policy {
    Policy {
        callbacks: effective.get(&Name::of(["public_url"])).is_some(),
        unsettled_doubt: match effective.text("retry.unsettled_doubt").as_str() {
            "dead_letter" => UnsettledDoubt::DeadLetter,
            _ => UnsettledDoubt::Resubmit,
        },
        // Set by the provider, whose dialect says it.
        unsolvable: Policy::DEFAULT.unsolvable,
        // Set by the engine, which knows the address and whether it is answered.
        callback_address: Policy::DEFAULT.callback_address,
        callback_lost: Policy::DEFAULT.callback_lost,
        // Set by the engine, for each order.
        other_currency: Policy::DEFAULT.other_currency,
        submit_wait: effective.span("timing.submit_wait"),
        in_doubt_wait: effective.span("timing.in_doubt_wait"),
        in_doubt_min: effective.span("timing.in_doubt_min"),
        timer_late: effective.span("timing.timer_late"),
        callback_wait: effective.span("timing.callback_wait"),
        first_poll: effective.span("timing.first_poll"),
        poll_interval: effective.span("timing.poll_interval"),
        task_life: effective.span("timing.task_life"),
        timeout: effective.span("timing.deadline"),
        share_window: match effective.held("timing.share_window").value {
            Value::Span(window) => Some(window),
            _ => None,
        },
        callback_lag: effective.span("timing.callback_lag"),
        // Set by the node, which knows whether others share its orders.
        clock_skew: Policy::DEFAULT.clock_skew,
        refusal_hold: effective.span("timing.refusal_hold"),
        keep: effective.span("store.keep"),
        backoff: Backoff {
            base: effective.span("retry.base"),
            cap: effective.span("retry.cap"),
            jitter: match effective.held("retry.jitter").value {
                Value::Span(most) => Jitter::UpTo(most),
                _ => Jitter::Full,
            },
        },
        faults: faults(effective),
        pace: Pace {
            p50: effective.span("timing.p50"),
            p95: effective.span("timing.p95"),
            p99: effective.span("timing.p99"),
        },
    }
}

fn faults(effective: &Effective) -> FaultTable {
    let mut table = FaultTable::STANDARD;
    for signal in Signal::ALL {
        let mut rule = table.rule(signal);
        rule.limit = effective.limit(&format!("retry.limits.{}", signal_word(signal)));
        table.set(signal, rule);
    }
    table
}

fn engine(effective: &Effective) -> EngineLimits {
    EngineLimits {
        submits_max: effective.count("engine.submits_max"),
        polls_max: effective.count("engine.polls_max"),
        steps_max: effective.count("engine.steps_max"),
        follow_ups_max: effective.count("engine.follow_ups_max"),
        backlog_max: effective.count("engine.backlog_max"),
        claim_max: effective.count("engine.claim_max"),
        claim_span: effective.span("engine.claim_span"),
        sweep_span: effective.span("engine.sweep_span"),
        sweep_pause: effective.span("engine.sweep_pause"),
        poll_wait: effective.span("engine.poll_wait"),
        place_wait: effective.span("engine.place_wait"),
        others_first: effective.span("engine.others_first"),
        count_span: effective.span("engine.count_span"),
    }
}

fn reuse(effective: &Effective) -> ReuseRules {
    let entry = |name: &Name| {
        let text = effective.text_at(name)?;
        Some(ReuseEntry { name: name.to_string(), reuse: reuse_named(&text) })
    };
    let of_table = |path: [&str; 2]| {
        let table = Name::of(path);
        let found = effective.below(&table);
        found.filter_map(|(name, _)| Some((name.last().to_owned(), entry(name)?))).collect::<Vec<_>>()
    };
    let mut targets = of_table(["reuse", "targets"]);
    targets.sort_by_key(|(host, _)| std::cmp::Reverse(host.trim_start_matches('*').len()));
    let by_tenant = |label: String| {
        let entry = entry(&Name::of(["tenant", &label, "reuse"]))?;
        Some((label, entry))
    };
    let default =
        ReuseEntry { name: "reuse.default".into(), reuse: reuse_named(&effective.text("reuse.default")) };
    ReuseRules {
        default,
        kinds: of_table(["reuse", "kinds"]).into_iter().collect(),
        targets: targets
            .into_iter()
            .filter_map(|(host, entry)| Some((HostPattern::parse(&host).ok()?, entry)))
            .collect(),
        tenants: effective.of_list("tenant").into_iter().filter_map(by_tenant).collect(),
    }
}

fn kinds(effective: &Effective) -> KindTable {
    let mut table = KindTable::default();
    for (name, held) in effective.below(&Name::of(["kinds"])) {
        let kind = name.segments().nth(1).unwrap_or_default();
        let own: &mut KindOverride = table.0.entry(kind.to_owned()).or_default();
        match (name.last(), &held.value) {
            ("life", Value::Span(life)) => own.life = Some(Some(*life)),
            ("life", _) => own.life = Some(None),
            ("margin", Value::Span(margin)) => own.margin = Some(*margin),
            ("single_use", Value::Flag(flag)) => own.single_use = Some(*flag),
            ("p50", Value::Span(span)) => own.p50 = Some(*span),
            ("p95", Value::Span(span)) => own.p95 = Some(*span),
            ("p99", Value::Span(span)) => own.p99 = Some(*span),
            ("new", Value::Flag(flag)) => own.is_new = *flag,
            _ => unreachable!("{name} is no setting of a kind"),
        }
    }
    table
}
