//! Tests in virtual time: single scenarios, thousands of random lives, and a study of pools.
#![forbid(unsafe_code)]

mod pool_study;
mod promises;
mod stories;
