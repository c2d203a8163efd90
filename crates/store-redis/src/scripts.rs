//! The Lua scripts, one for each step that must be atomic. They are called by their digest. A restarted Redis has
//! forgotten them, and gets them again.

use redis::{Cmd, Script};

pub(crate) struct Scripts {
    pub(crate) commit: Lua,
    pub(crate) count: Lua,
    pub(crate) claim: Lua,
    pub(crate) take: Lua,
    pub(crate) untake: Lua,
    pub(crate) purge: Lua,
    pub(crate) discard: Lua,
    pub(crate) days: Lua,
    pub(crate) close: Lua,
    pub(crate) order_counts: Lua,
    pub(crate) page: Lua,
    pub(crate) timers: Lua,
    pub(crate) set_aside: Lua,
    pub(crate) settle: Lua,
    pub(crate) secret: Lua,
    pub(crate) replace_secret: Lua,
    pub(crate) mark: Lua,
    pub(crate) adopt: Lua,
    pub(crate) heartbeat: Lua,
    pub(crate) leave: Lua,
    pub(crate) members: Lua,
    pub(crate) write_document: Lua,
    pub(crate) leased: Lua,
    pub(crate) lease: Lua,
    pub(crate) give_back: Lua,
}

/// A script with the common functions before it.
macro_rules! step {
    ($file:literal) => {
        Lua::new(concat!(include_str!("scripts/steps.lua"), include_str!($file)))
    };
}

/// A script about leases, with the functions for steps and leases before it.
macro_rules! lease_step {
    ($file:literal) => {
        Lua::new(concat!(
            include_str!("scripts/steps.lua"),
            include_str!("scripts/leases.lua"),
            include_str!($file)
        ))
    };
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            commit: step!("scripts/commit.lua"),
            count: step!("scripts/count.lua"),
            claim: Lua::new(include_str!("scripts/claim.lua")),
            take: step!("scripts/take.lua"),
            untake: step!("scripts/untake.lua"),
            purge: step!("scripts/purge.lua"),
            discard: step!("scripts/discard.lua"),
            days: Lua::new(include_str!("scripts/days.lua")),
            close: step!("scripts/close.lua"),
            order_counts: Lua::new(include_str!("scripts/order_counts.lua")),
            page: Lua::new(include_str!("scripts/page.lua")),
            timers: Lua::new(include_str!("scripts/timers.lua")),
            set_aside: step!("scripts/set_aside.lua"),
            settle: Lua::new(include_str!("scripts/settle.lua")),
            secret: Lua::new(include_str!("scripts/secret.lua")),
            replace_secret: Lua::new(include_str!("scripts/replace_secret.lua")),
            mark: Lua::new(include_str!("scripts/mark.lua")),
            adopt: Lua::new(include_str!("scripts/adopt.lua")),
            heartbeat: Lua::new(include_str!("scripts/heartbeat.lua")),
            leave: Lua::new(include_str!("scripts/leave.lua")),
            members: Lua::new(include_str!("scripts/roll.lua")),
            write_document: step!("scripts/write_document.lua"),
            leased: lease_step!("scripts/leased.lua"),
            lease: lease_step!("scripts/lease.lua"),
            give_back: lease_step!("scripts/give_back.lua"),
        }
    }
}

/// The parts of a call before its keys: the verb, the script and the number of keys.
const HEAD_PARTS: usize = 3;
/// The space for these parts. A call with the whole script needs more, and is rare.
const HEAD_BYTES: usize = 64;

pub(crate) struct Lua {
    source: &'static str,
    digest: String,
}

impl Lua {
    fn new(source: &'static str) -> Self {
        Self { source, digest: Script::new(source).get_hash().to_owned() }
    }

    /// The call of a script by its digest, which is short.
    pub(crate) fn known(&self, keys: &[impl AsRef<str>], args: &[&[u8]]) -> Cmd {
        invocation("EVALSHA", &self.digest, keys, args)
    }

    /// The call of a script with its whole text. After it, the server also knows the digest.
    pub(crate) fn in_full(&self, keys: &[impl AsRef<str>], args: &[&[u8]]) -> Cmd {
        invocation("EVAL", self.source, keys, args)
    }
}

fn invocation(verb: &str, script: &str, keys: &[impl AsRef<str>], args: &[&[u8]]) -> Cmd {
    let key_bytes: usize = keys.iter().map(|key| key.as_ref().len()).sum();
    let arg_bytes: usize = args.iter().map(|arg| arg.len()).sum();
    let mut command =
        Cmd::with_capacity(HEAD_PARTS + keys.len() + args.len(), HEAD_BYTES + key_bytes + arg_bytes);
    command.arg(verb).arg(script).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    for arg in args {
        command.arg(*arg);
    }
    command
}
