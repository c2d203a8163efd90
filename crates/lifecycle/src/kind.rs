//! What a kind of order is made of: its parameters, which of them identify the answer, and how long the answer
//! lives. The kinds themselves are data, kept elsewhere; to this crate their names mean nothing.

use crate::policy::Pace;
use alloc::borrow::Cow;
use core::time::Duration;

/// What a parameter must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Text,
    /// An absolute http or https address.
    PageAddress,
    /// An address or a host of the vendor: a script, a challenge, an API. It is not the page.
    VendorAddress,
    /// The bytes of a picture, a sound or another file, within these bounds.
    File {
        bytes_min: usize,
        bytes_max: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    /// Whether two orders that differ in it need different answers.
    pub identifies: bool,
    /// What leaving it out means, so that saying it and leaving it out is the same order.
    pub default: Option<&'static str>,
}

/// How the identity of an answer follows from the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The fields that say so.
    Fields,
    /// Everything, except what is on the list of things that do not matter.
    Everything,
}

/// What the check of hosts has to know about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// Whether the kind is described. One that is not is taken only where the operator allows it.
    pub is_described: bool,
    /// The hosts that a [vendor address](Shape::VendorAddress) may name beside those that the operator lists, as patterns.
    pub vendors: &'static [&'static str],
    /// Parameters that an order of any kind may have, and that no provider reads as a page.
    pub plain: &'static [&'static str],
}

impl HostRules {
    pub const NONE: Self = Self { is_described: true, vendors: &[], plain: &[] };
}

/// What a parameter is to the check of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Page,
    Vendor,
    File,
    Proxy,
    /// A key, an option, a number: it has no reason to name a host at all.
    Key,
    /// Prose that no provider reads as a page: a hint for the solver, the name of a browser. It may speak of hosts, and holds no
    /// address.
    Plain,
    /// Nothing is known about it.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: Cow<'static, str>,
    pub fields: &'static [Field],
    pub identity: Identity,
    /// Parameters that never change the answer: how to reply, who sold the client, and the like.
    pub immaterial: &'static [&'static str],
    /// Parameters that say through which address the site is visited.
    pub address_fields: &'static [&'static str],
    /// Whether the answer only works from the address that it was solved from: the proxy then always counts.
    pub bound_to_address: bool,
    /// How long an answer lives, from when it was solved; `None` for ever.
    pub life: Option<Duration>,
    /// How much life a reused answer, cached or from the stock, has left when it is handed out.
    pub margin: Duration,
    /// Whether the site takes an answer once only.
    pub single_use: bool,
    /// How long answers take, until we have seen for ourselves.
    pub pace: Pace,
    pub hosts: HostRules,
}

impl Kind {
    /// What a parameter of this name is in an order of this kind.
    #[must_use]
    pub fn role(&self, name: &str) -> Role {
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            return match field.shape {
                _ if self.address_fields.contains(&name) => Role::Proxy,
                Shape::PageAddress => Role::Page,
                Shape::VendorAddress => Role::Vendor,
                Shape::File { .. } => Role::File,
                Shape::Text if !self.hosts.plain.contains(&name) => Role::Key,
                Shape::Text => Role::Plain,
            };
        }
        match name {
            _ if self.address_fields.contains(&name) => Role::Proxy,
            _ if self.hosts.plain.contains(&name) => Role::Plain,
            _ => Role::Unknown,
        }
    }
}
