//! The gateway as a process, `quittance serve`, on both of its ports: http, and https with its own certificate for
//! development.

use crate::binary::{ChildProcess, drain};
use crate::sandbox::Sandbox;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdout, Stdio};
use std::thread::JoinHandle;

pub(crate) struct Serve {
    child: ChildProcess,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
    pub(crate) http: String,
    /// The https address, with a number as the host.
    pub(crate) https: String,
    /// The file of the authority that certifies the gateway.
    pub(crate) ca: PathBuf,
    /// The sandbox, kept as long as the gateway.
    pub(crate) sandbox: Sandbox,
}

impl Serve {
    /// Starts a gateway that listens as the sandbox sets it, and for https on any port.
    pub(crate) fn start(sandbox: Sandbox) -> Self {
        let tls = sandbox.path("tls").display().to_string();
        let mut command =
            sandbox.command(&["serve", "--tls-listen", "127.0.0.1:0", "--tls-self-signed", &tls]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        let err = drain(child.0.stderr.take().expect("it is piped"));
        let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
        let Some(output) = until_ready(&mut out) else {
            child.kill();
            panic!("the gateway never got ready: {}", err.join().unwrap_or_default());
        };
        let find = |prefix: &str| {
            let entry = output.lines().find_map(|line| line.strip_prefix(prefix));
            entry.unwrap_or_else(|| panic!("`{prefix}` is missing: {output}")).to_owned()
        };
        let (http, https) = (find("listening on http:"), find("listening on https:"));
        Self {
            http: format!("http:{http}"),
            https: format!("https:{https}"),
            ca: PathBuf::from(find("CA file: ")),
            child,
            out: Some(drain(out)),
            err: Some(err),
            sandbox,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// The https address, with a name as the host.
    pub(crate) fn named(&self) -> String {
        self.https.replace("127.0.0.1", "localhost")
    }

    /// Kills the gateway. What is left can be served again at its old address.
    pub(crate) fn killed(self) -> Sandbox {
        let Self { mut child, sandbox, .. } = self;
        child.kill();
        sandbox
    }

    /// Ends the gateway. Returns its log.
    pub(crate) fn log(mut self) -> String {
        self.child.kill();
        let err = self.err.take().expect("the log is read once");
        err.join().expect("reading does not panic")
    }

    /// Ends the gateway, and checks that it had no fault.
    pub(crate) fn end_in_peace(mut self) {
        assert!(self.child.0.try_wait().expect("a child of ours can be queried").is_none(), "it has ended");
        self.child.kill();
        for stream in [self.out.take(), self.err.take()].into_iter().flatten() {
            let output = stream.join().expect("reading does not panic");
            assert!(!output.contains("panicked"), "{output}");
        }
    }
}

/// All lines up to `ready`; `None` if the gateway ended before.
pub(crate) fn until_ready(out: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut output = String::new();
    while !output.ends_with("ready\n") {
        out.read_line(&mut output).ok().filter(|bytes| *bytes > 0)?;
    }
    Some(output)
}
