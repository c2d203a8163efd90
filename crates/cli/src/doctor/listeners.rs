//! Checks whether the daemon can listen: its certificate, the keys of its tenants, and the number of connections.

use super::{Finding, State};
use crate::exit::{CliError, Exit};
use quittance::SystemClock;
use quittance_config::{Config, OPEN_MAX_DEFAULT, RATE_DEFAULT, StoreUrl, secret_files};
use quittance_daemon::{connections, is_kept_inside, load};
use quittance_ports::Clock;
use std::net::IpAddr;
use std::path::Path;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::{Time, Validity};

const DAY_SECONDS: i64 = 24 * 3600;
/// How many days before the end of a certificate `doctor` warns.
const DAYS_LEFT_LEAST: i64 = 14;

fn of(about: &'static str, state: State, what: impl Into<String>) -> Vec<Finding> {
    vec![Finding::new(about, state, what)]
}

fn in_full(error: &dyn std::error::Error) -> String {
    CliError::of(Exit::Config, error).what
}

pub(super) fn certificate(config: &Config) -> Vec<Finding> {
    let about = "certificate";
    let (cert, key) = match config.tls.files() {
        Ok(Some(files)) => files,
        Ok(None) if config.tls.listen.is_some() => {
            let what = "there is `tls.listen` and no certificate: set `tls.cert_file` and `tls.key_file`, or start with \
                        `--tls-self-signed DIR`";
            return of(about, State::Note, what);
        }
        Ok(None) => return Vec::new(),
        Err(error) => return of(about, State::Bad, in_full(&error)),
    };
    if let Err(error) = load(cert, key) {
        return of(about, State::Bad, in_full(&error));
    }
    let now = i64::try_from(SystemClock.now().as_millis() / 1000).unwrap_or(i64::MAX);
    let mut findings = match facts(cert) {
        Some(facts) => vec![facts.judge(cert, now)],
        None => of(
            about,
            State::Note,
            format!("{} can be used; its names and its expiry cannot be read", cert.display()),
        ),
    };
    if is_open_to_others(key) {
        let what = format!("{} can be read by other users of this machine: `chmod 600` it", key.display());
        findings.push(Finding::new(about, State::Note, what));
    }
    findings
}

/// The facts in a certificate.
struct Facts {
    names: Vec<String>,
    from: i64,
    until: i64,
    until_words: String,
}

fn facts(path: &Path) -> Option<Facts> {
    let der = CertificateDer::pem_slice_iter(&quittance_config::read_file(path).ok()?).next()?.ok()?;
    let cert = Certificate::from_der(&der).ok()?.tbs_certificate;
    let names = cert.get::<SubjectAltName>().ok().flatten().map(|(_, found)| found.0).unwrap_or_default();
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => match bytes.as_bytes() {
            v4 if v4.len() == 4 => <[u8; 4]>::try_from(v4).ok().map(|v4| IpAddr::from(v4).to_string()),
            v6 => <[u8; 16]>::try_from(v6).ok().map(|v6| IpAddr::from(v6).to_string()),
        },
        _ => None,
    };
    let seconds = |time: Time| i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    let Validity { not_before, not_after } = cert.validity;
    Some(Facts {
        names: names.iter().filter_map(name).collect(),
        from: seconds(not_before),
        until: seconds(not_after),
        until_words: not_after.to_string(),
    })
}

impl Facts {
    fn judge(&self, path: &Path, now: i64) -> Finding {
        let (path, until) = (path.display(), &self.until_words);
        let days = (self.until - now) / DAY_SECONDS;
        let (state, what) = if self.until <= now {
            (
                State::Bad,
                format!("{path} has expired ({until}): clients reject it; put a new certificate there"),
            )
        } else if now < self.from {
            (
                State::Bad,
                format!(
                    "{path} is not valid yet: check the clock of this machine, or use another certificate"
                ),
            )
        } else if self.names.is_empty() {
            (
                State::Bad,
                format!("{path} names no host (subjectAltName): clients reject it; make another certificate"),
            )
        } else if days < DAYS_LEFT_LEAST {
            (
                State::Note,
                format!(
                    "{path} expires in {days} days ({until}): put a new certificate there; the daemon loads it without a \
                     restart"
                ),
            )
        } else {
            let names = self.names.join(", ");
            (State::Good, format!("{path} is for {names}; valid for {days} days more, until {until}"))
        };
        Finding::new("certificate", state, what)
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
const fn is_open_to_others(_path: &Path) -> bool {
    false
}

/// Files with secrets, and the folder with the orders, that other users of this machine can read.
pub(super) fn permissions(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in secret_files(config).iter().filter(|path| is_open_to_others(path)) {
        let what = format!(
            "{} holds a secret, and other users of this machine can read it: `chmod 600` it",
            path.display()
        );
        findings.push(Finding::new("secrets", State::Bad, what));
    }
    if let StoreUrl::Embedded(dir) = &config.store.url
        && dir.is_dir()
        && is_open_to_others(dir)
    {
        let what = format!(
            "other users of this machine can enter {}, where orders and answers are: `chmod 700` it",
            dir.display()
        );
        findings.push(Finding::new("store", State::Bad, what));
    }
    findings
}

pub(super) fn tenants(config: &Config) -> Vec<Finding> {
    let about = "tenants";
    let mut findings = Vec::new();
    for tenant in &config.tenants {
        if let Err(error) = tenant.settings(&config.targets) {
            findings.push(Finding::new(about, State::Bad, in_full(&error)));
        }
    }
    if let Some(Err(error)) = config.admin.as_ref().map(quittance_config::CallerKey::digest) {
        findings.push(Finding::new(about, State::Bad, in_full(&error)));
    }
    if config.tenants.is_empty() {
        let instead = if is_kept_inside(config.listen) { "" } else { ", whatever `listen` says" };
        let what = format!(
            "no tenants are configured, so no key is needed and `serve` listens on loopback only{instead}; `quittance tenant new NAME` \
             makes a key"
        );
        findings.push(Finding::new(about, State::Note, what));
        if config.public_url.is_some() {
            let what = "no tenants are configured, and there is a public_url: let the proxy in front pass on nothing but \
                        /callback/, or every caller that reaches it may place orders";
            findings.push(Finding::new(about, State::Note, what));
        }
    } else if findings.is_empty() {
        let what = format!("{}, each with a key of its own", config.tenants.len());
        findings.push(Finding::new(about, State::Good, what));
        findings.extend(without_limits(config).map(|what| Finding::new(about, State::Note, what)));
        if config.admin.is_none() {
            let what = "there is no operator's key, so the operator's endpoints are closed: `quittance tenant new --admin` makes one";
            findings.push(Finding::new(about, State::Note, what));
        }
    }
    findings
}

/// The tenants without limits of their own, and the defaults for them.
fn without_limits(config: &Config) -> Option<String> {
    let none = config.tenants.iter().map(quittance_config::TenantConfig::limits);
    let none = none.filter(|limits| limits.open_max.is_none() || limits.rate.is_none());
    let names: Vec<_> = none.map(|limits| limits.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} without `rate` or `open_max`: at most {OPEN_MAX_DEFAULT} open orders and {} a second, {} at once, hold instead; \
             set both for each tenant",
            names.join(", "),
            1000 / RATE_DEFAULT.every.as_millis(),
            RATE_DEFAULT.burst,
        )
    })
}

pub(super) fn descriptors(config: &Config) -> Vec<Finding> {
    let (about, wanted) = ("files", config.listener.connections_max);
    match quittance_daemon::descriptors() {
        (_, most @ Some(files)) if connections(wanted, most) < wanted => {
            let possible = connections(wanted, most);
            let what = format!(
                "this process may open at most {files} files, and listener.connections_max is {wanted}: `serve` takes {possible} \
                 connections and keeps the others for the store and the provider; raise the limit (LimitNOFILE= in the \
                 unit, or `ulimit -Hn`), or lower listener.connections_max"
            );
            of(about, State::Note, what)
        }
        (_, Some(most)) => of(
            about,
            State::Good,
            format!("this process may open {most} files, enough for all connections of `serve`"),
        ),
        (_, None) => of(about, State::Good, "this process may open any number of files"),
    }
}
