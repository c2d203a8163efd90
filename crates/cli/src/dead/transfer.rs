//! Export and import of dead letters. Both work line by line, so that a file can have a million of them.

use crate::exit::{CliError, Exit};
use crate::output::{self, harmless, not_written};
use http_body_util::BodyExt;
use hyper::Method;
use quittance_admin::dead::Imported;
use quittance_daemon::{ApiClient, ApiError};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// How many bytes are sent at once. A longer line is sent alone.
const PORTION_BYTES: usize = 1024 * 1024;
/// The longest line: more than any dead letter needs.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How many bytes of a line are needed to recognise it.
const HEAD_BYTES: usize = 128;

/// The exported lines.
#[derive(Default)]
struct Seen {
    head: Vec<u8>,
    letters: u64,
    unreadable: u64,
    is_broken_off: bool,
}

impl Seen {
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = HEAD_BYTES - self.head.len();
            self.head.extend(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let head = std::mem::take(&mut self.head);
        let head = String::from_utf8_lossy(&head);
        if head.starts_with("{\"error\":") {
            self.is_broken_off = true;
        } else {
            self.letters += 1;
            self.unreadable += u64::from(head.contains("\"cause\":\"unreadable\""));
        }
    }
}

/// Creates a file that only its owner can read: it contains the parameters of callers, including secrets.
fn create(path: &Path) -> Result<File, CliError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| {
        let path = path.display();
        let what = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{path} is there already, and is not overwritten: name another file with --out")
            }
            _ => format!("{path} cannot be written: {error}; name another file with --out"),
        };
        CliError::new(Exit::NotWritten, what)
    })
}

pub(super) async fn export(client: &ApiClient, query: &str, out: Option<PathBuf>) -> Result<Exit, CliError> {
    let path = format!("/v1/admin/dead/export?{query}");
    let mut stream = client.open(path.trim_end_matches('?')).await?;
    let mut file: Box<dyn Write> = match &out {
        Some(path) => Box::new(create(path)?),
        None => Box::new(io::stdout()),
    };
    let mut seen = Seen::default();
    while let Some(frame) = stream.frame().await {
        let broke = |error| CliError::new(Exit::Store, format!("the export ended early: {error}"));
        let Ok(bytes) = frame.map_err(broke)?.into_data() else { continue };
        seen.add(&bytes);
        match file.write_all(&bytes) {
            // A closed pipe is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::Done),
            written => written.map_err(|error| not_written(&error))?,
        }
    }
    file.flush().map_err(|error| not_written(&error))?;
    if seen.is_broken_off {
        return Err(CliError::new(Exit::Store, "the store became unavailable: the export is not complete"));
    }
    let mut words = format!("{} dead letters exported", seen.letters);
    if seen.unreadable > 0 {
        words += &format!("; {} of them cannot be read, and are there by name only", seen.unreadable);
    }
    output::tell(&format!("{words}\n"));
    Ok(Exit::Done)
}

/// Sends lines of an export, of which the first has this number, and adds the result to `sum`.
async fn send(client: &ApiClient, lines: Vec<u8>, first: usize, sum: &mut Imported) -> Result<(), CliError> {
    let sent =
        client.upload(Method::POST, "/v1/admin/dead/import", lines.into(), "application/x-ndjson").await;
    let result: Imported = match sent {
        // Only a line that is larger than a portion can be too large, and such a line is sent alone.
        Err(ApiError::Problem(problem)) if problem.code == "too_large" => {
            sum.refused_count += 1;
            let why = "the file is larger than the daemon accepts: raise `listener.body_bytes_max`, or stop the daemon \
                       and run the import again";
            output::tell(&format!("line {first}: {why}\n"));
            return Ok(());
        }
        result => result?,
    };
    sum.imported += result.imported;
    sum.there_already += result.there_already;
    sum.refused_count += result.refused_count;
    for line in result.refused {
        output::tell(&format!("line {}: {}\n", first + line.line - 1, harmless(&line.why)));
    }
    Ok(())
}

/// An export whose first bytes were read, so that an unreadable file is found before a store is created for it.
pub(super) struct ExportedFile {
    path: PathBuf,
    lines: Box<dyn BufRead>,
}

impl ExportedFile {
    /// Opens an export; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let not_read = |error| Self::not_read(path, &error);
        let mut lines: Box<dyn BufRead> = match path == Path::new("-") {
            true => Box::new(BufReader::new(io::stdin())),
            false => Box::new(BufReader::new(File::open(path).map_err(not_read)?)),
        };
        lines.fill_buf().map_err(not_read)?;
        Ok(Self { path: path.to_owned(), lines })
    }

    fn not_read(path: &Path, error: &io::Error) -> CliError {
        CliError::new(Exit::Usage, format!("{} cannot be read: {error}", path.display()))
    }
}

pub(super) async fn import(client: &ApiClient, file: ExportedFile, as_json: bool) -> Result<Exit, CliError> {
    let ExportedFile { path, mut lines } = file;
    let not_read = |error| ExportedFile::not_read(&path, &error);
    let mut sum = Imported::default();
    let (mut portion, mut first, mut next) = (Vec::new(), 1, 1);
    loop {
        let mut line = Vec::new();
        let read =
            io::Read::take(&mut lines, LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(not_read)?;
        let is_last = read == 0;
        if !portion.is_empty() && (is_last || portion.len() + line.len() > PORTION_BYTES) {
            send(client, std::mem::take(&mut portion), first, &mut sum).await?;
            first = next;
        }
        if is_last {
            break;
        }
        portion.append(&mut line);
        next += 1;
    }
    let Imported { imported, there_already, refused_count: refused, .. } = sum;
    let object = json!({ "imported": imported, "there_already": there_already, "refused": refused });
    output::show(as_json, &object, || {
        format!("{imported} dead letters imported, {there_already} were here already, {refused} refused\n")
    })?;
    Ok(if refused > 0 { Exit::Bad } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let lines = "{\"key\":\"a\",\"cause\":\"doubt\"}\n{\"key\":\"b\",\"cause\":\"unreadable\"}\n{\"error\":\"gone\"}\n";
        for size in [1, 7, 1000] {
            let mut seen = Seen::default();
            lines.as_bytes().chunks(size).for_each(|chunk| seen.add(chunk));
            assert_eq!((seen.letters, seen.unreadable, seen.is_broken_off), (2, 1, true), "{size}");
        }
    }
}
