//! Cookies that open a whole site for a while, for the proxy and the browser that they were made with. Two orders
//! with the same proxy and browser share one cookie.

use crate::kinds::kind_row::{
    COOKIE, KindRow, PAGE, defaulted, document, optional, required, required_vendor,
};
use quittance_lifecycle::{Field, Shape};

pub(crate) const ROWS: &[KindRow] = &[
    KindRow {
        name: "cloudflare_challenge",
        fields: &[
            PAGE,
            required("proxy"),
            required("proxytype"),
            optional("userAgent"),
            optional("cookies"),
            // What CapMonster asks for beside the page: which of its challenges it is, the site key on it, and the
            // page itself.
            defaulted("cloudflareTaskType", "cf_clearance"),
            optional("sitekey"),
            document("htmlPageBase64"),
            // The same, as CapSolver asks for it.
            document("html"),
        ],
        // The page as a document loads its script from challenges.cloudflare.com, and links to www.cloudflare.com.
        vendors: &["*.cloudflare.com", "static.cloudflareinsights.com"],
        ..COOKIE
    },
    KindRow {
        name: "datadome",
        fields: &[
            PAGE,
            Field { substitutes: &["html", "htmlPageBase64"], ..required_vendor("captcha_url") },
            required("userAgent"),
            required("proxy"),
            optional("proxytype"),
            // The cookie of the block page, for a provider that asks for it.
            optional("datadome_cookie"),
            optional("datadomeVersion"),
            // The block page itself, as CapSolver and CapMonster ask for it.
            document("html"),
            document("htmlPageBase64"),
        ],
        // The challenge is at geo.captcha-delivery.com (2captcha's and CapSolver's examples).
        vendors: &["*.captcha-delivery.com"],
        ..COOKIE
    },
    KindRow {
        name: "imperva",
        fields: &[
            PAGE,
            optional("proxy"),
            optional("proxytype"),
            optional("userAgent"),
            optional("cookies"),
            // Scripts are on the site's own host, as an address or as a path; the last ends with the host that it is
            // for.
            optional("incapsulaScriptUrl"),
            optional("scriptURL"),
            optional("reeseScriptUrl"),
            optional("reese84UrlEndpoint"),
            optional("incapsulaCookies"),
            // What one of the scripts says, and the block page.
            Field { shape: Shape::Document, ..optional("script") },
            document("html"),
        ],
        // A block page may show another vendor's captcha in a frame of its own.
        vendors: &["*.hcaptcha.com", "www.google.com", "www.recaptcha.net"],
        ..COOKIE
    },
    KindRow {
        name: "tspd",
        fields: &[
            PAGE,
            optional("proxy"),
            optional("proxytype"),
            optional("userAgent"),
            optional("cookies"),
            // The cookies of the block page, and the page itself.
            optional("tspd_cookie"),
            document("html_page_base64"),
        ],
        ..COOKIE
    },
];
