//! A node as a configuration says, and what a daemon needs from its machine: sockets (its own or those of systemd), a
//! certificate, and the limit of open files. Also the operator's program for alerts, and the log lines for operators.
//! Also the client of our own API, in this process or at the daemon.
//! The only crate that may open a daemon's sockets, and turn settings into a node.
#![forbid(unsafe_code)]

mod address_file;
mod alert_command;
pub mod api_client;
mod certificate_facts;
pub mod configured_node;
pub mod configured_store;
mod descriptors;
mod gateway_setup;
mod log_watch;
mod provider_names;
pub mod reach;
mod refusals;
mod reloader;
mod running_daemon;
mod self_signed;
mod serving;
mod setup_error;
mod shown_certificate;
mod sockets;
mod systemd;

pub use address_file::AddressFile;
pub use api_client::{ApiClient, ApiError};
pub use certificate_facts::CertificateFacts;
pub use descriptors::{connections, descriptors};
pub use refusals::CheckReport;
pub use reloader::{LogLevel, ReloadSource};
pub use running_daemon::RunningDaemon;
pub use serving::{ServeRequest, ServingDaemon};
pub use setup_error::{SetupError, SetupFault, with_causes};
pub use shown_certificate::{CertificateError, CertificateSource, WatchedFiles, load};
pub use sockets::{CannotListen, Inherited, cannot_listen, is_kept_inside};
pub use systemd::{Systemd, Watchdog};
