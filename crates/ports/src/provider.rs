//! A service that takes attempts. A call returns an outcome and never a `Result`: the adapter knows what was really
//! sent on the wire, so it must say whether silence means *never arrived* or *in doubt*.

use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Fault, Key, Money, PollOutcome, ReportOutcome, SubmitOutcome, Terms, Value,
};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One field of the task that is about to leave, as the wire will have it.
#[derive(Clone, Copy, Debug)]
pub struct TaskField<'a> {
    /// A point leads into an object.
    pub name: &'a str,
    /// The parameter of the order's kind that it is; none, if nothing is known about it.
    pub param: Option<&'a str>,
    pub value: &'a [u8],
}

/// Parameters of an order by their names.
pub type Params = BTreeMap<String, Value>;

/// The last look at a task before it leaves: an error says why it must not.
pub type Guard<'a> = dyn Fn(&[TaskField<'_>]) -> Result<(), String> + Send + Sync + 'a;

/// One attempt, ready to be sent.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    pub key: Key,
    pub attempt: u32,
    pub terms: &'a Terms,
    /// Where the provider is to call when it has an answer; it holds a secret and does not belong in a log.
    pub callback: Option<&'a str>,
    /// The adapter shows it every field of a task before it sends the task, and sends nothing that it refuses. Our
    /// own key and callback address are not part of it.
    pub guard: &'a Guard<'a>,
}

impl fmt::Debug for Submission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, attempt, terms, callback, guard: _ } = self;
        write!(f, "Submission({key:?} attempt {attempt}, {terms:?}, called back: {})", callback.is_some())
    }
}

/// What came to one of our callback addresses, as it came. Any sender may have sent it: what proves it genuine is the
/// address, which the engine checks.
#[derive(Clone, Copy)]
pub struct Callback<'a> {
    pub query: &'a str,
    pub content_type: Option<&'a str>,
    pub body: &'a [u8],
}

impl fmt::Debug for Callback<'_> {
    /// Hides the content: it holds an answer, which is as good as money.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callback({} bytes of query, {} of body)", self.query.len(), self.body.len())
    }
}

/// What a callback says, of which task, in our words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackMessage {
    pub task: Option<String>,
    pub word: CallbackResult,
}

/// What the provider says about our account with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Unknown where threads are sold and the balance is not given.
    pub balance: Option<Money>,
    pub threads: Option<Threads>,
}

/// Of a provider that sells threads: how many there are, and how many are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub total: u64,
    pub working: u64,
}

/// What a provider demands of all of its callers after some faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// For this time no submit goes to the provider.
    pub pause: Duration,
    /// Whether no poll goes to it, either.
    pub holds_polls: bool,
}

/// Why the account could not be looked at, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("the provider cannot be reached ({why}): check provider.url, the network and the firewall")]
    Unreachable { why: String },
    #[error("the provider gave no answer ({why}): try again, and look at its status page")]
    NoAnswer { why: String },
    #[error("the provider answered HTTP {status}: check that provider.url is the address of its API")]
    Status { status: u16 },
    #[error("the provider {what}: check that provider.url is the address of its API")]
    NotTheProtocol { what: String },
    #[error("the provider refused: {fault}: {advice}")]
    Refused { fault: Fault, advice: String },
}

#[async_trait]
pub trait Provider: Send + Sync {
    /// Dropping the future in the middle means the same as [`SubmitOutcome::InDoubt`].
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome;

    /// Whether a submit with these parameters would get as far as the wire: shows the guard the very task that would
    /// be sent, and sends nothing. An error says why not.
    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String>;

    /// Polls several tasks in one call. A task that is missing from the reply, or is in it twice or unrequested, does
    /// no harm: the engine relies on none of it.
    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)>;

    /// How many tasks one [`poll`](Self::poll) may ask for.
    fn poll_batch_max(&self) -> usize;

    /// The least time between two submits that the provider allows; the engine lets no submit through sooner.
    fn submit_interval(&self) -> Duration;

    /// How long the provider wants no submits after a fault; nothing, where it wants no pause. The gate obeys it.
    fn penalty(&self, fault: &Fault) -> Option<Penalty>;

    /// What a callback in this provider's dialect says; nothing, if it makes no sense.
    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage>;

    /// Reports whether the answer of a task was good. A report may be repeated: a provider counts it once.
    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome;

    /// Our account, as the provider tells it now; nothing, if it does not.
    async fn account(&self) -> Option<Account>;
}
