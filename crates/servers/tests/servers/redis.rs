//! Tests of Redis: alone, as a cluster, and behind a sentinel.

use crate::{SILENCE, until};
use quittance_servers::{Redis, RedisCluster, Sentinel, shared_redis};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ptr;

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn a_redis_that_was_killed_comes_back_with_what_it_held() {
    let mut redis = Redis::start(&DURABLE);
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{}", redis.port()));
    assert_eq!(redis.command(&["set", "order", "paid"]), "OK");
    let before = redis.pid();
    redis.kill();
    assert!(TcpStream::connect(("127.0.0.1", redis.port())).is_err(), "it is gone");
    redis.start_again();
    assert_ne!(redis.pid(), before);
    assert_eq!(redis.command(&["get", "order"]), "paid");
    let own = format!("process_id:{}", redis.pid());
    assert!(redis.command(&["info", "server"]).lines().any(|line| line.trim() == own));
}

#[test]
fn a_paused_redis_takes_calls_and_says_nothing_until_it_is_resumed() {
    let redis = Redis::start(&[]);
    redis.pause();
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let mut reply = [0; 7];
    assert!(stream.read_exact(&mut reply).is_err(), "it replied {reply:?}");
    redis.resume();
    stream.set_read_timeout(None).unwrap();
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
}

#[test]
fn a_paused_redis_can_be_killed_and_dropped() {
    let mut redis = Redis::start(&DURABLE);
    redis.pause();
    redis.kill();
    redis.start_again();
    assert_eq!(redis.command(&["ping"]), "PONG");
    redis.pause();
    let port = redis.port();
    drop(redis);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_shared_redis_is_one() {
    assert!(ptr::eq(shared_redis(), shared_redis()));
    assert_eq!(shared_redis().command(&["config", "get", "appendfsync"]), "appendfsync\nalways");
}

#[test]
#[should_panic(expected = "Redis does not start")]
fn a_redis_that_does_not_start_says_why() {
    _ = Redis::start(&["--no-such-setting", "1"]);
}

#[test]
fn a_cluster_serves_every_slot_and_comes_back() {
    let mut cluster = RedisCluster::start();
    assert_eq!(cluster.urls().len(), 3);
    let info = cluster.node(1).command(&["cluster", "info"]);
    assert!(info.contains("cluster_slots_ok:16384") && info.contains("cluster_size:3"), "{info}");
    assert_eq!(cluster.node(0).command(&["-c", "set", "order", "paid"]), "OK");
    cluster.kill();
    cluster.start_again();
    assert_eq!(cluster.node(2).command(&["-c", "get", "order"]), "paid");
}

#[test]
fn a_sentinel_makes_the_replica_master_when_the_master_is_killed() {
    let mut sentinel = Sentinel::start();
    let (first, second) = (sentinel.master().port(), sentinel.replica().port());
    let watcher: u16 = sentinel.url().rsplit_once(':').unwrap().1.parse().unwrap();
    let master = || {
        let mut stream = TcpStream::connect(("127.0.0.1", watcher)).unwrap();
        stream.write_all(b"SENTINEL get-master-addr-by-name main\r\n").unwrap();
        let mut output = [0; 64];
        let count = stream.read(&mut output).unwrap();
        String::from_utf8_lossy(&output[..count]).into_owned()
    };
    assert!(master().contains(&first.to_string()), "{}", master());
    sentinel.kill();
    until("another master", || master().contains(&second.to_string()).then_some(()));
    until("it takes writes", || (sentinel.replica().command(&["set", "a", "b"]) == "OK").then_some(()));
    sentinel.start_again();
    assert_eq!(sentinel.master().command(&["ping"]), "PONG");
}
