//! Checks whether the daemon can listen: its certificate, the keys of its tenants, and the number of connections.

use super::Findings;
use quittance::SystemClock;
use quittance_config::{Config, OPEN_MAX_DEFAULT, RATE_DEFAULT, StoreUrl, secret_files};
use quittance_daemon::{CertificateFacts, connections, is_kept_inside, load, with_causes};
use quittance_ports::Clock;
use std::path::Path;

const DAY_SECONDS: i64 = 24 * 3600;
/// How many days before the end of a certificate `doctor` warns.
const DAYS_LEFT_LEAST: i64 = 14;

pub(super) fn certificate(findings: &mut Findings, config: &Config) {
    let about = "certificate";
    let (cert, key) = match config.tls.files() {
        Ok(Some(files)) => files,
        Ok(None) if config.tls.listen.is_some() => {
            let what = "there is `tls.listen` and no certificate: set `tls.cert_file` and `tls.key_file`, or start with \
                        `--tls-self-signed DIR`";
            return findings.note(about, what);
        }
        Ok(None) => return,
        Err(error) => return findings.bad(about, with_causes(&error)),
    };
    if let Err(error) = load(cert, key) {
        return findings.bad(about, with_causes(&error));
    }
    let now = i64::try_from(SystemClock.now().as_millis() / 1000).unwrap_or(i64::MAX);
    match CertificateFacts::read(cert) {
        Some(facts) => judge(findings, &facts, cert, now),
        None => findings
            .note(about, format!("{} can be used; its names and its expiry cannot be read", cert.display())),
    }
    if is_open_to_others(key) {
        let what = format!("{} can be read by other users of this machine: `chmod 600` it", key.display());
        findings.note(about, what);
    }
}

fn judge(findings: &mut Findings, facts: &CertificateFacts, path: &Path, now: i64) {
    let (path, until) = (path.display(), &facts.until_words);
    let days = (facts.until - now) / DAY_SECONDS;
    let about = "certificate";
    if facts.until <= now {
        let what = format!("{path} has expired ({until}): clients reject it; put a new certificate there");
        findings.bad(about, what);
    } else if now < facts.from {
        let what =
            format!("{path} is not valid yet: check the clock of this machine, or use another certificate");
        findings.bad(about, what);
    } else if facts.names.is_empty() {
        let what =
            format!("{path} names no host (subjectAltName): clients reject it; make another certificate");
        findings.bad(about, what);
    } else if days < DAYS_LEFT_LEAST {
        let what = format!(
            "{path} expires in {days} days ({until}): put a new certificate there; the daemon loads it without a restart"
        );
        findings.note(about, what);
    } else {
        let names = facts.names.join(", ");
        findings.good(about, format!("{path} is for {names}; valid for {days} days more, until {until}"));
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
pub(super) fn permissions(findings: &mut Findings, config: &Config) {
    for path in secret_files(config).iter().filter(|path| is_open_to_others(path)) {
        let path = path.display();
        let what =
            format!("{path} holds a secret, and other users of this machine can read it: `chmod 600` it");
        findings.bad("secrets", what);
    }
    if let StoreUrl::Embedded(dir) = &config.store.url
        && dir.is_dir()
        && is_open_to_others(dir)
    {
        let dir = dir.display();
        let what = format!(
            "other users of this machine can enter {dir}, where orders and answers are: `chmod 700` it"
        );
        findings.bad("store", what);
    }
}

pub(super) fn tenants(findings: &mut Findings, config: &Config) {
    let about = "tenants";
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets).map(drop));
    let admin = config.admin.iter().map(|key| key.digest().map(drop));
    let wrong: Vec<_> = tenants.chain(admin).filter_map(Result::err).collect();
    wrong.iter().for_each(|error| findings.bad(about, with_causes(error)));
    if config.tenants.is_empty() {
        let instead = if is_kept_inside(config.listen) { "" } else { ", whatever `listen` says" };
        let what = format!(
            "no tenants are configured, so no key is needed and `serve` listens on loopback only{instead}; `quittance tenant new NAME` \
             makes a key"
        );
        findings.note(about, what);
        if config.public_url.is_some() {
            let what = "no tenants are configured, and there is a public_url: let the proxy in front pass on nothing but \
                        /callback/, or every caller that reaches it may place orders";
            findings.note(about, what);
        }
    } else if wrong.is_empty() {
        findings.good(about, format!("{}, each with a key of its own", config.tenants.len()));
        without_limits(config).into_iter().for_each(|what| findings.note(about, what));
        if config.admin.is_none() {
            let what = "there is no operator's key, so the operator's endpoints are closed: `quittance tenant new --admin` makes one";
            findings.note(about, what);
        }
    }
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

pub(super) fn descriptors(findings: &mut Findings, config: &Config) {
    let (about, wanted) = ("files", config.listener.connections_max);
    match quittance_daemon::descriptors() {
        (_, most @ Some(files)) if connections(wanted, most) < wanted => {
            let possible = connections(wanted, most);
            let what = format!(
                "this process may open at most {files} files, and listener.connections_max is {wanted}: `serve` takes {possible} \
                 connections and keeps the others for the store and the provider; raise the limit (LimitNOFILE= in the \
                 unit, or `ulimit -Hn`), or lower listener.connections_max"
            );
            findings.note(about, what);
        }
        (_, Some(most)) => {
            findings.good(
                about,
                format!("this process may open {most} files, enough for all connections of `serve`"),
            );
        }
        (_, None) => findings.good(about, "this process may open any number of files"),
    }
}
