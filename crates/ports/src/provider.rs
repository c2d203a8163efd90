//! A service that takes attempts. A call returns an outcome and never a `Result`. Only the adapter knows what was
//! sent on the wire, so it must distinguish *never arrived* from *in doubt*.

use async_trait::async_trait;
use quittance_lifecycle::{
    CallbackResult, Fault, Key, Money, PollOutcome, PollRules, ReportOutcome, SubmitOutcome, Terms, Value,
};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One field of a task that is about to be sent, as on the wire.
#[derive(Clone, Copy, Debug)]
pub struct TaskField<'a> {
    /// The name of the field. A dot leads into an object.
    pub name: &'a str,
    /// The order's parameter that this field contains; `None` if nothing is known about the field.
    pub param: Option<&'a str>,
    pub value: &'a [u8],
}

/// Parameters of an order by their names.
pub type Params = BTreeMap<String, Value>;

/// The last check of a task before it is sent. An error says why it must not be sent.
pub type Guard<'a> = dyn Fn(&[TaskField<'_>]) -> Result<(), String> + Send + Sync + 'a;

/// One attempt, ready to be sent.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    pub key: Key,
    pub attempt: u32,
    pub terms: &'a Terms,
    /// The address that the provider calls when it has an answer. It holds a secret and must not be logged.
    pub callback: Option<&'a str>,
    /// The adapter shows this guard every field of a task before it sends the task, and sends nothing that the guard
    /// refuses. Our own key and callback address are not shown.
    pub guard: &'a Guard<'a>,
}

impl fmt::Debug for Submission<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, attempt, terms, callback, guard: _ } = self;
        write!(f, "Submission({key:?} attempt {attempt}, {terms:?}, called back: {})", callback.is_some())
    }
}

/// A request to one of our callback addresses, as it came. Any sender may have sent it. The engine checks the
/// address, which proves whether it is genuine.
#[derive(Clone, Copy)]
pub struct Callback<'a> {
    pub query: &'a str,
    pub content_type: Option<&'a str>,
    pub body: &'a [u8],
}

impl fmt::Debug for Callback<'_> {
    /// Hides the content: it holds an answer, which is worth money.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callback({} bytes of query, {} of body)", self.query.len(), self.body.len())
    }
}

/// The content of a callback, and the task that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackMessage {
    pub task: Option<String>,
    pub word: CallbackResult,
}

/// What the provider reports about our account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The balance; `None` if the provider does not report it, for example because it sells threads.
    pub balance: Option<Money>,
    pub threads: Option<Threads>,
}

/// The threads of an account, if the provider sells threads: how many there are, and how many are busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub total: u64,
    pub working: u64,
}

/// What a provider demands from all its callers after some faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// How long no submit goes to the provider.
    pub pause: Duration,
    /// Whether polls are held back as well.
    pub holds_polls: bool,
}

/// Why the account could not be read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("the provider cannot be reached ({why}): check provider.url, the network and the firewall")]
    Unreachable { why: String },
    #[error("the provider gave no answer ({why}): try again, and look at its status page")]
    NoAnswer { why: String },
    #[error(
        "the provider answered HTTP {status}: check that provider.url is the address of its API, and provider.dialect its dialect"
    )]
    Status { status: u16 },
    #[error(
        "the provider {what}: check that provider.url is the address of its API, and provider.dialect its dialect"
    )]
    NotTheProtocol { what: String },
    #[error("the provider rejects the request: {fault}: {advice}")]
    Rejected { fault: Fault, advice: String },
}

#[async_trait]
pub trait Provider: Send + Sync {
    /// Submits one attempt. If the future is dropped before it ends, the outcome is [`SubmitOutcome::InDoubt`].
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome;

    /// Whether a submit with these parameters would be sent. It shows the guard exactly the task that would be sent,
    /// and sends nothing. An error says why not.
    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String>;

    /// Polls several tasks in one call. The reply may miss a task, or contain it twice or unrequested: the engine
    /// relies on none of this.
    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)>;

    /// The most tasks in one [`poll`](Self::poll).
    fn poll_batch_max(&self) -> usize;

    /// The service's rules for polls of this kind. `None`: it has none, and the engine uses its own.
    fn poll_rules(&self, _kind: &str) -> Option<PollRules> {
        None
    }

    /// The least time between two submits that the provider allows. The engine sends no submit sooner.
    fn submit_interval(&self) -> Duration;

    /// How long the provider wants no submits after a fault; `None` if it wants no pause. The gate obeys.
    fn penalty(&self, fault: &Fault) -> Option<Penalty>;

    /// The content of a callback in this provider's dialect; `None` if it cannot be read.
    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage>;

    /// Reports whether the answer of a task was good. A report may be repeated: a provider counts it once.
    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome;

    /// Our account, as the provider reports it now; `None` if the provider does not report it.
    async fn account(&self) -> Option<Account>;
}
