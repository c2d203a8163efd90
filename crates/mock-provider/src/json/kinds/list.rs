//! The table of task types: one row for each kind that the mock provider takes through the JSON protocol. It shares
//! no code with the product's tables, so that tests find a wrong name there.

use super::{EMPTY, Forms, JsonKind};

const RECAPTCHA: &[(&str, &str)] = &[
    ("websiteURL", "pageurl"),
    ("websiteKey", "googlekey"),
    ("isInvisible", "invisible"),
    ("recaptchaDataSValue", "data-s"),
    ("enterprisePayload.s", "data-s"),
    ("apiDomain", "domain"),
    ("pageAction", "action"),
    ("minScore", "min_score"),
    ("isEnterprise", "enterprise"),
    ("userAgent", "userAgent"),
    ("cookies", "cookies"),
];

const SITEKEY: &[(&str, &str)] =
    &[("websiteURL", "pageurl"), ("websiteKey", "sitekey"), ("userAgent", "userAgent")];

const PICTURE: &[(&str, &str)] = &[
    ("body", "body"),
    ("phrase", "phrase"),
    ("case", "regsense"),
    ("numeric", "numeric"),
    ("math", "calc"),
    ("minLength", "min_len"),
    ("maxLength", "max_len"),
    ("comment", "textinstructions"),
    ("imgInstructions", "imginstructions"),
    ("rows", "recaptcharows"),
    ("columns", "recaptchacols"),
    ("lang", "lang"),
];

/// GeeTest v4 has the task type of v3. Fields of the task select this row.
pub(super) const GEETEST_V4: JsonKind = JsonKind {
    method: "geetest_v4",
    fields: &[
        ("websiteURL", "pageurl"),
        ("initParameters.captcha_id", "captcha_id"),
        ("captchaId", "captcha_id"),
        ("gt", "captcha_id"),
        ("userAgent", "userAgent"),
    ],
    ..EMPTY
};

pub(super) const KINDS: &[JsonKind] = &[
    JsonKind {
        names: &["RecaptchaV2Task", "NoCaptchaTask"],
        at_capsolver: &["ReCaptchaV2Task"],
        method: "userrecaptcha",
        fields: RECAPTCHA,
        solution: "gRecaptchaResponse",
        ..EMPTY
    },
    JsonKind {
        names: &["RecaptchaV2EnterpriseTask"],
        at_capsolver: &["ReCaptchaV2EnterpriseTask"],
        method: "userrecaptcha",
        fixed: &[("enterprise", "1")],
        fields: RECAPTCHA,
        solution: "gRecaptchaResponse",
        ..EMPTY
    },
    JsonKind {
        names: &["RecaptchaV3Task"],
        forms: Forms::ProxylessOnly,
        method: "userrecaptcha",
        fixed: &[("version", "v3")],
        fields: RECAPTCHA,
        solution: "gRecaptchaResponse",
        ..EMPTY
    },
    JsonKind {
        at_capsolver: &["ReCaptchaV3Task"],
        method: "userrecaptcha",
        fixed: &[("version", "v3")],
        fields: RECAPTCHA,
        solution: "gRecaptchaResponse",
        ..EMPTY
    },
    JsonKind {
        names: &["RecaptchaV3EnterpriseTask"],
        at_capsolver: &["ReCaptchaV3EnterpriseTask"],
        method: "userrecaptcha",
        fixed: &[("version", "v3"), ("enterprise", "1")],
        fields: RECAPTCHA,
        solution: "gRecaptchaResponse",
        ..EMPTY
    },
    JsonKind {
        names: &["HCaptchaTask"],
        at_capsolver: &["HCaptchaTask"],
        method: "hcaptcha",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("isInvisible", "invisible"),
            ("enterprisePayload.rqdata", "data"),
            ("data", "data"),
            ("userAgent", "userAgent"),
        ],
        solution: "gRecaptchaResponse",
        has_agent: true,
        ..EMPTY
    },
    JsonKind {
        names: &["TurnstileTask"],
        method: "turnstile",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("action", "action"),
            ("pageAction", "action"),
            ("data", "data"),
            ("cData", "data"),
            ("turnstileCData", "data"),
            ("cloudflareTaskData.data", "data"),
            ("pagedata", "pagedata"),
            ("chlPageData", "pagedata"),
            ("pageData", "pagedata"),
            ("userAgent", "userAgent"),
        ],
        has_agent: true,
        ..EMPTY
    },
    JsonKind {
        at_capsolver: &["AntiTurnstileTask"],
        forms: Forms::ProxylessOnly,
        method: "turnstile",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("metadata.action", "action"),
            ("metadata.cdata", "data"),
        ],
        has_agent: true,
        ..EMPTY
    },
    JsonKind {
        at_capsolver: &["AntiCloudflareTask"],
        forms: Forms::ProxyOnly,
        method: "cloudflare_challenge",
        fields: SITEKEY,
        has_agent: true,
        ..EMPTY
    },
    JsonKind {
        names: &["GeeTestTask"],
        at_capsolver: &["GeeTestTask"],
        method: "geetest",
        fields: &[
            ("websiteURL", "pageurl"),
            ("gt", "gt"),
            ("challenge", "challenge"),
            ("geetestApiServerSubdomain", "api_server"),
            ("userAgent", "userAgent"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["FunCaptchaTask"],
        at_capsolver: &["FunCaptchaTask"],
        method: "funcaptcha",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websitePublicKey", "publickey"),
            ("funcaptchaApiJSSubdomain", "surl"),
            ("data", "data[blob]"),
            ("userAgent", "userAgent"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["ImageToTextTask"],
        at_capsolver: &["ImageToTextTask"],
        forms: Forms::Bare,
        method: "base64",
        fields: PICTURE,
        solution: "text",
        ..EMPTY
    },
    JsonKind {
        names: &["GridTask"],
        forms: Forms::Bare,
        method: "base64",
        fixed: &[("recaptcha", "1")],
        fields: PICTURE,
        solution: "click",
        ..EMPTY
    },
    JsonKind {
        names: &["CoordinatesTask"],
        forms: Forms::Bare,
        method: "base64",
        fixed: &[("coordinatescaptcha", "1")],
        fields: PICTURE,
        solution: "coordinates",
        ..EMPTY
    },
    JsonKind {
        names: &["DrawAroundTask"],
        forms: Forms::Bare,
        method: "base64",
        fixed: &[("canvas", "1")],
        fields: PICTURE,
        solution: "canvas",
        ..EMPTY
    },
    JsonKind {
        names: &["BoundingBoxTask"],
        forms: Forms::Bare,
        method: "bounding_box",
        fields: &[("body", "image"), ("comment", "textinstructions")],
        solution: "bounding_boxes",
        ..EMPTY
    },
    JsonKind {
        names: &["RotateTask"],
        forms: Forms::Bare,
        method: "rotatecaptcha",
        fields: &[("body", "body"), ("angle", "angle"), ("comment", "textinstructions")],
        solution: "rotate",
        ..EMPTY
    },
    JsonKind {
        names: &["AudioTask"],
        forms: Forms::Bare,
        method: "audio",
        fields: &[("body", "body"), ("lang", "lang")],
        solution: "text",
        ..EMPTY
    },
    JsonKind {
        names: &["TextCaptchaTask"],
        forms: Forms::Bare,
        method: "textcaptcha",
        fields: &[("comment", "textcaptcha"), ("lang", "lang")],
        solution: "text",
        ..EMPTY
    },
    JsonKind {
        names: &["AmazonTask"],
        at_capsolver: &["AntiAwsWafTask"],
        method: "amazon_waf",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("awsKey", "sitekey"),
            ("iv", "iv"),
            ("awsIv", "iv"),
            ("context", "context"),
            ("awsContext", "context"),
            ("challengeScript", "challenge_script"),
            ("captchaScript", "captcha_script"),
            ("jsapiScript", "jsapi_script"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["LeminTask"],
        method: "lemin",
        fields: &[
            ("websiteURL", "pageurl"),
            ("captchaId", "captcha_id"),
            ("divId", "div_id"),
            ("leminApiServerSubdomain", "api_server"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["CapyTask"],
        method: "capy",
        fields: &[("websiteURL", "pageurl"), ("websiteKey", "captchakey")],
        ..EMPTY
    },
    JsonKind {
        names: &["TencentTask"],
        method: "tencent",
        fields: &[("websiteURL", "pageurl"), ("appId", "app_id")],
        ..EMPTY
    },
    JsonKind {
        names: &["MtCaptchaTask"],
        at_capsolver: &["MtCaptchaTask"],
        method: "mt_captcha",
        fields: SITEKEY,
        ..EMPTY
    },
    JsonKind {
        names: &["FriendlyCaptchaTask"],
        method: "friendly_captcha",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("version", "version"),
            ("moduleScript", "module_script"),
            ("nomoduleScript", "nomodule_script"),
        ],
        ..EMPTY
    },
    JsonKind { names: &["ProsopoTask"], method: "prosopo", fields: SITEKEY, ..EMPTY },
    JsonKind {
        names: &["CutCaptchaTask"],
        method: "cutcaptcha",
        fields: &[("websiteURL", "pageurl"), ("miseryKey", "misery_key"), ("apiKey", "api_key")],
        ..EMPTY
    },
    JsonKind {
        names: &["KeyCaptchaTask"],
        method: "keycaptcha",
        fields: &[
            ("websiteURL", "pageurl"),
            ("s_s_c_user_id", "s_s_c_user_id"),
            ("s_s_c_session_id", "s_s_c_session_id"),
            ("s_s_c_web_server_sign", "s_s_c_web_server_sign"),
            ("s_s_c_web_server_sign2", "s_s_c_web_server_sign2"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["AntiCyberSiAraTask"],
        method: "cybersiara",
        fields: &[
            ("websiteURL", "pageurl"),
            ("SlideMasterUrlId", "master_url_id"),
            ("userAgent", "userAgent"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["AtbCaptchaTask"],
        method: "atb_captcha",
        fields: &[("websiteURL", "pageurl"), ("appId", "app_id"), ("apiServer", "api_server")],
        ..EMPTY
    },
    JsonKind {
        names: &["CaptchaFoxTask"],
        forms: Forms::ProxyOnly,
        method: "captchafox",
        fields: &[
            ("websiteURL", "pageurl"),
            ("websiteKey", "sitekey"),
            ("apiServer", "api_server"),
            ("userAgent", "userAgent"),
        ],
        has_agent: true,
        ..EMPTY
    },
    JsonKind {
        names: &["DataDomeSliderTask"],
        at_capsolver: &["DatadomeSliderTask"],
        forms: Forms::ProxyOnly,
        method: "datadome",
        fields: &[("websiteURL", "pageurl"), ("captchaUrl", "captcha_url"), ("userAgent", "userAgent")],
        solution: "cookie",
        ..EMPTY
    },
    JsonKind {
        names: &["TspdTask"],
        forms: Forms::ProxyOnly,
        method: "tspd",
        fields: &[
            ("websiteURL", "pageurl"),
            ("tspdCookie", "tspd_cookie"),
            ("htmlPageBase64", "html_page_base64"),
            ("userAgent", "userAgent"),
        ],
        ..EMPTY
    },
    JsonKind {
        names: &["IncapsulaTask"],
        at_capsolver: &["AntiImpervaTask"],
        method: "imperva",
        fields: &[
            ("websiteURL", "pageurl"),
            ("incapsulaScriptUrl", "incapsulaScriptUrl"),
            ("incapsulaCookies", "incapsulaCookies"),
            ("reese84UrlEndpoint", "reese84UrlEndpoint"),
            ("reeseScriptUrl", "reeseScriptUrl"),
            ("userAgent", "userAgent"),
        ],
        ..EMPTY
    },
];
