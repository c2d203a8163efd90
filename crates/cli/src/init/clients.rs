//! The lines to change in a client, read from `docs/clients.md`, so that the page and the command agree.

const PAGE: &str = include_str!("../../../../docs/clients.md");

/// One client of the page: its name in its registry, and its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientLines {
    pub(super) name: &'static str,
    text: &'static str,
}

impl ClientLines {
    /// All clients of the page, in its order.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let section = PAGE.split_once("\n## The lines for each client\n").map_or("", |(_, rest)| rest);
        let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
        section.split("\n**").skip(1).filter_map(|text| {
            // The last entry is about all other clients: it has no name in backticks before its bold text ends.
            let (_, name) = text.split_once("**")?.0.split_once('`')?;
            Some(Self { name: name.strip_suffix('`')?, text })
        })
    }

    /// The client of this name, in any case and with or without the scope of npm.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let is_it = |client: &Self| {
            let without_scope = client.name.rsplit('/').next().unwrap_or(client.name);
            name.eq_ignore_ascii_case(client.name) || name.eq_ignore_ascii_case(without_scope)
        };
        Self::all().find(is_it).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(|client| client.name).collect();
            format!(
                "its lines are not known; known are {}. For another client, see docs/clients.md",
                names.join(", ")
            )
        })
    }

    /// Whether the client speaks https and nothing else.
    pub(super) fn needs_https(self) -> bool {
        self.text.contains(":8743") && !self.text.contains(":8780")
    }

    /// The lines, for a terminal: without the marks of Markdown.
    pub(super) fn render(self) -> String {
        let mut lines = self.text.lines().filter(|line| !line.starts_with("```"));
        let heading = lines.next().unwrap_or_default().replace(['*', '`'], "");
        let code: Vec<String> =
            lines.map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect();
        format!("{heading}\n{}\n", code.join("\n").trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_of_the_page_has_lines_with_the_address_of_the_gateway() {
        let names: Vec<&str> = ClientLines::all().map(|client| client.name).collect();
        assert!(names.len() >= 6 && names.contains(&"2captcha-python"), "{names:?}");
        for name in names {
            let client = ClientLines::parse(name).unwrap();
            let lines = client.render();
            assert!(lines.contains(name) && (lines.contains(":8780") || lines.contains(":8743")), "{lines}");
            assert!(!lines.contains("```") && !lines.contains("**"), "{lines}");
        }
    }

    #[test]
    fn a_client_is_found_in_any_case_and_without_its_scope_and_an_unknown_one_is_an_error_with_the_names() {
        assert_eq!(ClientLines::parse("Captcha-Solver").unwrap().name, "@2captcha/captcha-solver");
        let error = ClientLines::parse("curl").unwrap_err();
        assert!(error.contains("python-anticaptcha") && error.contains("docs/clients.md"), "{error}");
    }
}
