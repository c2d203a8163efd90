//! Known holes, put back as test doubles of the check and of the provider, to prove that the fuzz test finds them.

use async_trait::async_trait;
use quittance::Settings;
use quittance::lifecycle::terms::page_host;
use quittance::lifecycle::{Fault, PollOutcome, ReportOutcome, Role, SubmitOutcome, Terms, Value};
use quittance::targets::NotAllowed;
use quittance_engine::inspect::{Inspection, Step, inspect};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, Params, Penalty, Provider, Submission, TaskField,
};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    None,
    /// Only the page is checked, and a parameter with the wire's name for the page replaces it.
    WireName,
    /// A text that does not parse as an address is not checked: a blank or a backslash after the host is enough.
    Strict,
    /// Only values that are text are checked, not values inside them.
    Nested,
    /// A dead letter is replayed as it was written.
    Replay,
    /// Names are not checked: `key[0]` turns our own key into a list.
    Names,
    /// JSON in a known field is read as the expected value.
    Objects,
    /// The host of a page ends where it ends for most readers.
    AtSign,
    /// Files are not searched.
    Files,
    /// Packed data is not unpacked.
    Packed,
    /// Pages of HTML are not checked.
    Html,
}

impl Hole {
    pub(crate) const ALL: [Self; 10] = [
        Self::WireName,
        Self::Strict,
        Self::Nested,
        Self::Replay,
        Self::Names,
        Self::Objects,
        Self::AtSign,
        Self::Files,
        Self::Packed,
        Self::Html,
    ];

    pub(crate) fn plant(self, settings: &mut Settings) {
        settings.rules.plant_inspect(match self {
            Self::None => return,
            Self::WireName => only_the_page,
            Self::Strict => only_what_parses,
            Self::Nested => only_plain_text,
            Self::Replay => only_when_placed,
            Self::Names => only_plain_names,
            Self::Objects => no_object_in_a_known_field,
            Self::AtSign => only_before_the_at_sign,
            Self::Files => no_file,
            Self::Packed => nothing_packed,
            Self::Html => no_html,
        });
        // No check asked what a parameter means.
        settings.meaning = Some(Arc::new(|_, _| Ok(None)));
    }
}

fn with<'a>(inspection: &Inspection<'a>, keep: impl Fn(&TaskField<'_>) -> bool) -> Result<(), NotAllowed> {
    let fields: Vec<TaskField<'_>> = inspection.fields.iter().filter(|field| keep(field)).copied().collect();
    inspect(&Inspection { fields: &fields, ..*inspection })
}

fn is_described(inspection: &Inspection<'_>) -> bool {
    inspection.kind.hosts.is_described
}

fn only_the_page(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let is_described = is_described(inspection);
    with(inspection, |field| !is_described || (inspection.step != Step::Send && field.name == "pageurl"))
}

fn only_what_parses(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let is_described = is_described(inspection);
    let parses =
        |field: &TaskField<'_>| std::str::from_utf8(field.value).is_ok_and(|text| page_host(text).is_ok());
    with(inspection, |field| is_described || parses(field))
}

fn only_plain_text(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    with(inspection, |field| {
        !field.value.trim_ascii_start().starts_with(b"{") && !field.value.trim_ascii_start().starts_with(b"[")
    })
}

fn only_plain_names(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    with(inspection, |field| field.param.is_none() || field.name.chars().all(is_plain))
}

fn no_object_in_a_known_field(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let is_known = |field: &TaskField<'_>| {
        field.param.is_some_and(|param| matches!(inspection.kind.role(param), Role::Key | Role::Plain))
    };
    let is_object = |field: &TaskField<'_>| field.value.trim_ascii_start().starts_with(b"{");
    with(inspection, |field| !(is_known(field) && is_object(field)))
}

fn only_before_the_at_sign(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    let has_sign = |field: &TaskField<'_>| {
        let text = String::from_utf8_lossy(field.value);
        text.starts_with("https://shop.example.org#") || text.starts_with("https://shop.example.org?")
    };
    with(inspection, |field| !has_sign(field))
}

fn of_role(inspection: &Inspection<'_>, field: &TaskField<'_>, role: Role) -> bool {
    field.param.is_some_and(|param| inspection.kind.role(param) == role)
}

fn no_file(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    with(inspection, |field| !of_role(inspection, field, Role::File))
}

fn no_html(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    with(inspection, |field| !of_role(inspection, field, Role::Html))
}

/// The first characters of gzip and zlib in base64.
fn nothing_packed(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    with(inspection, |field| !field.value.starts_with(b"H4sI") && !field.value.starts_with(b"eJ"))
}

fn only_when_placed(inspection: &Inspection<'_>) -> Result<(), NotAllowed> {
    match inspection.step {
        Step::Place => inspect(inspection),
        Step::Replay | Step::Send => Ok(()),
    }
}

/// A provider with the old naming: a parameter with the wire's name for the page replaces the page.
pub(crate) struct OverwritingProvider {
    pub(crate) inner: Arc<dyn Provider>,
    pub(crate) is_on: bool,
}

#[async_trait]
impl Provider for OverwritingProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let mut terms: Terms = submission.terms.clone();
        if self.is_on
            && let Some(page @ Value::Text(_)) = terms.params.remove("websiteURL")
        {
            terms.params.insert("pageurl".to_owned(), page);
        }
        self.inner.submit(Submission { terms: &terms, ..submission }).await
    }

    fn preview(&self, kind: &str, params: &Params, guard: &Guard<'_>) -> Result<(), String> {
        if self.is_on { Ok(()) } else { self.inner.preview(kind, params, guard) }
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        self.inner.poll(tasks).await
    }

    fn poll_batch_max(&self) -> usize {
        self.inner.poll_batch_max()
    }

    fn submit_interval(&self) -> Duration {
        self.inner.submit_interval()
    }

    fn penalty(&self, fault: &Fault) -> Option<Penalty> {
        self.inner.penalty(fault)
    }

    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        self.inner.read_callback(callback)
    }

    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome {
        self.inner.report(task, is_good).await
    }

    async fn account(&self) -> Option<Account> {
        self.inner.account().await
    }
}
