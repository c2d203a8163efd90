//! Values as users type them on the command line.

use quittance_config::duration;
use std::net::SocketAddr;
use std::time::Duration;

/// An address to listen on.
pub(crate) fn listen_address(typed: &str) -> Result<SocketAddr, String> {
    typed.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8780 or [::1]:8780".into())
}

pub(crate) fn span(typed: &str) -> Result<Duration, String> {
    duration::parse(typed).ok_or_else(|| format!("write it as {}", duration::FORM))
}

pub(crate) fn pair(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as NAME=VALUE".into()),
    }
}
