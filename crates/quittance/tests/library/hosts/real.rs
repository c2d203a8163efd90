//! Realistic orders: the page is the customer's, and beside it are addresses of the captcha's vendor, which no
//! operator lists. Every API accepts them, and they arrive unchanged. For a page that is not listed they are refused.

use crate::hosts::holes::Hole;
use crate::hosts::world::{HostsCaller, HostsProvider, HostsWorld, KEY, form};
use quittance_mock_provider::{Ledger, LedgerValue, MockDialect};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const LISTED: &str = "https://shop.example.org/checkout?step=2";
const UNLISTED: &str = "https://shop.example.net/checkout?step=2";
const AGENT: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/144.0.0.0 Safari/537.36";
const PROXY: &str = "user:secret@203.0.113.7:3128";

/// A parameter: our name, the name in a task, and the value.
type Param = (&'static str, &'static str, &'static str);

/// An order with addresses as in the providers' and vendors' documentation. Its ids are made up.
struct RealOrder {
    kind: &'static str,
    task: &'static str,
    params: &'static [Param],
    with_proxy: bool,
}

const ORDERS: &[RealOrder] = &[
    RealOrder {
        kind: "datadome",
        task: "DataDomeSliderTask",
        params: &[
            (
                "captcha_url",
                "captchaUrl",
                "https://geo.captcha-delivery.com/captcha/?initialCid=AHrlqAAAAAMA1QGvUmJwyYoAwpyjNg%3D%3D&hash=789361B674144528D0B7EE76B35826&cid=6QAEcL8coBYTi9tYLmjC&t=fe&referer=https%3A%2F%2Fshop.example.org%2Fcheckout&s=17434&e=2f1c",
            ),
            ("userAgent", "userAgent", AGENT),
        ],
        with_proxy: true,
    },
    RealOrder {
        kind: "funcaptcha",
        task: "FunCaptchaTaskProxyless",
        params: &[
            ("publickey", "websitePublicKey", "69A21A01-CC7B-B9C6-0F9A-E7FA06677FFC"),
            ("surl", "funcaptchaApiJSSubdomain", "https://client-api.arkoselabs.com"),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "funcaptcha",
        task: "FunCaptchaTaskProxyless",
        params: &[
            ("publickey", "websitePublicKey", "2CB16598-CB82-4CF7-B332-5990DB66F3AB"),
            ("surl", "funcaptchaApiJSSubdomain", "https://shop-api.arkoselabs.com"),
            ("userAgent", "userAgent", AGENT),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "amazon_waf",
        task: "AmazonTaskProxyless",
        params: &[
            ("sitekey", "websiteKey", "AQIDAHjcYu/GjX+QlghicBgQ/7bFaQZ+m5FKCMDnO+vTbNg96AEh"),
            ("iv", "iv", "CgAHbCe2GgAAAAAj"),
            (
                "context",
                "context",
                "9BUgmlm48F92WUoqv97a49ZuEJJ50TCk9MVr3C7WMtQ0X6flVbufM4n8mjFLmbLVAPgaQ1Jydeaja94iAS49ljb=",
            ),
            (
                "challenge_script",
                "challengeScript",
                "https://41bcdd4fb3cb.610cd090.us-east-1.token.awswaf.com/41bcdd4fb3cb/0d21de737ccb/cd77baa6c832/challenge.js",
            ),
            (
                "captcha_script",
                "captchaScript",
                "https://41bcdd4fb3cb.610cd090.us-east-1.captcha.awswaf.com/41bcdd4fb3cb/0d21de737ccb/cd77baa6c832/captcha.js",
            ),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "amazon_waf",
        task: "AmazonTaskProxyless",
        params: &[
            ("sitekey", "websiteKey", "AQIDAHjcYu/GjX+QlghicBgQ/7bFaQZ+m5FKCMDnO+vTbNg96AEi"),
            ("iv", "iv", "CgAHbCe2GgAAAAAk"),
            ("context", "context", "qoJYgnKscdqwdqwdqwaormh/dYYK+Y="),
            (
                "jsapi_script",
                "jsapiScript",
                "https://164cb210e333.edge.captcha-sdk.awswaf.com/164cb210e333/jsapi.js",
            ),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "atb_captcha",
        task: "AtbCaptchaTaskProxyless",
        params: &[
            ("app_id", "appId", "af25e409b33d722a95e56a230ff8771c"),
            ("api_server", "apiServer", "https://cap.aisecurius.com"),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "captchafox",
        task: "CaptchaFoxTask",
        params: &[
            ("sitekey", "websiteKey", "sk_ILKWNruBBVKDOM7dZs59KHnDLEWiH"),
            ("api_server", "apiServer", "https://cdn.captchafox.com/"),
            ("userAgent", "userAgent", AGENT),
        ],
        with_proxy: true,
    },
    RealOrder {
        kind: "geetest",
        task: "GeeTestTaskProxyless",
        params: &[
            ("gt", "gt", "81388ea1fc187e0c335c0a8907ff2625"),
            ("challenge", "challenge", "12345678abc90123d45678ef90123a456b"),
            ("api_server", "geetestApiServerSubdomain", "api-na.geetest.com"),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "geetest",
        task: "GeeTestTaskProxyless",
        params: &[
            ("gt", "gt", "022397c99c9f646f6477822485f30404"),
            ("challenge", "challenge", "a66f31a53a404af8d1f271eec5138aa1"),
            ("api_server", "geetestApiServerSubdomain", "api.gsensebot.com"),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "friendly_captcha",
        task: "FriendlyCaptchaTaskProxyless",
        params: &[
            ("sitekey", "websiteKey", "FCMGEMUD2M567T8G"),
            ("version", "version", "v1"),
            (
                "module_script",
                "moduleScript",
                "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.module.min.js",
            ),
            (
                "nomodule_script",
                "nomoduleScript",
                "https://cdn.jsdelivr.net/npm/friendly-challenge@0.9.19/widget.min.js",
            ),
        ],
        with_proxy: false,
    },
    RealOrder {
        kind: "tspd",
        task: "TspdTask",
        params: &[
            (
                "tspd_cookie",
                "tspdCookie",
                "TS386a400d029=0826706b54ab2800e0; TS386a400d078=0826706b54ab2800.a/b",
            ),
            // A page that links to a help page elsewhere, and loads its scripts from its own host.
            (
                "html_page_base64",
                "htmlPageBase64",
                "PCFET0NUWVBFIGh0bWw+PGh0bWw+PGhlYWQ+PHNjcmlwdCBzcmM9Ii9UU1BELzA4MjYvYS5qcyI+PC9zY3JpcHQ+PC9oZWFkPjxib2R5PjxhIGhyZWY9Imh0dHBzOi8vaGVscC52ZW5kb3IuZXhhbXBsZS93aHkiPndoeTwvYT48L2JvZHk+PC9odG1sPg==",
            ),
            ("userAgent", "userAgent", AGENT),
        ],
        with_proxy: true,
    },
    RealOrder {
        kind: "imperva",
        task: "IncapsulaTask",
        params: &[
            (
                "incapsulaScriptUrl",
                "incapsulaScriptUrl",
                "_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3",
            ),
            ("incapsulaCookies", "incapsulaCookies", "incap_ses_1166_29=br7iX33ZNC; visid_incap_29=1R3D.a/b"),
            ("reese84UrlEndpoint", "reese84UrlEndpoint", "Built-with-the-For-hayre-?d=shop.example.org"),
            ("userAgent", "userAgent", AGENT),
        ],
        with_proxy: true,
    },
];

#[derive(Clone, Copy, Debug)]
enum HostsApi {
    Classic,
    Json,
    V1,
}

impl RealOrder {
    /// The fields of the order, under our names or those of a task.
    fn fields(&self, api: HostsApi, page: &str) -> Map<String, Value> {
        let is_ours = !matches!(api, HostsApi::Json);
        let pick = |ours: &'static str, theirs: &'static str| if is_ours { ours } else { theirs };
        let mut fields = Map::new();
        fields.insert(pick("pageurl", "websiteURL").into(), page.into());
        for (ours, theirs, value) in self.params {
            fields.insert(pick(ours, theirs).into(), (*value).into());
        }
        if self.with_proxy && is_ours {
            fields.insert("proxy".into(), PROXY.into());
            fields.insert("proxytype".into(), "HTTP".into());
        } else if self.with_proxy {
            let proxy = json!({
                "proxyType": "http", "proxyAddress": "203.0.113.7", "proxyPort": 3128,
                "proxyLogin": "user", "proxyPassword": "secret",
            });
            fields.extend(proxy.as_object().unwrap().clone());
        }
        fields
    }

    /// Places the order. Returns whether it was accepted, and the whole response.
    async fn place(&self, caller: &mut HostsCaller, api: HostsApi, page: &str) -> (bool, String) {
        let mut fields = self.fields(api, page);
        match api {
            HostsApi::Classic => {
                fields.insert("key".into(), KEY.into());
                fields.insert("method".into(), self.kind.into());
                let body = form(&fields).into_bytes();
                let (_, output) =
                    caller.call("POST", "/in.php", "application/x-www-form-urlencoded", &body).await;
                (output.starts_with("OK|"), output)
            }
            HostsApi::Json => {
                fields.insert("type".into(), self.task.into());
                let body = json!({ "clientKey": KEY, "task": fields }).to_string();
                let (_, output) =
                    caller.call("POST", "/2captcha/createTask", "application/json", body.as_bytes()).await;
                (output.contains("\"errorId\":0"), output)
            }
            HostsApi::V1 => {
                let body = json!({ "kind": self.kind, "params": fields }).to_string();
                let (status, output) =
                    caller.call("POST", "/v1/orders", "application/json", body.as_bytes()).await;
                (status < 300, output)
            }
        }
    }

    /// Whether the provider got this order for this page, with each parameter unchanged. (The mock provider records
    /// the classic names. JSON has a host where the classic protocol has its address.)
    fn arrived(&self, ledger: &Ledger, page: &str) -> bool {
        let bare = |text: &str| text.trim_start_matches("https://").to_owned();
        let has = |params: &BTreeMap<String, LedgerValue>, name: &str, value: &str| matches!(params.get(name), Some(LedgerValue::Text(text)) if bare(text) == bare(value));
        // It does not write down who may use the proxy.
        let passes = |params: &BTreeMap<String, LedgerValue>| {
            let place = PROXY.rsplit_once('@').map_or(PROXY, |(_, place)| place);
            matches!(params.get("proxy"), Some(LedgerValue::Text(text)) if text.ends_with(place))
        };
        ledger.tasks.iter().any(|task| {
            task.method == self.kind
                && has(&task.params, "pageurl", page)
                && self.params.iter().all(|(ours, _, value)| has(&task.params, ours, value))
                && (!self.with_proxy || passes(&task.params))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_orders_are_taken_for_listed_pages_and_arrive_as_ordered() {
    for provider in [
        HostsProvider::Classic(quittance::ClassicDialect::TwoCaptcha),
        HostsProvider::Json(MockDialect::TwoCaptcha),
    ] {
        let world = HostsWorld::start(provider, Hole::None).await;
        let mut caller = HostsCaller::new(world.gateway);
        for (number, order) in ORDERS.iter().enumerate() {
            for api in [HostsApi::Classic, HostsApi::Json, HostsApi::V1] {
                let unlisted = format!("{UNLISTED}&n={number}-{api:?}");
                let (accepted, output) = order.place(&mut caller, api, &unlisted).await;
                assert!(!accepted, "{provider:?} {api:?} {}: {output}", order.kind);
                let page = format!("{LISTED}&n={number}-{api:?}");
                let (accepted, output) = order.place(&mut caller, api, &page).await;
                assert!(accepted, "{provider:?} {api:?} {}: {output}", order.kind);
                let has_arrived =
                    world.mock.until(Duration::from_secs(20), |ledger| order.arrived(ledger, &page)).await;
                let ledger = world.mock.ledger();
                assert!(has_arrived, "{provider:?} {api:?} {}: {:#?}", order.kind, ledger.tasks.last());
                let refused = ledger.tasks.iter().any(|task| {
                    matches!(task.params.get("pageurl"), Some(LedgerValue::Text(text)) if text.contains(".example.net"))
                });
                assert!(!refused, "{provider:?} {api:?} {}", order.kind);
            }
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_not_the_vendors_is_refused_on_every_api() {
    let world = HostsWorld::start(HostsProvider::Json(MockDialect::TwoCaptcha), Hole::None).await;
    let mut caller = HostsCaller::new(world.gateway);
    let elsewhere = RealOrder {
        kind: "atb_captcha",
        task: "AtbCaptchaTaskProxyless",
        params: &[
            ("app_id", "appId", "af25e409b33d722a95e56a230ff8771c"),
            ("api_server", "apiServer", "https://cap.aisecurius.com.example.net"),
        ],
        with_proxy: false,
    };
    for api in [HostsApi::Classic, HostsApi::Json, HostsApi::V1] {
        let (accepted, output) = elsewhere.place(&mut caller, api, LISTED).await;
        assert!(!accepted, "{api:?}: {output}");
    }
    assert_eq!(world.mock.ledger().tasks.len(), 0);
    world.stop().await;
}

/// A FunCaptcha with this value under the two names of its blob.
const fn with_blob(params: &'static [Param]) -> RealOrder {
    RealOrder { kind: "funcaptcha", task: "FunCaptchaTaskProxyless", params, with_proxy: false }
}

const PUBLIC_KEY: Param = ("publickey", "websitePublicKey", "69A21A01-CC7B-B9C6-0F9A-E7FA06677FFC");

/// The blob of a FunCaptcha has two base64 parts with a dot between them. In one of ten, the part after the dot looks
/// like a domain by chance.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_that_looks_like_a_host_by_chance_is_taken() {
    let order = with_blob(&[PUBLIC_KEY, ("data[blob]", "", "dyXvXANMbHj1iDyz.QjJtSqRn+uoY1V/bdgbrG7p/mKi=")]);
    let task =
        with_blob(&[PUBLIC_KEY, ("", "data", r#"{"blob":"dyXvXANMbHj1iDyz.QjJtSqRn+uoY1V/bdgbrG7p/mKi="}"#)]);
    let world =
        HostsWorld::start(HostsProvider::Classic(quittance::ClassicDialect::TwoCaptcha), Hole::None).await;
    let mut caller = HostsCaller::new(world.gateway);
    for (api, placed) in [(HostsApi::Classic, &order), (HostsApi::V1, &order), (HostsApi::Json, &task)] {
        let page = format!("{LISTED}&n={api:?}");
        let (accepted, output) = placed.place(&mut caller, api, &page).await;
        assert!(accepted, "{api:?}: {output}");
        let has_arrived =
            world.mock.until(Duration::from_secs(20), |ledger| order.arrived(ledger, &page)).await;
        assert!(has_arrived, "{api:?}: {:#?}", world.mock.ledger().tasks.last());
    }
    world.stop().await;
}
