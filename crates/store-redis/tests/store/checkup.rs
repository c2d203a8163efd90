//! Tests of `doctor` on the settings of Redis: each bad one is found, with its cost and the fix.

use super::{FreshPrefix, run, settings};
use quittance_ports::{Finding, Membership, Verdict};
use quittance_servers::{Redis, Sentinel};
use quittance_store_redis::RedisStore;

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

async fn checkup(store: &RedisStore) -> Vec<Finding> {
    store.checkup().await.unwrap()
}

#[track_caller]
fn worst(findings: &[Finding]) -> Verdict {
    let is = |verdict| findings.iter().any(|finding| finding.verdict == verdict);
    if is(Verdict::Bad) {
        Verdict::Bad
    } else if is(Verdict::Note) {
        Verdict::Note
    } else {
        Verdict::Good
    }
}

#[test]
fn each_setting_that_breaks_a_promise_is_found_with_what_to_set() {
    run(async {
        let redis = Redis::start(&DURABLE);
        let store = RedisStore::open(settings(&redis.url())).await.unwrap();
        assert_eq!(worst(&checkup(&store).await), Verdict::Good, "{:?}", checkup(&store).await);
        let memory = redis.command(&["INFO", "memory"]);
        let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        let nearly_full = (used.trim().parse::<u64>().unwrap() * 11 / 10).to_string();
        for (setting, bad, good, verdict, advice) in [
            (
                "maxmemory-policy",
                "allkeys-lru",
                "noeviction",
                Verdict::Bad,
                "set maxmemory-policy noeviction",
            ),
            (
                "maxmemory-policy",
                "volatile-ttl",
                "noeviction",
                Verdict::Bad,
                "set maxmemory-policy noeviction",
            ),
            ("appendonly", "no", "yes", Verdict::Bad, "set appendonly yes"),
            ("appendfsync", "everysec", "always", Verdict::Note, "set appendfsync always"),
            ("appendfsync", "no", "always", Verdict::Bad, "set appendfsync always"),
            ("maxmemory", &nearly_full, "0", Verdict::Note, "raise maxmemory"),
        ] {
            redis.command(&["CONFIG", "SET", setting, bad]);
            let findings = checkup(&store).await;
            assert_eq!(worst(&findings), verdict, "{setting} {bad}: {findings:?}");
            let record = findings.iter().find(|finding| finding.verdict == verdict).unwrap();
            assert!(record.what.contains(advice), "{record:?}");
            redis.command(&["CONFIG", "SET", setting, good]);
        }
        assert_eq!(worst(&checkup(&store).await), Verdict::Good);
    });
}

#[test]
fn where_settings_may_not_be_read_the_operator_is_asked_to_check() {
    run(async {
        let redis = Redis::start(&DURABLE);
        redis.command(&["ACL", "SETUSER", "tenant", "on", ">pass", "~*", "&*", "+@all", "-config"]);
        let url = redis.url().replace("//", "//tenant:pass@");
        let store = RedisStore::open(settings(&url)).await.unwrap();
        let findings = checkup(&store).await;
        assert_eq!(worst(&findings), Verdict::Note);
        assert!(findings.iter().any(|finding| finding.what.contains("CONFIG GET")), "{findings:?}");
    });
}

#[test]
fn replicas_without_wait_are_noted() {
    run(async {
        let servers = Sentinel::start();
        let store = RedisStore::open(settings(&servers.master().url())).await.unwrap();
        let findings = checkup(&store).await;
        assert!(
            findings.iter().any(|finding| finding.what.contains("replicas are attached")),
            "{findings:?}"
        );
        servers.master().command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        let findings = checkup(&store).await;
        assert!(
            !findings.iter().any(|finding| finding.what.contains("replicas are attached")),
            "{findings:?}"
        );
    });
}

#[test]
fn every_server_of_a_cluster_is_looked_at() {
    run(async {
        let store = FreshPrefix::on_the_cluster().open().await;
        let findings = checkup(&store).await;
        assert!(findings.iter().any(|finding| finding.what.contains("new enough")), "{findings:?}");
        let matches: Vec<_> = findings.iter().filter(|finding| finding.what.contains("noeviction")).collect();
        assert_eq!(matches.len(), 1, "what is true of all is reported once: {findings:?}");
    });
}
