//! How the classic protocol (`in.php` / `res.php`) is written: the encodings that real clients send, the method of
//! each kind, and the meaning of each code, by provider.

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
