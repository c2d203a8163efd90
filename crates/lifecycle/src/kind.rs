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
    /// A document or a picture that travels as text, in base64.
    Document,
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
    /// Other fields, any of which may replace this one where it is required.
    pub substitutes: &'static [&'static str],
    /// Whether two orders with different values of this parameter need different answers.
    pub identifies: bool,
    /// The value that is used if the parameter is left out. An order with this value and an order without the
    /// parameter are the same order.
    pub default: Option<&'static str>,
}

/// How the identity of an answer follows from the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The values of the fields that are marked as identifying.
    Fields,
    /// Everything, except what is on the list of things that do not matter.
    Everything,
}

/// What the check of hosts has to know about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// Whether the kind is described. One that is not is taken only where the operator allows it.
    pub is_described: bool,
    /// The hosts that a [vendor address](Shape::VendorAddress) may name beside those that the operator lists, as
    /// patterns.
    pub vendors: &'static [&'static str],
    /// Beginnings of vendor addresses on hosts that serve others as well: what is below one of them is the vendor's.
    pub scripts: &'static [&'static str],
    /// Parameters that an order of any kind may have, and what they are.
    pub roles: &'static [(&'static str, Role)],
    /// What parameters of these names are where the kind knows them, if that is not what their shape says.
    pub known: &'static [(&'static str, Role)],
    /// Names of fields that stand beside the parameters: no parameter may have one of these names.
    pub control: &'static [&'static str],
}

impl HostRules {
    pub const NONE: Self =
        Self { is_described: true, vendors: &[], scripts: &[], roles: &[], known: &[], control: &[] };
}

/// What a parameter is to the check of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Page,
    Vendor,
    File,
    Proxy,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// A value that identifies the answer: a token, an option, a number. It may have dots, and has no reason
    /// to name a host.
    Key,
    /// A word that the site has chosen, for example an action. The rules are those of [`Key`](Role::Key), but
    /// one word with dots may look like a host, because no provider fetches it.
    Word,
    /// A long token that is handed on to the vendor and has dots and slashes by its nature.
    Token,
    /// A page of HTML, plain or in base64, that stood at the page of the order. It links to where it likes, and must
    /// not say that it is another page.
    Html,
    /// Prose that no provider reads as a page: a hint for the solver, the name of a browser. It may speak of hosts,
    /// and holds no address.
    Plain,
    /// The text of a script that the page loads. The rules are those of [`Plain`](Role::Plain), but it may
    /// name XML namespaces.
    Script,
    /// A parameter of which nothing is known.
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
        if let Some((_, role)) = self.hosts.roles.iter().find(|(known, _)| *known == name) {
            return *role;
        }
        let shape = self.fields.iter().find(|field| field.name == name).map(|field| field.shape);
        let known = self.hosts.known.iter().find(|(known, _)| *known == name);
        if let (Some(_), Some((_, role))) = (shape, known) {
            return *role;
        }
        match shape {
            Some(Shape::PageAddress) => Role::Page,
            Some(Shape::VendorAddress) => Role::Vendor,
            Some(Shape::File { .. } | Shape::Document) => Role::File,
            Some(Shape::Text) => Role::Key,
            None => Role::Unknown,
        }
    }
}
