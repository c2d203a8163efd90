//! Pools, and answers from the stock, as a user of the library sees them.

use crate::fixture::{Fixture, absent_provider, eventually};
use quittance::{
    ClassicDialect, Demand, Goal, LifeRule, Order, Origin, Place, PoolError, PoolSpec, PoolView, Quittance,
    StartError, Turnstile,
};
use quittance_engine::targets::HostPattern;
use quittance_ports::Day;
use std::collections::BTreeSet;
use std::time::Duration;

const PAGE: &str = "https://shop.example.com/login";
const SITE_KEY: &str = "0x4AAAAAAADnPIDROrmt1Wwj";

fn order() -> Order {
    Turnstile::new(SITE_KEY, PAGE).into()
}

fn pool(size: u32) -> PoolSpec {
    PoolSpec {
        name: "login".into(),
        tenant: "default".into(),
        kind: "turnstile".into(),
        params: order().draft().params.clone(),
        goal: Goal::Fixed { size },
        budget: None,
        hours: Vec::new(),
        min_life: None,
        is_on: true,
    }
}

/// Waits until the pool is as expected.
async fn until(node: &Quittance, is_so: impl Fn(&PoolView) -> bool) -> PoolView {
    let look = async || node.pools().await.unwrap().pop().filter(|pool| is_so(pool));
    eventually("the pool is as it should be", look).await
}

fn fresh(pool: &PoolView) -> u32 {
    pool.document.level.as_ref().map_or(0, |level| level.fresh)
}

#[tokio::test]
async fn an_exclusive_order_is_served_from_the_stock_and_says_so() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.builder().pool(pool(3)).start().await.unwrap();
    until(&node, |pool| fresh(pool) == 3).await;
    let bought = fixture.ledger().tasks.len();
    let own = node.solve(order().exclusive()).await.unwrap();
    let keyed = node.solve(order().idempotency_key("mine")).await.unwrap();
    assert_eq!((own.origin, keyed.origin), (Origin::Stock, Origin::Stock));
    assert_ne!(own.text(), keyed.text(), "each has its own");
    let again = node.solve(order().idempotency_key("mine")).await.unwrap();
    assert_eq!((again.text(), again.origin), (keyed.text(), Origin::Replayed));
    let new = node.solve(order().exclusive().no_stock()).await.unwrap();
    assert_eq!(new.origin, Origin::Api);
    assert!(fixture.ledger().tasks.len() > bought);
    let view = until(&node, |pool| pool.demand.served == 2).await;
    assert_eq!(view.document.spec, pool(3));
    node.stop().await;
}

#[tokio::test]
async fn the_status_of_a_node_shows_its_demand() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let node = fixture.builder().pool(pool(1)).start().await.unwrap();
    until(&node, |pool| fresh(pool) == 1).await;
    node.solve(order().exclusive()).await.unwrap();
    eventually("its card says so", async || {
        let nodes = node.members().await.unwrap().nodes;
        let demand = Demand { served: 1, missed: 0 };
        nodes.iter().any(|signed| signed.node_status.demand.get("login") == Some(&demand)).then_some(())
    })
    .await;
    node.stop().await;
}

/// Every write makes the node that refills the pool check it again.
#[tokio::test]
async fn a_pool_of_the_builder_is_written_only_when_it_is_not_there_as_it_should_be() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let start = async |size: u32| {
        let spec = PoolSpec { is_on: false, ..pool(size) };
        let node = loop {
            match fixture.builder().pool(spec.clone()).start().await {
                Ok(node) => break node,
                // The last handle on the store goes when its tasks have gone.
                Err(StartError::Open(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        until(&node, |pool| pool.document.level.is_some()).await;
        node.stop().await;
    };
    let version = async || {
        let opened = loop {
            match Place::Embedded(fixture.store()).open().await {
                Ok(opened) => break opened,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let matching = opened.membership.documents().await.unwrap().pop().unwrap();
        (matching.version, matching.document)
    };
    start(2).await;
    let first = version().await;
    start(2).await;
    assert_eq!(version().await, first);
    start(3).await;
    assert_ne!(version().await.1, first.1);
}

#[tokio::test]
async fn a_pool_that_cannot_be_is_refused_at_the_start_and_by_hand_and_changes_nothing() {
    let picture =
        PoolSpec { kind: "image".into(), params: [("body".into(), vec![7; 200].into())].into(), ..pool(1) };
    let mut elsewhere = pool(1);
    elsewhere.params.insert("pageurl".into(), "https://shop.example.org/".into());
    let node = Quittance::builder().provider(absent_provider()).start().await.unwrap();
    for spec in [picture, elsewhere] {
        let refused =
            Quittance::builder().provider(absent_provider()).pool(spec.clone()).start().await.unwrap_err();
        assert!(matches!(&refused, StartError::Pool { name, .. } if name == "login"), "{refused}");
        let refused = node.set_pool(spec).await.unwrap_err();
        assert!(matches!(refused, PoolError::CannotBeKept { .. } | PoolError::Place(_)), "{refused}");
    }
    assert_eq!(node.pools().await.unwrap(), []);
    assert!(!node.remove_pool("login").await.unwrap());
    node.stop().await;
}

#[tokio::test]
async fn a_rule_of_the_builder_says_how_long_answers_live() {
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    let rule = LifeRule {
        kind: Some("turnstile".into()),
        site: None,
        life: Some(Duration::from_secs(100)),
        margin: None,
    };
    let node = fixture.builder().lifetimes([rule]).start().await.unwrap();
    let solved = node.solve(order()).await.unwrap();
    let lives = solved.answer.expires.unwrap().since(solved.answer.earliest);
    assert_eq!(lives, Duration::from_secs(100));
    let reply = solved.remaining_life.unwrap();
    assert!(reply > Duration::from_secs(80) && reply <= lives, "{reply:?}");
    node.stop().await;
}

#[tokio::test]
async fn a_rule_for_a_host_covers_its_pages_in_each_spelling_and_they_are_one_site_in_the_usage() {
    const ASCII: &str = "xn--mnchen-3ya.example.com";
    let fixture = Fixture::new(ClassicDialect::TwoCaptcha).await;
    for pattern in ["münchen.example.com", ASCII] {
        let rule = LifeRule {
            kind: None,
            site: Some(HostPattern::parse(pattern).unwrap()),
            life: Some(Duration::from_secs(100)),
            margin: None,
        };
        let node = fixture.builder().lifetimes([rule]).start().await.unwrap();
        for host in ["münchen.example.com", "MÜNCHEN.example.com", ASCII] {
            let page = format!("https://{host}/login");
            let answer = node.solve(Turnstile::new(SITE_KEY, &page).exclusive()).await.unwrap().answer;
            let lives = answer.expires.unwrap().since(answer.earliest);
            assert_eq!(lives, Duration::from_secs(100), "`{pattern}`, page on {host}");
        }
        let usage = eventually("three answers are counted", async || {
            let usage = node.usage(Day(0), Day(1_000_000)).await.unwrap();
            (usage.iter().map(|(_, counters)| counters.solved).sum::<u64>() >= 3).then_some(usage)
        });
        let sites: BTreeSet<String> = usage.await.into_iter().map(|(row, _)| row.site).collect();
        assert_eq!(sites, BTreeSet::from([ASCII.to_owned()]));
        node.stop().await;
    }
}
