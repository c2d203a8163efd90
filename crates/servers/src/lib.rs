//! Redis, PostgreSQL and PgBouncer for tests: each in a temporary directory, on a private port of loopback, with ways
//! to break it on purpose. A server goes when its owner is dropped, and when the process that started it is gone,
//! however that ended. Whatever goes wrong here is a panic that shows the server's log: a test can do nothing else
//! about it.
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
