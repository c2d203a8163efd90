//! The table of methods. A kind that is not in it uses its own name as the method and its own parameter names, so
//! this is a list of exceptions. If a client's request fits several rows, the first one counts.

use crate::classic::dialect::ClassicDialect;
use crate::classic::form::{Form, Part};

/// A field and its value, or `None` for any value.
type MethodMark = (&'static str, Option<&'static str>);
/// Our name of a field, and its name on the wire.
type FieldNames = &'static [(&'static str, &'static str)];

/// Answers that are useless without the browser data in the reply: always, or only if this parameter is set.
pub(super) const COMPANIONS: &[(ClassicDialect, &str, Option<&str>)] = &[
    (ClassicDialect::CaptchaAi, "cloudflare_challenge", None),
    (ClassicDialect::CaptchaAi, "captchafox", None),
    (ClassicDialect::CaptchaAi, "recaptcha_v2", Some("enterprise")),
    (ClassicDialect::CaptchaAi, "recaptcha_v3", Some("enterprise")),
    (ClassicDialect::TwoCaptcha, "turnstile", Some("pagedata")),
];

pub(super) struct MethodSpelling {
    /// The kind, or an empty text for methods that are not in the table.
    pub(super) kind: &'static str,
    /// The methods that clients send; the first is the one that we send. An empty list means that we send none.
    methods: &'static [&'static str],
    /// If this list is not empty, a request is of this kind only if it has one of these fields.
    marked_by: &'static [MethodMark],
    /// Fields that repeat what the kind is.
    marks: &'static [(&'static str, &'static str)],
    /// Files that are sent as base64.
    files: &'static [&'static str],
    /// Files that can only be uploaded.
    uploads: &'static [&'static str],
    /// Other names that clients use.
    aliases: FieldNames,
    at_captcha_ai: Option<MethodWire>,
}

/// How one provider writes a kind.
#[derive(Clone, Copy)]
pub(super) struct MethodWire {
    pub(super) method: &'static str,
    pub(super) marks: &'static [(&'static str, &'static str)],
    pub(super) names: FieldNames,
}

impl MethodSpelling {
    pub(super) fn at(&self, dialect: ClassicDialect) -> MethodWire {
        let usual =
            MethodWire { method: self.methods.first().copied().unwrap_or(""), marks: self.marks, names: &[] };
        match dialect {
            ClassicDialect::CaptchaAi => self.at_captcha_ai.unwrap_or(usual),
            ClassicDialect::TwoCaptcha => usual,
        }
    }

    pub(super) fn is_marked_by(&self, method: &str, form: &Form) -> bool {
        let tells = |(name, expected): &MethodMark| match (form.0.get(*name), expected) {
            (Some(Part::Text(text)), Some(expected)) => text == expected,
            (Some(Part::Text(text)), None) => !text.is_empty(),
            (Some(Part::File(_)), expected) => expected.is_none(),
            (None, _) => false,
        };
        self.methods.contains(&method) && (self.marked_by.is_empty() || self.marked_by.iter().any(tells))
    }

    pub(super) fn is_mark(&self, name: &str, part: &Part) -> bool {
        let theirs = self.at_captcha_ai.map_or(&[][..], |wire| wire.marks);
        let says = |expected: &str| *part == Part::Text(expected.to_owned());
        self.marks.iter().chain(theirs).any(|(mark, expected)| *mark == name && says(expected))
    }

    pub(super) fn our_name<'a>(&self, name: &'a str) -> &'a str {
        let theirs = self.at_captcha_ai.map_or(&[][..], |wire| wire.names);
        let all = self.aliases.iter().chain(theirs);
        all.copied().find(|(_, alias)| *alias == name).map_or(name, |(ours, _)| ours)
    }

    pub(super) fn all_names(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let theirs = self.at_captcha_ai.map_or(&[][..], |wire| wire.names);
        self.aliases.iter().chain(theirs).copied()
    }

    pub(super) fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.methods.iter().copied()
    }

    pub(super) fn tells(&self) -> impl Iterator<Item = (&'static str, Option<&'static str>, &'static str)> {
        self.marked_by.iter().map(|(name, expected)| (*name, *expected, self.kind))
    }

    pub(super) fn all_marks(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let theirs = self.at_captcha_ai.map_or(&[][..], |wire| wire.marks);
        self.marks.iter().chain(theirs).copied()
    }

    pub(super) fn is_base64(&self, name: &str) -> bool {
        self.files.contains(&name)
    }

    pub(super) fn is_file(&self, name: &str) -> bool {
        self.is_base64(name) || self.uploads.contains(&name)
    }
}

/// A method that is not in the table: method and fields stay as they are.
pub(super) const PLAIN: MethodSpelling = MethodSpelling {
    kind: "",
    methods: &[],
    marked_by: &[],
    marks: &[],
    files: &[],
    uploads: &[],
    aliases: &[],
    at_captcha_ai: None,
};

const PICTURE: MethodSpelling = MethodSpelling {
    methods: &["base64", "post"],
    files: &["body", "imginstructions"],
    aliases: &[("body", "file")],
    ..PLAIN
};

pub(super) const TABLE: &[MethodSpelling] = &[
    MethodSpelling {
        kind: "text",
        methods: &["", "post", "base64"],
        marked_by: &[("textcaptcha", None)],
        ..PLAIN
    },
    MethodSpelling {
        kind: "canvas",
        marked_by: &[("canvas", Some("1"))],
        marks: &[("canvas", "1"), ("recaptcha", "1")],
        ..PICTURE
    },
    MethodSpelling {
        kind: "coordinates",
        marked_by: &[("coordinatescaptcha", Some("1"))],
        marks: &[("coordinatescaptcha", "1")],
        ..PICTURE
    },
    MethodSpelling {
        kind: "grid",
        marked_by: &[("recaptcha", Some("1")), ("img_type", Some("recaptcha")), ("grid_size", None)],
        marks: &[("recaptcha", "1")],
        at_captcha_ai: Some(MethodWire {
            method: "base64",
            marks: &[("img_type", "recaptcha")],
            names: &[("textinstructions", "instructions")],
        }),
        ..PICTURE
    },
    MethodSpelling { kind: "image", aliases: &[("body", "file"), ("regsense", "caseSensitive")], ..PICTURE },
    // A picture without a method is one, too: that is what the oldest clients send.
    MethodSpelling { kind: "image", methods: &[""], marked_by: &[("body", None), ("file", None)], ..PICTURE },
    MethodSpelling {
        kind: "rotate",
        methods: &["rotatecaptcha"],
        uploads: &["file_1", "file_2", "file_3", "file_4", "file_5", "file_6", "file_7", "file_8", "file_9"],
        ..PICTURE
    },
    MethodSpelling {
        kind: "bounding_box",
        methods: &["bounding_box"],
        files: &["image", "imginstructions"],
        ..PLAIN
    },
    MethodSpelling { kind: "audio", methods: &["audio"], ..PICTURE },
    MethodSpelling {
        kind: "recaptcha_v3",
        methods: &["userrecaptcha"],
        marked_by: &[("version", Some("v3"))],
        marks: &[("version", "v3")],
        ..PLAIN
    },
    MethodSpelling { kind: "recaptcha_v2", methods: &["userrecaptcha"], ..PLAIN },
    MethodSpelling {
        kind: "geetest_v4",
        methods: &["geetest_v4"],
        aliases: &[("captcha_id", "gt")],
        marks: &[],
        at_captcha_ai: Some(MethodWire {
            method: "geetest",
            marks: &[("version", "4")],
            names: &[("captcha_id", "gt")],
        }),
        ..PLAIN
    },
    MethodSpelling {
        kind: "geetest_v4",
        methods: &["geetest"],
        marked_by: &[("version", Some("4"))],
        marks: &[("version", "4")],
        aliases: &[("captcha_id", "gt")],
        ..PLAIN
    },
    MethodSpelling {
        kind: "lemin",
        methods: &["lemin"],
        at_captcha_ai: Some(MethodWire {
            method: "lemin",
            marks: &[],
            names: &[("api_server", "apiServer")],
        }),
        ..PLAIN
    },
];
