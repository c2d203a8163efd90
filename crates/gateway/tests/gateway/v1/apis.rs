//! One placement on every API: classic, JSON in its four dialects, and our own.

use super::fixture::{ANNA, Fixture};
use super::talk::{Answered, Ask};
use serde_json::{Value, json};

pub(crate) const PAGE: &str = "https://shop.example.com/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Classic,
    /// The JSON protocol in the dialect of this path.
    Json(&'static str),
    V1,
}

pub(crate) const APIS: [Api; 6] = [
    Api::Classic,
    Api::Json("2captcha"),
    Api::Json("anticaptcha"),
    Api::Json("capsolver"),
    Api::Json("capmonster"),
    Api::V1,
];

/// An order for a token of one site key, with what its caller sets about the job.
#[derive(Clone, Debug)]
pub(crate) struct Placing {
    pub(crate) sitekey: String,
    pub(crate) tenant: &'static str,
    pub(crate) header: Option<String>,
    pub(crate) fields: Vec<(&'static str, Value)>,
}

impl Placing {
    pub(crate) fn of(sitekey: &str) -> Self {
        Self { sitekey: sitekey.to_owned(), tenant: ANNA, header: None, fields: Vec::new() }
    }

    /// Sets this idempotency key in the header.
    pub(crate) fn keyed(mut self, key: &str) -> Self {
        self.header = Some(key.to_owned());
        self
    }

    pub(crate) fn field(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    pub(crate) fn by(mut self, tenant: &'static str) -> Self {
        self.tenant = tenant;
        self
    }

    fn body(&self, api: Api) -> Value {
        let Self { sitekey, tenant, .. } = self;
        let mut body = match api {
            Api::Classic => json!({ "key": tenant, "json": 1, "method": "turnstile", "sitekey": sitekey,
                "pageurl": PAGE }),
            Api::Json(_) => json!({ "clientKey": tenant, "task": { "type": "TurnstileTaskProxyless",
                "websiteKey": sitekey, "websiteURL": PAGE } }),
            Api::V1 => json!({ "kind": "turnstile", "params": { "sitekey": sitekey, "pageurl": PAGE } }),
        };
        for (name, value) in &self.fields {
            body[*name] = value.clone();
        }
        body
    }
}

impl Api {
    pub(crate) async fn place(self, fixture: &Fixture, placing: &Placing) -> Answered {
        fixture.ask(self.ask(placing)).await
    }

    /// Places the order with this JSON number wherever it has the text `NUMBER`.
    pub(crate) async fn place_number(self, fixture: &Fixture, placing: &Placing, number: &str) -> Answered {
        let body = placing.body(self).to_string().replace("\"NUMBER\"", number);
        fixture.ask(self.ask(placing).body(&body)).await
    }

    pub(crate) fn ask(self, placing: &Placing) -> Ask {
        let path = match self {
            Self::Classic => "/in.php".to_owned(),
            Self::Json(dialect) => format!("/{dialect}/createTask"),
            Self::V1 => "/v1/orders".to_owned(),
        };
        let mut ask = Ask::post(path, &placing.body(self));
        if self == Self::V1 {
            ask = ask.key(placing.tenant);
        }
        if let Some(key) = &placing.header {
            ask = ask.header("Idempotency-Key", key);
        }
        ask
    }

    /// The id of an accepted order.
    #[track_caller]
    pub(crate) fn id(self, answered: &Answered) -> Value {
        let response = answered.json();
        let id = match self {
            Self::Classic => &response["request"],
            Self::Json(_) => &response["taskId"],
            Self::V1 => &response["id"],
        };
        assert!(!id.is_null() && !id.to_string().contains("ERROR"), "{self:?}: {response}");
        id.clone()
    }

    /// The code and the reason of a refusal.
    #[track_caller]
    pub(crate) fn refusal(self, answered: &Answered) -> (String, String) {
        let response = answered.json();
        let (code, reason) = match self {
            Self::Classic => (&response["request"], &response["error_text"]),
            Self::Json(_) => (&response["errorCode"], &response["errorDescription"]),
            Self::V1 => (&response["code"], &response["detail"]),
        };
        let text =
            |value: &Value| value.as_str().unwrap_or_else(|| panic!("{self:?}: {response}")).to_owned();
        (text(code), text(reason))
    }

    /// The response to a caller that polls this id.
    pub(crate) async fn read(self, fixture: &Fixture, tenant: &str, id: &Value) -> Answered {
        let plain = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let ask = match self {
            Self::Classic => Ask::get(format!("/res.php?key={tenant}&action=get&json=1&id={plain}")),
            Self::Json(dialect) => {
                Ask::post(format!("/{dialect}/getTaskResult"), &json!({ "clientKey": tenant, "taskId": id }))
            }
            Self::V1 => Ask::get(format!("/v1/orders/{plain}")).key(tenant),
        };
        fixture.ask(ask).await
    }

    /// The token of this id, or `None` while the order is pending.
    pub(crate) async fn look(self, fixture: &Fixture, tenant: &str, id: &Value) -> Option<String> {
        let response = self.read(fixture, tenant, id).await.json();
        let token = match self {
            Self::Classic => Some(response["request"].clone()).filter(|token| token != "CAPCHA_NOT_READY"),
            Self::Json(_) => {
                (response["status"] != "processing").then(|| response["solution"]["token"].clone())
            }
            Self::V1 => (response["status"] != "pending").then(|| response["answer"]["text"].clone()),
        };
        token.map(|token| token.as_str().unwrap_or_else(|| panic!("{self:?} {id}: {token}")).to_owned())
    }

    /// Waits for the token of this id.
    pub(crate) async fn token(self, fixture: &Fixture, tenant: &str, id: &Value) -> String {
        loop {
            if let Some(token) = self.look(fixture, tenant, id).await {
                return token;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The code and the reason that a caller gets for this id, on a node at this address.
async fn read_refused(api: Api, to: std::net::SocketAddr, id: &Value) -> (String, String) {
    let plain = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let ask = match api {
        Api::Classic => Ask::get(format!("/res.php?key={ANNA}&action=get&json=1&id={plain}")),
        Api::Json(dialect) => {
            Ask::post(format!("/{dialect}/getTaskResult"), &json!({ "clientKey": ANNA, "taskId": id }))
        }
        Api::V1 => Ask::get(format!("/v1/orders/{plain}")).key(ANNA),
    };
    api.refusal(&ask.of(to).await)
}

#[tokio::test]
async fn a_damaged_record_that_is_read_by_its_id_is_not_unknown_on_any_api() {
    let fixture = Fixture::new().await;
    // One that has never heard of the id finds the record by it.
    let (stranger, _) = fixture.neighbour(2, quittance_admin::AdminSettings::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = listener.local_addr().unwrap();
    tokio::spawn(stranger.serve(listener, None));
    for api in APIS {
        let placing = Placing::of(&format!("damaged-{api:?}"))
            .keyed(&format!("job-{}", APIS.iter().position(|other| *other == api).unwrap()));
        let id = api.id(&api.place(&fixture, &placing).await);
        // The same job, whose record has the same key.
        fixture.break_record(Api::V1.place(&fixture, &placing).await.json()["key"].as_str().unwrap());
        let expected = if api == Api::V1 { "needs_a_person" } else { "ERROR_RECORD_DAMAGED" };
        for node in [fixture.address, elsewhere] {
            let (code, reason) = read_refused(api, node, &id).await;
            assert_eq!(code, expected, "{api:?}: {reason}");
            assert!(reason.contains("cannot be read") || reason.contains("damaged"), "{api:?}: {reason}");
        }
    }
}
