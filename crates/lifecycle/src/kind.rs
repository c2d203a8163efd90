//! What describes a kind of order: its parameters, which of them identify the answer, and how long the answer lives.
//! The kinds themselves are data in another crate. To this crate their names mean nothing.

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
    /// A document or an image as text, in base64.
    Document,
    /// The bytes of an image, a sound or another file, within these size limits.
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
    /// Other fields, any of which may replace this one if it is required.
    pub substitutes: &'static [&'static str],
    /// Whether two orders with different values of this parameter need different answers.
    pub identifies: bool,
    /// The value that is used if the parameter is left out. An order with this value and an order without the
    /// parameter are the same order.
    pub default: Option<&'static str>,
}

/// How the parameters determine the identity of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The values of the fields that are marked with `identifies`.
    Fields,
    /// All parameters, except those that are listed as immaterial.
    Everything,
}

/// What the check of hosts needs to know about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// Whether the kind is described. An undescribed kind is accepted only if the operator allows it.
    pub is_described: bool,
    /// The hosts that a [vendor address](Shape::VendorAddress) may name, as patterns. The operator may list more.
    pub vendors: &'static [&'static str],
    /// Prefixes of vendor addresses on hosts that also serve others. An address with such a prefix is the vendor's.
    pub scripts: &'static [&'static str],
    /// The roles of parameters that an order of any kind may have.
    pub roles: &'static [(&'static str, Role)],
    /// The roles of parameters in kinds that know them, if the role does not follow from the shape.
    pub known: &'static [(&'static str, Role)],
    /// Names of control fields, which no parameter may have.
    pub control: &'static [&'static str],
}

impl HostRules {
    pub const NONE: Self =
        Self { is_described: true, vendors: &[], scripts: &[], roles: &[], known: &[], control: &[] };
}

/// The role of a parameter in the check of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Page,
    Vendor,
    File,
    Proxy,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    /// A value that identifies the answer: a token, an option, a number. It may have dots, but should not name a
    /// host.
    Key,
    /// A word that the site has chosen, for example an action. The rules are those of [`Key`](Role::Key), but one
    /// word with dots may look like a host, because no provider fetches it.
    Word,
    /// A long token that is sent on to the vendor, and that usually has dots and slashes.
    Token,
    /// A page of HTML, plain or in base64, from the page of the order. Its links may go anywhere, but it must not
    /// claim to be another page.
    Html,
    /// Text that no provider reads as a page: a hint for the solver, the name of a browser. It may mention hosts, but
    /// must not contain an address.
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
    /// Parameters that set the address from which the site is visited.
    pub address_fields: &'static [&'static str],
    /// Whether an answer works only from the address from which it was solved. Then the proxy always counts.
    pub bound_to_address: bool,
    /// How long an answer lives after its solve; `None` for ever.
    pub life: Option<Duration>,
    /// How much life a reused answer, cached or from stock, must have left when it is handed out.
    pub margin: Duration,
    /// Whether the site accepts an answer only once.
    pub single_use: bool,
    /// How long answers usually take, until there are measurements.
    pub pace: Pace,
    pub hosts: HostRules,
}

impl Kind {
    /// The role of a parameter of this name in an order of this kind.
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
