//! Reads the arguments of the program: switches, and names followed by a whole number.

use std::process::ExitCode;

/// Reads all arguments. Otherwise returns an error or the usage text, with the exit code.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what the binary is for")]
pub(crate) fn read(
    mut args: impl Iterator<Item = String>,
    help: &str,
    switches: &mut [(&str, &mut bool)],
    numbers: &mut [(&str, &mut u64)],
) -> Result<(), ExitCode> {
    while let Some(arg) = args.next() {
        if let Some((_, switch)) = switches.iter_mut().find(|(name, _)| *name == arg) {
            **switch = true;
        } else if let Some((_, number)) = numbers.iter_mut().find(|(name, _)| *name == arg) {
            let Some(typed) = args.next().and_then(|text| text.parse().ok()) else {
                eprintln!("{arg} needs a whole number, like {arg} 1000");
                return Err(ExitCode::from(2));
            };
            **number = typed;
        } else if arg == "-h" || arg == "--help" {
            print!("{help}");
            return Err(ExitCode::SUCCESS);
        } else {
            eprint!("{arg:?} is not an option\n\n{help}");
            return Err(ExitCode::from(2));
        }
    }
    Ok(())
}
