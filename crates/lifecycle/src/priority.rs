//! How urgent an order is among the orders of its tenant.

/// How urgent an order is. The most urgent comes first. It orders the queue to the provider and changes nothing else:
/// it is not part of the order's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A person waits for the answer.
    Interactive,
    #[default]
    Normal,
    /// The answer can wait until nothing else does. Refills of pools have this priority.
    Bulk,
}

impl Priority {
    /// All priorities, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::Normal, Self::Bulk];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Normal => "normal",
            Self::Bulk => "bulk",
        }
    }

    /// The priority of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.name() == name)
    }
}
