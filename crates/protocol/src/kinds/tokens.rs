//! Tokens and puzzles: what a page sends to its server as proof of a visitor. A site takes each of them once, and
//! only for a short time.

use crate::kinds::kind_row::{
    KindRow, Lasts, PAGE, TOKEN, aside, defaulted, document, optional, pace, required, required_vendor,
    vendor,
};
use quittance_lifecycle::{Field, Identity};

/// A puzzle. Its challenge is good for one load of the page, and providers do not say how long the answer lives, so a
/// short life is assumed.
const PUZZLE: KindRow =
    KindRow { lasts: Lasts::Once { life_s: 60, margin_s: 20 }, pace: pace(12, 45, 90), ..TOKEN };

/// The hosts of GeeTest: api.geetest.com and gcaptcha4.geetest.com with their regions, and the vendor's fallbacks.
/// The last is the one host of a delivery network that the loader names.
const GEETEST: &[&str] = &["*.geetest.com", "*.geevisit.com", "*.gsensebot.com", "dn-staticdown.qbox.me"];

pub(crate) const ROWS: &[KindRow] = &[
    KindRow {
        name: "recaptcha_v2",
        identity: Identity::Fields,
        fields: &[
            required("googlekey"),
            PAGE,
            // Each of these makes a token that the other sort of page refuses.
            defaulted("enterprise", "0"),
            defaulted("invisible", "0"),
            // A one-time value of some pages, spent with the token.
            optional("data-s"),
            // Only pages with an enterprise key have one here.
            optional("action"),
            Field { identifies: false, ..vendor("domain") },
            // What the widget loads, in base64, for a provider that asks for it: a page, and an answer.
            Field { identifies: false, ..document("anchor") },
            aside("reload"),
            aside("userAgent"),
            aside("cookies"),
        ],
        // What the providers' documentation gives as values of `domain`, and where the widget's page loads its script.
        vendors: &["google.com", "www.google.com", "*.recaptcha.net", "www.gstatic.com"],
        // The slowest of the common ones: 2captcha gives its workers 300 s where others get 90.
        pace: pace(20, 75, 130),
        ..TOKEN
    },
    KindRow {
        name: "recaptcha_v3",
        identity: Identity::Fields,
        fields: &[
            required("googlekey"),
            PAGE,
            defaulted("action", "verify"),
            defaulted("min_score", "0.4"),
            defaulted("enterprise", "0"),
            // The kind says it already; an order with another value is not shared.
            defaulted("version", "v3"),
            Field { identifies: false, ..vendor("domain") },
            // What the widget loads, in base64, for a provider that asks for it: a page, and an answer.
            Field { identifies: false, ..document("anchor") },
            aside("reload"),
            aside("userAgent"),
            aside("cookies"),
        ],
        // What the providers' documentation gives as values of `domain`, and where the widget's page loads its script.
        vendors: &["google.com", "www.google.com", "*.recaptcha.net", "www.gstatic.com"],
        ..TOKEN
    },
    KindRow {
        name: "hcaptcha",
        identity: Identity::Fields,
        fields: &[
            required("sitekey"),
            PAGE,
            defaulted("invisible", "0"),
            optional("data"),
            Field { identifies: false, ..vendor("domain") },
            // Where a page with an enterprise key loads the parts of the widget from.
            Field { identifies: false, ..vendor("endpoint") },
            Field { identifies: false, ..vendor("apiEndpoint") },
            Field { identifies: false, ..vendor("reportapi") },
            Field { identifies: false, ..vendor("assethost") },
            Field { identifies: false, ..vendor("imghost") },
            aside("userAgent"),
            aside("cookies"),
        ],
        vendors: &["*.hcaptcha.com"],
        pace: pace(20, 75, 130),
        ..TOKEN
    },
    KindRow {
        name: "turnstile",
        identity: Identity::Fields,
        fields: &[
            required("sitekey"),
            PAGE,
            optional("action"),
            optional("data"),
            optional("pagedata"),
            // Where a challenge page loads the widget from, for a provider that asks for it.
            Field { identifies: false, ..vendor("apiJsUrl") },
            aside("userAgent"),
            aside("cookies"),
        ],
        vendors: &["challenges.cloudflare.com"],
        lasts: Lasts::Once { life_s: 300, margin_s: 50 },
        pace: pace(10, 45, 90),
        ..TOKEN
    },
    KindRow {
        name: "geetest",
        fields: &[
            required("gt"),
            // Made by the site for one load of the page: two challenges are never one order.
            required("challenge"),
            PAGE,
            vendor("api_server"),
            // Which scripts the page loads, as JSON with addresses of the vendor in it.
            optional("geetestGetLib"),
            optional("offline"),
            optional("new_captcha"),
            optional("userAgent"),
        ],
        vendors: GEETEST,
        ..PUZZLE
    },
    // Some clients ask for it as version 4 of the other.
    KindRow {
        name: "geetest_v4",
        fields: &[
            required("captcha_id"),
            PAGE,
            defaulted("version", "4"),
            vendor("api_server"),
            optional("geetestGetLib"),
            optional("risk_type"),
            optional("userAgent"),
        ],
        vendors: GEETEST,
        ..PUZZLE
    },
    KindRow {
        name: "funcaptcha",
        fields: &[
            required("publickey"),
            PAGE,
            vendor("surl"),
            // A one-time value of the page.
            optional("data[blob]"),
            optional("userAgent"),
        ],
        // client-api.arkoselabs.com, or the subdomain of one customer; two names in China; the older name is still in
        // use.
        vendors: &["*.arkoselabs.com", "*.arkoselabs.cn", "*.arkose.com.cn", "*.funcaptcha.com"],
        pace: pace(20, 75, 130),
        ..TOKEN
    },
    KindRow {
        name: "keycaptcha",
        fields: &[
            required("s_s_c_user_id"),
            required("s_s_c_session_id"),
            required("s_s_c_web_server_sign"),
            required("s_s_c_web_server_sign2"),
            PAGE,
        ],
        ..PUZZLE
    },
    KindRow {
        name: "capy",
        fields: &[required("captchakey"), PAGE, vendor("api_server"), defaulted("version", "puzzle")],
        // https://jp.api.capy.me/ in 2captcha's examples.
        vendors: &["*.capy.me"],
        ..PUZZLE
    },
    KindRow {
        name: "lemin",
        fields: &[required("captcha_id"), required("div_id"), PAGE, vendor("api_server")],
        // api.leminnow.com in the vendor's documentation.
        vendors: &["*.leminnow.com"],
        ..PUZZLE
    },
    // Its answer is a voucher that is spent once, for a cookie that only the same visitor can use.
    KindRow {
        name: "amazon_waf",
        fields: &[
            // Some providers fetch the page and find these themselves.
            optional("sitekey"),
            optional("iv"),
            optional("context"),
            PAGE,
            optional("awsApiKey"),
            optional("awsExistingToken"),
            vendor("challenge_script"),
            vendor("captcha_script"),
            vendor("jsapi_script"),
            vendor("problem_url"),
            optional("cookieSolution"),
            optional("userAgent"),
        ],
        // ID.REGION.token.awswaf.com, .captcha., .sdk., .captcha-sdk.; REGION is `edge` for CloudFront. A script on
        // the site's own host is listed as the site is.
        vendors: &["*.awswaf.com"],
        bound_to_address: true,
        ..TOKEN
    },
    KindRow {
        name: "captchafox",
        fields: &[
            required("sitekey"),
            PAGE,
            vendor("api_server"),
            required("proxy"),
            optional("proxytype"),
            optional("userAgent"),
        ],
        // cdn.captchafox.com has the script, api.captchafox.com the verification.
        vendors: &["*.captchafox.com"],
        // The script for answers that begin with `MAM_`.
        scripts: &["https://s.uicdn.com/mampkg/@mamdev/core.frontend.libs.captchafox/"],
        bound_to_address: true,
        ..TOKEN
    },
    KindRow {
        name: "friendly_captcha",
        fields: &[
            required("sitekey"),
            PAGE,
            optional("version"),
            // What the page loads: the one for browsers that know modules, and the other.
            vendor("module_script"),
            vendor("nomodule_script"),
        ],
        // The puzzles of version 1 are at api.friendlycaptcha.com and eu-api.friendlycaptcha.eu, those of version 2
        // at frcapi.com.
        vendors: &["*.friendlycaptcha.com", "*.friendlycaptcha.eu", "*.frcapi.com"],
        // The vendor's documentation loads the widget from the first; its packages of both versions are at both.
        scripts: &[
            "https://cdn.jsdelivr.net/npm/friendly-challenge@",
            "https://cdn.jsdelivr.net/npm/@friendlycaptcha/",
            "https://unpkg.com/friendly-challenge@",
            "https://unpkg.com/@friendlycaptcha/",
        ],
        ..TOKEN
    },
    KindRow {
        name: "mt_captcha",
        fields: &[required("sitekey"), PAGE, optional("action"), defaulted("invisible", "0")],
        ..TOKEN
    },
    KindRow { name: "prosopo", fields: &[required("sitekey"), PAGE], ..TOKEN },
    KindRow {
        name: "cybersiara",
        fields: &[required("master_url_id"), PAGE, optional("userAgent")],
        ..TOKEN
    },
    KindRow { name: "cutcaptcha", fields: &[required("misery_key"), required("api_key"), PAGE], ..TOKEN },
    KindRow {
        name: "tencent",
        fields: &[required("app_id"), PAGE, vendor("captcha_script")],
        // turing.captcha.qcloud.com and its regions; t.captcha.qq.com; scripts are also at captcha.gtimg.com.
        vendors: &["*.captcha.qcloud.com", "*.captcha.qq.com", "*.captcha.gtimg.com"],
        ..PUZZLE
    },
    KindRow {
        name: "atb_captcha",
        fields: &[required("app_id"), required_vendor("api_server"), PAGE],
        // https://cap.aisecurius.com in every example of 2captcha's clients.
        vendors: &["*.aisecurius.com"],
        ..PUZZLE
    },
];
