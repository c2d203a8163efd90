//! Questions that the order itself makes answerable: pictures, sounds and sentences. Their answers live for ever and
//! can be used again, so the same question is never paid for twice.

use crate::kinds::kind_row::{
    BODY, FOUND_ON, KindRow, PICTURE, defaulted, document, file, optional, pace, required,
};
use quittance_lifecycle::Field;

/// Instructions for the worker about a picture, as text.
const TEXT_HINT: Field = optional("textinstructions");
const PICTURE_HINT: Field = file("imginstructions");
const LANGUAGE: Field = defaulted("language", "0");
const LANG: Field = optional("lang");

pub(crate) const ROWS: &[KindRow] = &[
    KindRow {
        name: "image",
        fields: &[
            FOUND_ON,
            BODY,
            TEXT_HINT,
            PICTURE_HINT,
            LANG,
            LANGUAGE,
            defaulted("phrase", "0"),
            defaulted("numeric", "0"),
            defaulted("calc", "0"),
            defaulted("min_len", "0"),
            defaulted("max_len", "0"),
            // Case matters by default at anti-captcha and not at 2captcha: leaving it out is a third thing.
            optional("regsense"),
        ],
        pace: pace(4, 15, 30),
        ..PICTURE
    },
    KindRow {
        name: "text",
        fields: &[FOUND_ON, required("textcaptcha"), LANG, LANGUAGE],
        pace: pace(8, 30, 60),
        ..PICTURE
    },
    KindRow { name: "audio", fields: &[FOUND_ON, BODY, LANG], pace: pace(10, 40, 80), ..PICTURE },
    // Classic clients mark a grid with `recaptcha=1` on an ordinary picture; the kind says that already.
    KindRow {
        name: "grid",
        fields: &[
            FOUND_ON,
            BODY,
            TEXT_HINT,
            PICTURE_HINT,
            LANG,
            LANGUAGE,
            defaulted("recaptcha", "1"),
            optional("recaptcharows"),
            optional("recaptchacols"),
            optional("grid_size"),
            optional("img_type"),
            // The picture before this one in the same challenge: tells which squares are new.
            optional("previousID"),
            defaulted("can_no_answer", "0"),
        ],
        ..PICTURE
    },
    KindRow {
        name: "coordinates",
        fields: &[
            FOUND_ON,
            BODY,
            TEXT_HINT,
            PICTURE_HINT,
            LANG,
            LANGUAGE,
            defaulted("coordinatescaptcha", "1"),
            optional("min_clicks"),
            optional("max_clicks"),
        ],
        ..PICTURE
    },
    KindRow {
        name: "canvas",
        fields: &[
            FOUND_ON,
            BODY,
            TEXT_HINT,
            PICTURE_HINT,
            LANG,
            LANGUAGE,
            defaulted("recaptcha", "1"),
            defaulted("canvas", "1"),
            optional("previousID"),
            defaulted("can_no_answer", "0"),
        ],
        pace: pace(10, 40, 80),
        ..PICTURE
    },
    KindRow {
        name: "rotate",
        fields: &[
            FOUND_ON,
            // One picture, or up to nine: a row cannot say "one of these", so the provider has to ask for it.
            file("body"),
            file("file_1"),
            file("file_2"),
            file("file_3"),
            file("file_4"),
            file("file_5"),
            file("file_6"),
            file("file_7"),
            file("file_8"),
            file("file_9"),
            TEXT_HINT,
            PICTURE_HINT,
            LANG,
            defaulted("angle", "40"),
        ],
        ..PICTURE
    },
    KindRow {
        name: "bounding_box",
        fields: &[
            FOUND_ON,
            Field { required: true, ..file("image") },
            TEXT_HINT,
            PICTURE_HINT,
            defaulted("can_no_answer", "0"),
        ],
        pace: pace(10, 40, 80),
        ..PICTURE
    },
    // Nine small pictures as data addresses, which are text on the wire and stay so.
    KindRow {
        name: "bls",
        fields: &[
            FOUND_ON,
            required("instructions"),
            Field { required: true, default: None, ..document("image_base64_1") },
            document("image_base64_2"),
            document("image_base64_3"),
            document("image_base64_4"),
            document("image_base64_5"),
            document("image_base64_6"),
            document("image_base64_7"),
            document("image_base64_8"),
            document("image_base64_9"),
        ],
        pace: pace(2, 10, 20),
        ..PICTURE
    },
];
