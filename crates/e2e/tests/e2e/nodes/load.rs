//! Callers on all APIs of all nodes, each with one order at a time, until they are stopped. They record what they
//! ordered, what was accepted, and what they got. Every third order repeats the one before it.

use crate::nodes::caller::{self, CallerOutcome, KEY, NoReply, NodeCaller, NodeReply};
use crate::sandbox::{line, page};
use crate::wait::{LONG, now, pass};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The number of callers.
pub(crate) const CALLERS: u64 = 24;
/// How long a caller waits before it comes again.
const PAUSE: Duration = Duration::from_millis(50);

/// What happens to the nodes during the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodesMeanwhile {
    /// The nodes keep running: a node that listens answers.
    Stay,
    /// The nodes are restarted one after the other. One always listens, and finishes every response that it has
    /// begun.
    Members,
    /// The nodes are killed and frozen, so a caller may lose its connection.
    Die,
}

/// What the callers ordered and got, by the number of the request.
#[derive(Debug, Default)]
pub(crate) struct LoadRecord {
    /// The common part of the names of these orders.
    name: String,
    /// The ids of accepted requests.
    pub(crate) accepted: BTreeMap<u64, String>,
    pub(crate) answers: BTreeMap<u64, String>,
    pub(crate) ends: BTreeMap<u64, String>,
    /// How often a caller had to come again.
    pub(crate) again: u64,
    /// The longest time of a call that does not wait.
    pub(crate) slowest: Duration,
    /// The replies that no protocol has.
    pub(crate) wrong: Vec<String>,
}

impl LoadRecord {
    pub(crate) fn page_of(&self, n: u64) -> String {
        page(&mark(&self.name, n))
    }
}

/// The captcha of a request.
fn mark(name: &str, n: u64) -> String {
    format!("{name}-{}", if n % 3 == 2 { n - 1 } else { n })
}

#[derive(Debug)]
struct LoadShared {
    name: String,
    urls: Vec<String>,
    nodes: NodesMeanwhile,
    next: AtomicU64,
    is_over: AtomicBool,
    record: Mutex<LoadRecord>,
}

impl LoadShared {
    fn record(&self) -> MutexGuard<'_, LoadRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, n: u64) -> String {
        mark(&self.name, n)
    }
}

#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<LoadShared>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(name: &str, urls: Vec<String>, nodes: NodesMeanwhile) -> Self {
        let shared = Arc::new(LoadShared {
            name: name.to_owned(),
            urls,
            nodes,
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            record: Mutex::new(LoadRecord { name: name.to_owned(), ..LoadRecord::default() }),
        });
        let callers = (0..CALLERS).map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let is_lenient = shared.nodes != NodesMeanwhile::Stay;
                let caller = |url: &String| match is_lenient {
                    true => NodeCaller::of(url).lenient(),
                    false => NodeCaller::of(url),
                };
                let mut lines: Vec<NodeCaller> = shared.urls.iter().map(caller).collect();
                while !shared.is_over.load(Ordering::Relaxed) {
                    let n = shared.next.fetch_add(1, Ordering::Relaxed);
                    FollowUp { shared: &shared, lines: &mut lines, n, id: None, calls: 0 }.run();
                }
            })
        });
        let callers = callers.collect();
        Self { shared, callers }
    }

    pub(crate) fn answered(&self) -> usize {
        self.shared.record().answers.len()
    }

    /// Stops placing orders. Every caller gets the outcome of its order.
    pub(crate) fn finish(self) -> LoadRecord {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.join().expect("a caller does not panic");
        }
        std::mem::take(&mut self.shared.record())
    }
}

/// The calls of one caller until its answer.
struct FollowUp<'a> {
    shared: &'a LoadShared,
    lines: &'a mut [NodeCaller],
    n: u64,
    id: Option<String>,
    calls: usize,
}

impl FollowUp<'_> {
    fn run(mut self) {
        let end = now() + LONG * 2;
        while now() < end {
            let (what, outcome) = self.step();
            match outcome {
                CallerOutcome::Accepted(id) => {
                    let mut record = self.shared.record();
                    record.accepted.entry(self.n).or_insert_with(|| id.clone());
                    self.id = Some(id);
                }
                CallerOutcome::NotReady => {}
                CallerOutcome::Again => self.shared.record().again += 1,
                CallerOutcome::Answer(text) => {
                    let mut record = self.shared.record();
                    record.accepted.entry(self.n).or_default();
                    record.answers.insert(self.n, text);
                    return;
                }
                CallerOutcome::End(why) => {
                    self.shared.record().ends.insert(self.n, why);
                    return;
                }
                CallerOutcome::Wrong => {
                    self.shared.record().wrong.push(what);
                    return;
                }
            }
            pass(PAUSE);
        }
        // The judge misses a caller that was accepted and got no outcome.
    }

    /// Sends one request to the next node, through the API of this caller.
    fn step(&mut self) -> (String, CallerOutcome) {
        let place = (usize::try_from(self.n).unwrap_or(0) + self.calls) % self.lines.len();
        self.calls += 1;
        let begin = now();
        let reply = match self.n % 4 {
            0 | 1 => self.native(place),
            2 => self.classic(place),
            _ => self.json(place),
        };
        if self.n % 4 >= 2 {
            let mut record = self.shared.record();
            record.slowest = record.slowest.max(begin.elapsed());
        }
        let what = format!("{} at {}: {reply:?}", self.n, self.shared.urls[place]);
        let outcome = match (reply, self.shared.nodes) {
            (Ok(reply), _) => match self.n % 4 {
                0 | 1 => caller::native(&reply),
                2 => caller::classic(&reply, self.id.is_some()),
                _ => caller::json(&reply),
            },
            (Err(NoReply::Refused | NoReply::HungUp), NodesMeanwhile::Members)
            | (Err(_), NodesMeanwhile::Die) => CallerOutcome::Again,
            (Err(_), _) => CallerOutcome::Wrong,
        };
        (what, outcome)
    }

    fn native(&mut self, place: usize) -> Result<NodeReply, NoReply> {
        let wait = "Prefer: wait=3\r\n";
        if let Some(id) = &self.id {
            return self.lines[place].ask("GET", &format!("/v1/orders/{id}"), wait, "");
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let order = json!({ "kind": order["kind"], "params": order["params"] });
        self.lines[place].post("/v1/orders", wait, &order)
    }

    fn classic(&mut self, place: usize) -> Result<NodeReply, NoReply> {
        if let Some(id) = &self.id {
            return self.lines[place].get(&format!("/res.php?key={KEY}&action=get&id={id}"));
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let (site, page) = (&order["params"]["googlekey"], &order["params"]["pageurl"]);
        let (site, page) = (site.as_str().unwrap_or_default(), page.as_str().unwrap_or_default());
        let target = format!("/in.php?key={KEY}&method=userrecaptcha&googlekey={site}&pageurl={page}");
        self.lines[place].get(&target)
    }

    fn json(&mut self, place: usize) -> Result<NodeReply, NoReply> {
        if let Some(id) = &self.id {
            let id: u64 = id.parse().expect("ids of this API are numbers");
            return self.lines[place].post("/getTaskResult", "", &json!({ "clientKey": KEY, "taskId": id }));
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let (site, page) = (&order["params"]["googlekey"], &order["params"]["pageurl"]);
        let task = json!({ "type": "RecaptchaV2TaskProxyless", "websiteURL": page, "websiteKey": site });
        self.lines[place].post("/createTask", "", &json!({ "clientKey": KEY, "task": task }))
    }
}
