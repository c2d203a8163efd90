//! Redis, PostgreSQL and PgBouncer for tests: each in a temporary directory, on a private loopback port, with ways to
//! break it on purpose. A server stops when its owner is dropped, and when the process that started it ends in any
//! way. Every failure here is a panic with the server's log.
#![forbid(unsafe_code)]

mod cluster;
mod guardian;
mod pooler;
mod port;
mod postgres;
mod proc;
mod program;
mod redis;
mod sentinel;
mod tap;
mod until;

pub use cluster::RedisCluster;
pub use pooler::Pooler;
pub use port::free_port;
pub use postgres::{Postgres, shared_postgres};
pub use redis::{Redis, shared_redis};
pub use sentinel::Sentinel;
pub use tap::Tap;
