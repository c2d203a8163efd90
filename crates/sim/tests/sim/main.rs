//! Whole lives in virtual time: one scenario after the other, thousands of random lives, and a study of pools.
#![forbid(unsafe_code)]

mod pool_study;
mod promises;
mod stories;
