//! Cookies that open a whole site for a while, for the proxy and the browser that they were made with. They can be
//! used again, so two orders that agree in both share one.

use crate::row::{COOKIE, PAGE, Row, optional, required};

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "cloudflare_challenge",
        fields: &[PAGE, required("proxy"), required("proxytype"), optional("userAgent"), optional("cookies")],
        ..COOKIE
    },
    Row {
        name: "datadome",
        fields: &[
            PAGE,
            // An address, but not of the page: its host is never one that the operator would list.
            required("captcha_url"),
            required("userAgent"),
            required("proxy"),
            optional("proxytype"),
        ],
        ..COOKIE
    },
    Row {
        name: "imperva",
        fields: &[PAGE, optional("proxy"), optional("proxytype"), optional("userAgent"), optional("cookies")],
        ..COOKIE
    },
    Row {
        name: "tspd",
        fields: &[PAGE, optional("proxy"), optional("proxytype"), optional("userAgent"), optional("cookies")],
        ..COOKIE
    },
];
