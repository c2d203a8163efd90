//! How orders are written in each protocol; no other crate may know. It does no I/O: the providers, the mock provider
//! and the gateway do that.
//!
//! Four lists name the kinds of captcha. A kind that is added or changed may need a row in each of them:
//!
//! | list | where | what a row says |
//! | --- | --- | --- |
//! | kinds | `kinds/{tokens,pictures,cookies}.rs` | parameters, what identifies the answer, its life, how long it takes |
//! | classic methods | `classic/method/classic_methods.rs` | the `method` of `in.php`, where it differs from the kind's name |
//! | JSON task types | `json/task/task_rows.rs` | the `type` of `createTask` and the names of its fields, for each dialect |
//! | JSON solutions | `json/solution.rs` | in which field of `solution` the answer stands |
//!
//! A kind that is in no list still works as an undescribed kind, if the operator allows that.
#![forbid(unsafe_code)]

pub mod classic;
mod dialect;
pub mod json;
pub mod kinds;
pub mod poll_rules;
mod service_codes;

pub use dialect::{Dialect, Protocol, UnknownDialect};
pub use service_codes::{ServiceCode, ServiceCodes, is_no_such_task};
