//! Finds the programs, and the users that run them. PostgreSQL and PgBouncer refuse root, so for root they run as the
//! user of their packages.

use rustix::process::geteuid;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const POSTGRES_USER: &str = "postgres";
/// Where Debian and derived systems keep one folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Directories that a user's PATH often lacks.
const MORE_PATHS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) group: u32,
}

impl User {
    /// The user for programs that refuse root, or `None` if this process is not root.
    pub(crate) fn not_root() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").expect("a system has users");
        let entry = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_it = fields.next() == Some(POSTGRES_USER);
            let (id, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            is_it.then_some(Self { id, group })
        });
        assert!(entry.is_some(), "we are root, and there is no user `{POSTGRES_USER}`: run scripts/servers");
        entry
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(MORE_PATHS.map(PathBuf::from));
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

/// Finds a program of PostgreSQL in the folder of the newest version.
fn of_postgres(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.flatten();
    let entry = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        let program = version.path().join("bin").join(name);
        program.is_file().then_some((number, program))
    });
    entry.max().map(|(_, program)| program)
}

/// The path of a program.
pub(crate) fn program(name: &str) -> PathBuf {
    on_path(name)
        .or_else(|| of_postgres(name))
        .unwrap_or_else(|| panic!("{name} is not there: run scripts/servers, which installs it"))
}

/// A program in the folder of another one, so that both have one version.
pub(crate) fn beside(known: &Path, name: &str) -> PathBuf {
    let real = known.canonicalize().unwrap_or_else(|_| known.to_owned());
    let entry = real.parent().map(|place| place.join(name)).filter(|program| program.is_file());
    entry.unwrap_or_else(|| program(name))
}
