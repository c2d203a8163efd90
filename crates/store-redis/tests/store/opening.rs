//! Tests of opening a store, and of the errors. No password is ever shown.

use super::{FreshPrefix, create, fresh_prefix, run, settings};
use quittance_ports::Store;
use quittance_ports::conformance::samples::{self, START};
use quittance_servers::{Redis, free_port, shared_redis};
use quittance_store_redis::{RedisOpenError, RedisStore, Settings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::time::Duration;
use tokio::time::Instant;

const SECRET: &str = "hunter2";

async fn refused(settings: Settings) -> RedisOpenError {
    let error = RedisStore::open(settings).await.expect_err("it should not open");
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    error
}

#[test]
fn a_server_that_is_not_there_is_reported_within_seconds() {
    run(async {
        let began = Instant::now();
        let url = format!("redis://:{SECRET}@127.0.0.1:{}", free_port());
        let error = refused(Settings::parse(&url).unwrap()).await;
        assert!(matches!(error, RedisOpenError::Unreachable { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(8));
    });
}

#[test]
fn a_password_is_needed_where_one_is_set_and_is_never_shown() {
    run(async {
        let redis = Redis::start(&[]);
        redis.command(&["CONFIG", "SET", "requirepass", SECRET]);
        let quick = |url: &str| settings(url).with_call_wait(Duration::from_millis(500));
        let error = refused(quick(&redis.url())).await;
        assert!(matches!(error, RedisOpenError::Refused { .. }), "{error}");
        let error = refused(quick(&redis.url()).with_password("hunter22")).await;
        assert!(matches!(error, RedisOpenError::Refused { .. }), "{error}");

        let with = redis.url().replace("//", &format!("//:{SECRET}@"));
        for settings in [quick(&with), quick(&redis.url()).with_password(SECRET)] {
            assert!(!format!("{settings:?} {}", settings.address()).contains(SECRET));
            let store = RedisStore::open(settings).await.unwrap();
            assert!(!format!("{store:?}").contains(SECRET));
            assert!(format!("{store:?}").contains(&redis.port().to_string()));
        }
    });
}

#[test]
fn a_later_layout_is_refused_and_left_alone() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        drop(place.open().await);
        let meta = format!("{{{}}}:meta", place.prefix);
        shared_redis().command(&["HSET", &meta, "format", "7"]);
        let error = refused(place.settings).await;
        assert!(matches!(error, RedisOpenError::Newer { found: 7, known: 2, .. }), "{error}");
        assert_eq!(shared_redis().command(&["HGET", &meta, "format"]), "7");
    });
}

#[test]
fn an_earlier_layout_is_refused_and_left_alone() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        drop(place.open().await);
        let meta = format!("{{{}}}:meta", place.prefix);
        shared_redis().command(&["HSET", &meta, "format", "1"]);
        let error = refused(place.settings).await;
        assert!(matches!(error, RedisOpenError::Older { found: 1, known: 2, .. }), "{error}");
        assert!(error.to_string().contains("choose another prefix"), "{error}");
        assert_eq!(shared_redis().command(&["HGET", &meta, "format"]), "1");
    });
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let meta = format!("{{{}}}:meta", place.prefix);
        shared_redis().command(&["SET", &meta, "theirs"]);
        let error = refused(place.settings).await;
        assert!(matches!(error, RedisOpenError::NotOurs { .. }), "{error}");
        assert_eq!(shared_redis().command(&["GET", &meta]), "theirs");
    });
}

/// Otherwise each node would place, and pay for, the orders of the other.
#[test]
fn a_later_node_divides_the_orders_as_the_first_did() {
    run(async {
        let (url, prefix) = (shared_redis().url(), fresh_prefix());
        let open = async |partitions: u16| {
            let url = format!("{url}?prefix={prefix}&partitions={partitions}");
            RedisStore::open(settings(&url)).await.unwrap()
        };
        let (first, second) = (open(4).await, open(64).await);
        for n in 0..20 {
            let order = samples::queued(&format!("order {n}"), START).order;
            let version = create(&first, &order).await;
            assert_eq!(second.load(&order.key).await.unwrap().unwrap().version, version);
        }
        assert!(format!("{second:?}").contains("4 partitions"));
    });
}

#[test]
fn prefixes_keep_stores_apart() {
    run(async {
        let (one, other) =
            (FreshPrefix::on_one_server(1).open().await, FreshPrefix::on_one_server(1).open().await);
        let order = samples::queued("apart", START).order;
        create(&one, &order).await;
        assert_eq!(other.load(&order.key).await.unwrap(), None);
        create(&other, &order).await;
    });
}

#[test]
fn over_tls_only_a_server_with_a_trusted_certificate_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let issue = || {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (authority, stranger) = (issue(), issue());
    let key = KeyPair::generate().unwrap();
    let server =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("ca"), authority.pem()).unwrap();
    fs::write(path("cert"), server.pem()).unwrap();
    fs::write(path("key"), key.serialize_pem()).unwrap();
    let port = free_port().to_string();
    let redis = Redis::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &path("cert"),
        "--tls-key-file",
        &path("key"),
        "--tls-ca-cert-file",
        &path("ca"),
        "--tls-auth-clients",
        "no",
    ]);
    run(async {
        let url = format!("rediss://127.0.0.1:{port}");
        let quick = || settings(&url).with_call_wait(Duration::from_secs(3));
        let store = RedisStore::open(quick().with_ca(authority.pem().into_bytes())).await.unwrap();
        let order = samples::queued("in private", START).order;
        let version = create(&store, &order).await;
        let mut watch = store.watch(&order.key).await.unwrap();
        let other = RedisStore::open(settings(&redis.url())).await.unwrap();
        super::write(&other, version, &samples::solved("in private", START).order).await;
        watch.changed().await;

        let quick = || quick().with_call_wait(Duration::from_millis(500));
        for untrusting in [quick(), quick().with_ca(stranger.pem().into_bytes())] {
            let error = refused(untrusting).await;
            assert!(
                matches!(error, RedisOpenError::Unreachable { .. } | RedisOpenError::Unusable { .. }),
                "{error}"
            );
        }
    });
}
