//! A caller that keeps its connection, over HTTP/1.1. This file reads the replies of each API for all tests: which
//! are final, which mean "come again", and which no protocol has.

use crate::wait::LONG;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

#[derive(Debug)]
pub(crate) struct NodeReply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl NodeReply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("not JSON: {why}: {self:?}"))
    }
}

/// The reasons for a missing reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// No node listens. A balancer would have chosen another node.
    Refused,
    /// The connection ended before the first byte of a reply. A balancer would have tried another node.
    HungUp,
    /// The connection ended in the middle of a reply, or no reply came in time.
    #[expect(dead_code, reason = "it is shown when a test fails")]
    Broken(io::Error),
}

#[derive(Debug)]
pub(crate) struct NodeCaller {
    authority: String,
    line: Option<BufReader<TcpStream>>,
    /// Whether an idle connection may be closed.
    is_lenient: bool,
}

impl NodeCaller {
    pub(crate) fn of(url: &str) -> Self {
        let authority = url.strip_prefix("http://").expect("all here is plain http").to_owned();
        Self { authority, line: None, is_lenient: false }
    }

    /// Accepts that an idle connection was closed, as every client does, and calls again.
    pub(crate) fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    pub(crate) fn get(&mut self, target: &str) -> Result<NodeReply, NoReply> {
        self.ask("GET", target, "", "")
    }

    pub(crate) fn post(&mut self, target: &str, headers: &str, body: &Value) -> Result<NodeReply, NoReply> {
        let headers = format!("Content-Type: application/json\r\n{headers}");
        self.ask("POST", target, &headers, &body.to_string())
    }

    pub(crate) fn ask(
        &mut self,
        verb: &str,
        target: &str,
        headers: &str,
        body: &str,
    ) -> Result<NodeReply, NoReply> {
        let request = format!(
            "{verb} {target} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.authority,
            body.len()
        );
        if let Some(line) = self.line.take() {
            match self.over(line, &request) {
                Err(NoReply::HungUp) if self.is_lenient => {}
                outcome => return outcome,
            }
        }
        let stream = TcpStream::connect(&self.authority).map_err(|_| NoReply::Refused)?;
        stream.set_read_timeout(Some(LONG)).map_err(NoReply::Broken)?;
        self.over(BufReader::new(stream), &request)
    }

    fn over(&mut self, mut line: BufReader<TcpStream>, request: &str) -> Result<NodeReply, NoReply> {
        let sent = line.get_mut().write_all(request.as_bytes());
        let is_late =
            |why: &io::Error| matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        match sent.and_then(|()| line.fill_buf().map(<[u8]>::is_empty)) {
            Ok(false) => {}
            Err(why) if is_late(&why) => return Err(NoReply::Broken(why)),
            Ok(true) | Err(_) => return Err(NoReply::HungUp),
        }
        let (reply, stays) = read(&mut line).map_err(NoReply::Broken)?;
        self.line = stays.then_some(line);
        Ok(reply)
    }
}

/// Reads a reply. Returns whether the connection may be used again.
fn read(line: &mut BufReader<TcpStream>) -> io::Result<(NodeReply, bool)> {
    let mut next = || {
        let mut head = String::new();
        match line.read_line(&mut head)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(head.trim_end().to_owned()),
        }
    };
    let status = next()?.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (mut length, mut stays, mut content_type) = (0, true, String::new());
    loop {
        let header = next()?;
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "connection" => stays = value != "close",
            "content-type" => value.clone_into(&mut content_type),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    line.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(io::Error::other)?;
    Ok((NodeReply { status: status.unwrap_or(0), content_type, body }, stays))
}

/// The meaning of a reply for a caller.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallerOutcome {
    /// The order is on record, under this id.
    Accepted(String),
    NotReady,
    Answer(String),
    /// The order ended without an answer, for this reason.
    End(String),
    /// The caller should come again.
    Again,
    /// No protocol has this reply.
    Wrong,
}

/// Reads a reply of `in.php` and `res.php`: always 200, and one line.
pub(crate) fn classic(reply: &NodeReply, is_placed: bool) -> CallerOutcome {
    if reply.status != 200 {
        return CallerOutcome::Wrong;
    }
    match (reply.body.as_str(), reply.body.strip_prefix("OK|")) {
        ("CAPCHA_NOT_READY", _) if is_placed => CallerOutcome::NotReady,
        ("ERROR_NO_SLOT_AVAILABLE", _) => CallerOutcome::Again,
        (_, Some(text)) if is_placed => CallerOutcome::Answer(text.to_owned()),
        (_, Some(id)) => CallerOutcome::Accepted(id.to_owned()),
        (code, None) if code.starts_with("ERROR_") && !code.contains('<') => {
            CallerOutcome::End(code.to_owned())
        }
        _ => CallerOutcome::Wrong,
    }
}

/// Reads a reply of `createTask` and `getTaskResult`: 200, with the result in `errorId`.
pub(crate) fn json(reply: &NodeReply) -> CallerOutcome {
    let Ok(output) = serde_json::from_str::<Value>(&reply.body) else { return CallerOutcome::Wrong };
    if reply.status != 200 {
        return CallerOutcome::Wrong;
    }
    match (output["errorId"].as_u64(), output["errorCode"].as_str(), output["status"].as_str()) {
        (Some(0), _, Some("ready")) => CallerOutcome::Answer(
            output["solution"]["gRecaptchaResponse"].as_str().unwrap_or_default().to_owned(),
        ),
        (Some(0), _, Some("processing")) => CallerOutcome::NotReady,
        (Some(0), _, None) if output["taskId"].is_number() => {
            CallerOutcome::Accepted(output["taskId"].to_string())
        }
        (Some(1..), Some("ERROR_NO_SLOT_AVAILABLE"), _) => CallerOutcome::Again,
        (Some(1..), Some(code), _) => CallerOutcome::End(code.to_owned()),
        _ => CallerOutcome::Wrong,
    }
}

/// Reads a reply of `/v1`: an order, or a problem with its content type.
pub(crate) fn native(reply: &NodeReply) -> CallerOutcome {
    let Ok(output) = serde_json::from_str::<Value>(&reply.body) else { return CallerOutcome::Wrong };
    if !matches!(reply.status, 200 | 202) {
        let is_problem = reply.content_type.starts_with("application/problem+json");
        return match (is_problem, reply.status, output["code"].as_str()) {
            (true, 503 | 429, Some(_)) => CallerOutcome::Again,
            (true, 400..500, Some(code)) => CallerOutcome::End(code.to_owned()),
            _ => CallerOutcome::Wrong,
        };
    }
    match output["status"].as_str() {
        Some("pending") => {
            output["id"].as_str().map_or(CallerOutcome::Wrong, |id| CallerOutcome::Accepted(id.to_owned()))
        }
        Some("solved") => {
            CallerOutcome::Answer(output["answer"]["text"].as_str().unwrap_or_default().to_owned())
        }
        Some(other) => CallerOutcome::End(other.to_owned()),
        None => CallerOutcome::Wrong,
    }
}
