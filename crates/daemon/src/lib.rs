//! What a daemon needs from its machine: sockets (its own or those of systemd), a certificate, and the limit of open
//! files. Also the operator's program for alerts, and the log lines for operators. The only crate that may open a
//! daemon's sockets.
#![forbid(unsafe_code)]

mod address_file;
mod alert_command;
mod descriptors;
mod log_watch;
mod self_signed;
mod shown_certificate;
mod sockets;
mod systemd;

pub use address_file::AddressFile;
pub use alert_command::run_program;
pub use descriptors::{connections, descriptors, raise};
pub use log_watch::log_changes;
pub use shown_certificate::{CertificateError, CertificateSource, WatchedFiles, load};
pub use sockets::{CannotListen, HTTPS_DEFAULT, Inherited, ListenRequest, cannot_listen, is_kept_inside};
pub use systemd::{Systemd, Watchdog};
