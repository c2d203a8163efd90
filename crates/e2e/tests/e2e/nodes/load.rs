//! Callers at all doors of all nodes, each with one order at a time, until they are told to stop: what they asked for,
//! what was accepted, and what they were told. Every third asks for the same as the one before.

use crate::nodes::caller::{self, Caller, Heard, KEY, NoReply, Reply};
use crate::room::{line, page};
use crate::wait::{LONG, now, pass};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Callers at once.
pub(crate) const CALLERS: u64 = 24;
/// How long a caller waits before he comes again.
const PAUSE: Duration = Duration::from_millis(50);

/// How the nodes fare meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// They stay: whoever listens answers.
    Stay,
    /// They end and come back in order: somebody always listens, and whoever has begun to answer does.
    Members,
    /// They are killed and frozen: a caller may lose his connection.
    Die,
}

/// What callers asked for and were told, by the number of the request.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What all these orders are named after.
    name: String,
    /// The id under which it was accepted.
    pub(crate) accepted: BTreeMap<u64, String>,
    pub(crate) answers: BTreeMap<u64, String>,
    pub(crate) ends: BTreeMap<u64, String>,
    /// How often somebody was asked to come again.
    pub(crate) again: u64,
    /// The longest that a call took which waits for nothing.
    pub(crate) slowest: Duration,
    /// What no protocol knows.
    pub(crate) wrong: Vec<String>,
}

impl Told {
    pub(crate) fn page_of(&self, n: u64) -> String {
        page(&mark(&self.name, n))
    }
}

/// Which captcha a request is for.
fn mark(name: &str, n: u64) -> String {
    format!("{name}-{}", if n % 3 == 2 { n - 1 } else { n })
}

#[derive(Debug)]
struct Shared {
    name: String,
    urls: Vec<String>,
    nodes: Nodes,
    next: AtomicU64,
    is_over: AtomicBool,
    told: Mutex<Told>,
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, n: u64) -> String {
        mark(&self.name, n)
    }
}

#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    callers: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(name: &str, urls: Vec<String>, nodes: Nodes) -> Self {
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            urls,
            nodes,
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            told: Mutex::new(Told { name: name.to_owned(), ..Told::default() }),
        });
        let callers = (0..CALLERS).map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let is_lenient = shared.nodes != Nodes::Stay;
                let caller = |url: &String| match is_lenient {
                    true => Caller::of(url).lenient(),
                    false => Caller::of(url),
                };
                let mut lines: Vec<Caller> = shared.urls.iter().map(caller).collect();
                while !shared.is_over.load(Ordering::Relaxed) {
                    let n = shared.next.fetch_add(1, Ordering::Relaxed);
                    FollowUp { shared: &shared, lines: &mut lines, n, id: None, asked: 0 }.run();
                }
            })
        });
        let callers = callers.collect();
        Self { shared, callers }
    }

    pub(crate) fn answered(&self) -> usize {
        self.shared.told().answers.len()
    }

    /// Nobody places anything new; everybody gets the last word on what he has placed.
    pub(crate) fn finish(self) -> Told {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.join().expect("a caller does not panic");
        }
        std::mem::take(&mut self.shared.told())
    }
}

/// One caller's way to one answer.
struct FollowUp<'a> {
    shared: &'a Shared,
    lines: &'a mut [Caller],
    n: u64,
    id: Option<String>,
    asked: usize,
}

impl FollowUp<'_> {
    fn run(mut self) {
        let end = now() + LONG * 2;
        while now() < end {
            let (what, heard) = self.step();
            match heard {
                Heard::Accepted(id) => {
                    let mut told = self.shared.told();
                    told.accepted.entry(self.n).or_insert_with(|| id.clone());
                    self.id = Some(id);
                }
                Heard::NotReady => {}
                Heard::Again => self.shared.told().again += 1,
                Heard::Answer(text) => {
                    let mut told = self.shared.told();
                    told.accepted.entry(self.n).or_default();
                    told.answers.insert(self.n, text);
                    return;
                }
                Heard::End(why) => {
                    self.shared.told().ends.insert(self.n, why);
                    return;
                }
                Heard::Wrong => {
                    self.shared.told().wrong.push(what);
                    return;
                }
            }
            pass(PAUSE);
        }
        // Whoever was accepted and not told is missed by the judge.
    }

    /// One call, at the next node, through the door of this request.
    fn step(&mut self) -> (String, Heard) {
        let place = (usize::try_from(self.n).unwrap_or(0) + self.asked) % self.lines.len();
        self.asked += 1;
        let begin = now();
        let reply = match self.n % 4 {
            0 | 1 => self.native(place),
            2 => self.classic(place),
            _ => self.json(place),
        };
        if self.n % 4 >= 2 {
            let mut told = self.shared.told();
            told.slowest = told.slowest.max(begin.elapsed());
        }
        let what = format!("{} at {}: {reply:?}", self.n, self.shared.urls[place]);
        let heard = match (reply, self.shared.nodes) {
            (Ok(reply), _) => match self.n % 4 {
                0 | 1 => caller::native(&reply),
                2 => caller::classic(&reply, self.id.is_some()),
                _ => caller::json(&reply),
            },
            (Err(NoReply::Refused | NoReply::HungUp), Nodes::Members) | (Err(_), Nodes::Die) => Heard::Again,
            (Err(_), _) => Heard::Wrong,
        };
        (what, heard)
    }

    fn native(&mut self, place: usize) -> Result<Reply, NoReply> {
        let wait = "Prefer: wait=3\r\n";
        if let Some(id) = &self.id {
            return self.lines[place].ask("GET", &format!("/v1/orders/{id}"), wait, "");
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let order = json!({ "kind": order["kind"], "params": order["params"] });
        self.lines[place].post("/v1/orders", wait, &order)
    }

    fn classic(&mut self, place: usize) -> Result<Reply, NoReply> {
        if let Some(id) = &self.id {
            return self.lines[place].get(&format!("/res.php?key={KEY}&action=get&id={id}"));
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let (site, page) = (&order["params"]["googlekey"], &order["params"]["pageurl"]);
        let (site, page) = (site.as_str().unwrap_or_default(), page.as_str().unwrap_or_default());
        let target = format!("/in.php?key={KEY}&method=userrecaptcha&googlekey={site}&pageurl={page}");
        self.lines[place].get(&target)
    }

    fn json(&mut self, place: usize) -> Result<Reply, NoReply> {
        if let Some(id) = &self.id {
            let id: u64 = id.parse().expect("ids of this door are numbers");
            return self.lines[place].post("/getTaskResult", "", &json!({ "clientKey": KEY, "taskId": id }));
        }
        let order = line(self.n, &self.shared.mark(self.n));
        let (site, page) = (&order["params"]["googlekey"], &order["params"]["pageurl"]);
        let task = json!({ "type": "RecaptchaV2TaskProxyless", "websiteURL": page, "websiteKey": site });
        self.lines[place].post("/createTask", "", &json!({ "clientKey": KEY, "task": task }))
    }
}
