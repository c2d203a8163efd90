//! A folder for each test, and the built binary in it, without any variable of the user who runs the tests.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{} {}", self.out, self.err);
        self
    }
}

pub(crate) struct House(TempDir);

impl House {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quittance"));
        command.args(args).env_clear().envs(variables.iter().copied()).current_dir(self.0.path());
        let output = command.output().expect("the binary was built for this test");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(args, &[])
    }
}
