//! The table of task types: the type of each kind, and the names of its fields. A type that is not in it passes
//! through under its own name. If a client's task fits several rows, the first one counts.

use super::task_row::{FieldName, FieldShape, PLAIN, TaskRow, file, flag, name, number};
use crate::json::dialect::JsonDialect;

const SITEKEY: FieldName = name("sitekey", "websiteKey");
const HINT: FieldName = name("textinstructions", "comment");
const PICTURE_HINT: FieldName = file("imginstructions", "imgInstructions");
const BODY: FieldName = file("body", "body");
const PREVIOUS: FieldName = name("previousID", "previousId");
/// JSON that the services document as a text.
const GEETEST_SCRIPTS: FieldName = name("geetestGetLib", "geetestGetLib");
const SESSION: FieldName = flag("isSession", "isSession");
const NO_ANSWER: FieldName = flag("can_no_answer", "canNoAnswer");

const RECAPTCHA: TaskRow = TaskRow {
    names: &[
        name("googlekey", "websiteKey"),
        flag("invisible", "isInvisible"),
        flag("enterprise", "isEnterprise"),
        name("data-s", "recaptchaDataSValue"),
        name("data-s", "enterprisePayload.s"),
        name("action", "pageAction"),
        number("min_score", "minScore"),
        name("domain", "apiDomain"),
        SESSION,
    ],
    ..PLAIN
};

pub(super) const TABLE: &[TaskRow] = &[
    TaskRow {
        kind: "recaptcha_v2",
        types: ("RecaptchaV2EnterpriseTask", "RecaptchaV2EnterpriseTaskProxyless"),
        at_cap_solver: Some(("ReCaptchaV2EnterpriseTask", "ReCaptchaV2EnterpriseTaskProxyLess")),
        implied: &[("enterprise", "1")],
        names: &[
            name("googlekey", "websiteKey"),
            flag("invisible", "isInvisible"),
            name("data-s", "enterprisePayload.s"),
            name("data-s", "recaptchaDataSValue"),
            name("action", "pageAction"),
            name("domain", "apiDomain"),
            SESSION,
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "recaptcha_v2",
        types: ("RecaptchaV2Task", "RecaptchaV2TaskProxyless"),
        at_cap_solver: Some(("ReCaptchaV2Task", "ReCaptchaV2TaskProxyLess")),
        also: &["nocaptchatask"],
        ..RECAPTCHA
    },
    TaskRow {
        kind: "recaptcha_v3",
        types: ("ReCaptchaV3EnterpriseTask", "ReCaptchaV3EnterpriseTaskProxyLess"),
        only: &[JsonDialect::CapSolver],
        implied: &[("enterprise", "1")],
        ..RECAPTCHA
    },
    TaskRow {
        kind: "recaptcha_v3",
        // No provider but one takes a proxy here, and that one does not need it.
        types: ("RecaptchaV3TaskProxyless", "RecaptchaV3TaskProxyless"),
        at_cap_solver: Some(("ReCaptchaV3Task", "ReCaptchaV3TaskProxyLess")),
        ..RECAPTCHA
    },
    TaskRow {
        kind: "hcaptcha",
        types: ("HCaptchaTask", "HCaptchaTaskProxyless"),
        at_cap_solver: Some(("HCaptchaTask", "HCaptchaTaskProxyLess")),
        names: &[
            SITEKEY,
            flag("invisible", "isInvisible"),
            name("data", "enterprisePayload.rqdata"),
            name("data", "data"),
            name("domain", "apiDomain"),
            name("endpoint", "enterprisePayload.endpoint"),
            name("apiEndpoint", "enterprisePayload.apiEndpoint"),
            name("reportapi", "enterprisePayload.reportapi"),
            name("assethost", "enterprisePayload.assethost"),
            name("imghost", "enterprisePayload.imghost"),
        ],
        elsewhere: &[(JsonDialect::CapMonster, "data", "data")],
        ..PLAIN
    },
    TaskRow {
        kind: "cloudflare_challenge",
        types: ("TurnstileTask", "TurnstileTask"),
        marked_by: &[("cloudflareTaskType", Some("cf_clearance")), ("cloudflareTaskType", Some("wait_room"))],
        marks: &[("cloudflareTaskType", "cf_clearance", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[name("cloudflareTaskType", "cloudflareTaskType"), SITEKEY],
        ..PLAIN
    },
    TaskRow { kind: "cloudflare_challenge", types: ("AntiCloudflareTask", "AntiCloudflareTask"), ..PLAIN },
    TaskRow {
        kind: "turnstile",
        types: ("TurnstileTask", "TurnstileTaskProxyless"),
        at_cap_solver: Some(("AntiTurnstileTaskProxyLess", "AntiTurnstileTaskProxyLess")),
        also: &["antiturnstiletask"],
        names: &[
            SITEKEY,
            name("action", "action"),
            name("action", "pageAction"),
            name("action", "metadata.action"),
            name("data", "data"),
            name("data", "cData"),
            name("data", "turnstileCData"),
            name("data", "metadata.cdata"),
            name("pagedata", "pagedata"),
            name("pagedata", "chlPageData"),
            name("apiJsUrl", "apiJsUrl"),
        ],
        elsewhere: &[
            (JsonDialect::AntiCaptcha, "data", "cData"),
            (JsonDialect::AntiCaptcha, "pagedata", "chlPageData"),
            (JsonDialect::CapMonster, "action", "pageAction"),
            (JsonDialect::CapMonster, "pagedata", "pageData"),
            (JsonDialect::CapSolver, "action", "metadata.action"),
            (JsonDialect::CapSolver, "data", "metadata.cdata"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "geetest_v4",
        types: ("GeeTestTask", "GeeTestTaskProxyless"),
        at_cap_solver: Some(("GeeTestTask", "GeeTestTaskProxyLess")),
        marked_by: &[("version", Some("4")), ("captchaId", None), ("initParameters.captcha_id", None)],
        marks: &[("version", "4", FieldShape::Number)],
        names: &[
            name("captcha_id", "initParameters.captcha_id"),
            name("captcha_id", "captchaId"),
            name("captcha_id", "gt"),
            name("api_server", "geetestApiServerSubdomain"),
            GEETEST_SCRIPTS,
            name("risk_type", "risk_type"),
        ],
        elsewhere: &[
            (JsonDialect::AntiCaptcha, "captcha_id", "gt"),
            (JsonDialect::CapMonster, "captcha_id", "gt"),
            (JsonDialect::CapSolver, "captcha_id", "captchaId"),
            (JsonDialect::CapSolver, "risk_type", "riskType"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "geetest",
        types: ("GeeTestTask", "GeeTestTaskProxyless"),
        at_cap_solver: Some(("GeeTestTask", "GeeTestTaskProxyLess")),
        marks: &[("version", "3", FieldShape::Number)],
        names: &[
            name("gt", "gt"),
            name("challenge", "challenge"),
            name("api_server", "geetestApiServerSubdomain"),
            GEETEST_SCRIPTS,
            flag("offline", "offline"),
            flag("new_captcha", "new_captcha"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "funcaptcha",
        types: ("FunCaptchaTask", "FunCaptchaTaskProxyless"),
        at_cap_solver: Some(("FunCaptchaTask", "FunCaptchaTaskProxyLess")),
        names: &[
            name("publickey", "websitePublicKey"),
            name("publickey", "websiteKey"),
            FieldName { ours: "surl", theirs: "funcaptchaApiJSSubdomain", shape: FieldShape::Host },
            name("data[blob]", "data.blob"),
        ],
        packed: &["data"],
        ..PLAIN
    },
    TaskRow {
        kind: "image",
        types: ("ImageToTextTask", "ImageToTextTask"),
        names: &[
            BODY,
            flag("phrase", "phrase"),
            flag("regsense", "case"),
            number("numeric", "numeric"),
            flag("calc", "math"),
            number("min_len", "minLength"),
            number("max_len", "maxLength"),
            HINT,
            PICTURE_HINT,
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "text",
        types: ("TextCaptchaTask", "TextCaptchaTask"),
        names: &[name("textcaptcha", "comment")],
        ..PLAIN
    },
    TaskRow {
        kind: "grid",
        types: ("GridTask", "GridTask"),
        names: &[
            BODY,
            HINT,
            PICTURE_HINT,
            number("recaptcharows", "rows"),
            number("recaptchacols", "columns"),
            name("img_type", "imgType"),
            PREVIOUS,
            NO_ANSWER,
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "coordinates",
        types: ("CoordinatesTask", "CoordinatesTask"),
        also: &["imagetocoordinatestask"],
        names: &[
            BODY,
            HINT,
            PICTURE_HINT,
            number("min_clicks", "minClicks"),
            number("max_clicks", "maxClicks"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "canvas",
        types: ("DrawAroundTask", "DrawAroundTask"),
        names: &[BODY, HINT, PICTURE_HINT, PREVIOUS, NO_ANSWER],
        ..PLAIN
    },
    TaskRow {
        kind: "rotate",
        types: ("RotateTask", "RotateTask"),
        names: &[
            BODY,
            HINT,
            PICTURE_HINT,
            number("angle", "angle"),
            file("file_1", "file_1"),
            file("file_2", "file_2"),
            file("file_3", "file_3"),
            file("file_4", "file_4"),
            file("file_5", "file_5"),
            file("file_6", "file_6"),
            file("file_7", "file_7"),
            file("file_8", "file_8"),
            file("file_9", "file_9"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "bounding_box",
        types: ("BoundingBoxTask", "BoundingBoxTask"),
        names: &[file("image", "body"), HINT, PICTURE_HINT, NO_ANSWER],
        ..PLAIN
    },
    TaskRow { kind: "audio", types: ("AudioTask", "AudioTask"), names: &[BODY], ..PLAIN },
    TaskRow {
        kind: "keycaptcha",
        types: ("KeyCaptchaTask", "KeyCaptchaTaskProxyless"),
        names: &[
            name("s_s_c_user_id", "userId"),
            name("s_s_c_session_id", "sessionId"),
            name("s_s_c_web_server_sign", "webServerSign"),
            name("s_s_c_web_server_sign2", "webServerSign2"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "capy",
        types: ("CapyTask", "CapyTaskProxyless"),
        names: &[name("captchakey", "websiteKey"), name("api_server", "apiServer")],
        ..PLAIN
    },
    TaskRow {
        kind: "lemin",
        types: ("LeminTask", "LeminTaskProxyless"),
        names: &[
            name("captcha_id", "captchaId"),
            name("div_id", "divId"),
            name("api_server", "leminApiServerSubdomain"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "amazon_waf",
        types: ("AmazonTask", "AmazonTaskProxyless"),
        at_cap_solver: Some(("AntiAwsWafTask", "AntiAwsWafTaskProxyLess")),
        names: &[
            SITEKEY,
            name("iv", "iv"),
            name("context", "context"),
            name("challenge_script", "challengeScript"),
            name("captcha_script", "captchaScript"),
            name("jsapi_script", "jsapiScript"),
            name("jsapi_script", "awsApiJs"),
            name("problem_url", "awsProblemUrl"),
            name("sitekey", "awsKey"),
            name("iv", "awsIv"),
            name("context", "awsContext"),
            name("challenge_script", "awsChallengeJS"),
            flag("cookieSolution", "cookieSolution"),
        ],
        elsewhere: &[
            (JsonDialect::CapSolver, "sitekey", "awsKey"),
            (JsonDialect::CapSolver, "iv", "awsIv"),
            (JsonDialect::CapSolver, "context", "awsContext"),
            (JsonDialect::CapSolver, "challenge_script", "awsChallengeJS"),
            (JsonDialect::CapSolver, "jsapi_script", "awsApiJs"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "captchafox",
        types: ("CaptchaFoxTask", "CaptchaFoxTaskProxyless"),
        names: &[SITEKEY, name("api_server", "apiServer")],
        ..PLAIN
    },
    TaskRow {
        kind: "friendly_captcha",
        types: ("CustomTask", "CustomTask"),
        marked_by: &[("class", Some("friendly"))],
        marks: &[("class", "friendly", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[SITEKEY, name("module_script", "metadata.apiGetLib")],
        ..PLAIN
    },
    TaskRow {
        kind: "friendly_captcha",
        types: ("FriendlyCaptchaTask", "FriendlyCaptchaTaskProxyless"),
        names: &[SITEKEY, name("module_script", "moduleScript"), name("nomodule_script", "nomoduleScript")],
        ..PLAIN
    },
    TaskRow {
        kind: "mt_captcha",
        types: ("MtCaptchaTask", "MtCaptchaTaskProxyless"),
        at_cap_solver: Some(("MtCaptchaTask", "MtCaptchaTaskProxyLess")),
        names: &[SITEKEY, name("action", "pageAction"), flag("invisible", "isInvisible")],
        ..PLAIN
    },
    TaskRow { kind: "prosopo", types: ("ProsopoTask", "ProsopoTaskProxyless"), names: &[SITEKEY], ..PLAIN },
    TaskRow {
        kind: "cybersiara",
        types: ("AntiCyberSiAraTask", "AntiCyberSiAraTaskProxyless"),
        names: &[name("master_url_id", "SlideMasterUrlId")],
        ..PLAIN
    },
    TaskRow {
        kind: "cutcaptcha",
        types: ("CutCaptchaTask", "CutCaptchaTaskProxyless"),
        names: &[name("misery_key", "miseryKey"), name("api_key", "apiKey")],
        ..PLAIN
    },
    TaskRow {
        kind: "tencent",
        types: ("CustomTask", "CustomTask"),
        marked_by: &[("class", Some("TenDI"))],
        marks: &[("class", "TenDI", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[name("app_id", "websiteKey"), name("captcha_script", "metadata.captchaUrl")],
        ..PLAIN
    },
    TaskRow {
        kind: "tencent",
        types: ("TencentTask", "TencentTaskProxyless"),
        names: &[name("app_id", "appId"), name("captcha_script", "captchaScript")],
        ..PLAIN
    },
    TaskRow {
        kind: "atb_captcha",
        types: ("AtbCaptchaTask", "AtbCaptchaTaskProxyless"),
        names: &[name("app_id", "appId"), name("api_server", "apiServer")],
        ..PLAIN
    },
    TaskRow {
        kind: "datadome",
        types: ("CustomTask", "CustomTask"),
        marked_by: &[("class", Some("DataDome"))],
        marks: &[("class", "DataDome", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[
            name("captcha_url", "metadata.captchaUrl"),
            name("captcha_url", "captchaUrl"),
            name("htmlPageBase64", "metadata.htmlPageBase64"),
            name("datadome_cookie", "metadata.datadomeCookie"),
            name("datadomeVersion", "metadata.datadomeVersion"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "datadome",
        types: ("DataDomeSliderTask", "DataDomeSliderTask"),
        at_cap_solver: Some(("DatadomeSliderTask", "DatadomeSliderTask")),
        names: &[name("captcha_url", "captchaUrl")],
        ..PLAIN
    },
    TaskRow {
        kind: "imperva",
        types: ("CustomTask", "CustomTask"),
        marked_by: &[("class", Some("Imperva"))],
        marks: &[("class", "Imperva", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[
            name("incapsulaScriptUrl", "metadata.incapsulaScriptUrl"),
            name("incapsulaCookies", "metadata.incapsulaCookies"),
            name("incapsulaCookies", "metadata.incapsulaCookie"),
            name("reese84UrlEndpoint", "metadata.reese84UrlEndpoint"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "imperva",
        types: ("IncapsulaTask", "IncapsulaTask"),
        at_cap_solver: Some(("AntiImpervaTask", "AntiImpervaTaskProxyLess")),
        also: &["impervatask"],
        names: &[
            name("incapsulaScriptUrl", "incapsulaScriptUrl"),
            name("incapsulaCookies", "incapsulaCookies"),
            name("reese84UrlEndpoint", "reese84UrlEndpoint"),
            name("reeseScriptUrl", "reeseScriptUrl"),
            name("scriptURL", "scriptURL"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "tspd",
        types: ("CustomTask", "CustomTask"),
        marked_by: &[("class", Some("tspd"))],
        marks: &[("class", "tspd", FieldShape::Text)],
        only: &[JsonDialect::CapMonster],
        names: &[
            name("tspd_cookie", "metadata.tspdCookie"),
            name("html_page_base64", "metadata.htmlPageBase64"),
        ],
        ..PLAIN
    },
    TaskRow {
        kind: "tspd",
        types: ("TspdTask", "TspdTask"),
        names: &[name("tspd_cookie", "tspdCookie"), name("html_page_base64", "htmlPageBase64")],
        ..PLAIN
    },
];
