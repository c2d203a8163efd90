//! How the JSON protocol (`createTask` / `getTaskResult`) is written: the task type of each kind, the format of a
//! solution, the meaning of each code, and the replies of a server of each dialect.

pub mod answer;
pub mod code;
pub mod dialect;
pub mod id;
mod json_price;
mod meaning;
pub mod reply;
pub mod solution;
pub mod task;

pub use answer::{
    CreateReply, JsonAccountReply, JsonSight, REPLY_BYTES_MAX, ReportReply, ResultReply, read_balance,
    read_callback, read_create, read_report, read_result,
};
pub use code::{CodeRow, JsonCodes, error_id};
pub use dialect::{JsonDialect, JsonFacts};
pub use id::{TaskId, id_of_uuid, read_task_id, uuid_of};
pub use meaning::meaning;
pub use reply::{
    FinishedTask, Statistic, balance, created, error, error_because, processing, ready, reported, statistic,
};
pub use solution::{name_the_agent, read_solution, solution};
pub use task::{BadTask, CannotSpellTask, Leaf, OrderParams, leaves, spell, understand};
