//! How the classic protocol (`in.php` / `res.php`) is spelled. What a request looks
//! like in any of the forms that real clients send, which method stands for which kind, and what each code
//! means, by provider.

pub mod answer;
pub mod code;
pub mod dialect;
pub mod encode;
pub mod form;
pub mod json_document;
pub mod method;

pub use code::ClassicCodes;
pub use dialect::ClassicDialect;
pub use form::{BadForm, Form, Part};
