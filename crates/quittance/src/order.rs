//! Orders as types: one for each of the common kinds, with its fields as methods, and [`Order`] for all other kinds.
//! A typed order is an [`Order`] whose names cannot be misspelt.

use quittance_lifecycle::{Draft, Priority, Reuse, Value};
use std::time::Duration;

/// The tenant of orders that name none.
pub const DEFAULT_TENANT: &str = "default";

/// An order as a caller places it: a kind, its parameters, and the caller's conditions.
///
/// Parameters have the names of the classic protocol; `quittance kinds NAME` lists them.
///
/// ```
/// use quittance::Order;
///
/// let order = Order::of("mt_captcha")
///     .with("sitekey", "MTPublic-1")
///     .with("pageurl", "https://example.com/login")
///     .idempotency_key("login-4711");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub(crate) kind: String,
    pub(crate) draft: Draft,
}

impl Order {
    /// An order of any kind, known or not.
    #[must_use]
    pub fn of(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), draft: Draft::new(DEFAULT_TENANT) }
    }

    /// Sets a parameter: text, or the bytes of a file.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.draft = self.draft.with(name, value);
        self
    }

    /// Sets the idempotency key. Placements with one key are one order and get one answer, as long as its record
    /// exists. Another key is another order. Without a key, [`shared`](Self::shared) or
    /// [`exclusive`](Self::exclusive) decides.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.draft.idempotency_key = Some(key.into());
        self
    }

    /// Makes this placement an order of its own, whose answer goes to no other placement. This is the default of
    /// kinds with single-use answers.
    #[must_use]
    pub fn exclusive(mut self) -> Self {
        self.draft.reuse = Some(Reuse::Exclusive);
        self
    }

    /// Lets equal placements share one order: they join it, and get its answer while it is good. This is the default
    /// of kinds with reusable answers.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.draft.reuse = Some(Reuse::Shared);
        self
    }

    /// Sets how much life the answer must have when it is handed out. Orders with different values are different
    /// orders.
    #[must_use]
    pub fn min_life(mut self, span: Duration) -> Self {
        self.draft.min_life = Some(span);
        self
    }

    /// Accepts no answer from stock: one is bought for this order.
    #[must_use]
    pub fn no_stock(mut self) -> Self {
        self.draft.no_stock = true;
        self
    }

    /// Sets how urgent the order is among the orders of its tenant. It is not part of the order's identity: a placement
    /// that joins and is more urgent makes the order more urgent.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.draft.priority = Some(priority);
        self
    }

    /// Sets how long the order may take.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.draft.timeout = Some(span);
        self
    }

    /// Sets how many attempts may follow the first one; zero means one attempt only. A number above the operator's
    /// limit has no effect.
    #[must_use]
    pub fn max_retries(mut self, count: u8) -> Self {
        self.draft.retry.max_retries = Some(count);
        self
    }

    /// Sets the first and the longest pause between two attempts. A pause shorter than the operator's has no effect.
    #[must_use]
    pub fn retry_pauses(mut self, first: Duration, longest: Duration) -> Self {
        (self.draft.retry.base, self.draft.retry.cap) = (Some(first), Some(longest));
        self
    }

    /// Sets the tenant that places the order.
    #[must_use]
    pub fn tenant(mut self, name: impl Into<String>) -> Self {
        self.draft.tenant = name.into();
        self
    }

    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// All that was set so far.
    #[must_use]
    pub const fn draft(&self) -> &Draft {
        &self.draft
    }
}

macro_rules! typed {
    ($(
        $(#[$doc:meta])*
        $name:ident = $kind:literal ( $($need:ident => $need_param:literal : $need_type:ty),* )
        { $($(#[$field_doc:meta])* $field:ident => $param:literal : $type:ty),* $(,)? }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(Order);

        impl $name {
            #[must_use]
            pub fn new($($need: $need_type),*) -> Self {
                Self(Order::of($kind)$(.with($need_param, $need))*)
            }

            $($(#[$field_doc])*
            #[must_use]
            pub fn $field(self, value: $type) -> Self {
                Self(self.0.with($param, value))
            })*

            /// Sets a parameter that has no method of its own: see [`Order::with`].
            #[must_use]
            pub fn with(self, name: &str, value: impl Into<Value>) -> Self {
                Self(self.0.with(name, value))
            }

            /// Sets the idempotency key: see [`Order::idempotency_key`].
            #[must_use]
            pub fn idempotency_key(self, key: impl Into<String>) -> Self {
                Self(self.0.idempotency_key(key))
            }

            /// Lets equal placements share one order: see [`Order::shared`].
            #[must_use]
            pub fn shared(self) -> Self {
                Self(self.0.shared())
            }

            /// Makes this placement an order of its own: see [`Order::exclusive`].
            #[must_use]
            pub fn exclusive(self) -> Self {
                Self(self.0.exclusive())
            }

            /// Sets the least life of the answer: see [`Order::min_life`].
            #[must_use]
            pub fn min_life(self, span: Duration) -> Self {
                Self(self.0.min_life(span))
            }

            /// Accepts no answer from stock: see [`Order::no_stock`].
            #[must_use]
            pub fn no_stock(self) -> Self {
                Self(self.0.no_stock())
            }

            /// Sets how urgent the order is: see [`Order::priority`].
            #[must_use]
            pub fn priority(self, priority: Priority) -> Self {
                Self(self.0.priority(priority))
            }

            /// Sets how long the order may take: see [`Order::timeout`].
            #[must_use]
            pub fn timeout(self, span: Duration) -> Self {
                Self(self.0.timeout(span))
            }

            /// Sets how many attempts may follow the first one: see [`Order::max_retries`].
            #[must_use]
            pub fn max_retries(self, count: u8) -> Self {
                Self(self.0.max_retries(count))
            }

            /// Sets the pauses between two attempts: see [`Order::retry_pauses`].
            #[must_use]
            pub fn retry_pauses(self, first: Duration, longest: Duration) -> Self {
                Self(self.0.retry_pauses(first, longest))
            }

            /// Sets the tenant: see [`Order::tenant`].
            #[must_use]
            pub fn tenant(self, name: impl Into<String>) -> Self {
                Self(self.0.tenant(name))
            }
        }

        impl From<$name> for Order {
            fn from(typed: $name) -> Self {
                typed.0
            }
        }
    )*};
}

typed! {
    /// The text in an image.
    ///
    /// ```
    /// use quittance::Image;
    ///
    /// let picture = vec![0xff; 2000];
    /// let order = Image::new(picture).case_sensitive("1").min_length("4");
    /// ```
    Image = "image" (picture => "body": Vec<u8>) {
        /// Instructions for the worker.
        instructions => "textinstructions": &str,
        case_sensitive => "regsense": &str,
        numeric => "numeric": &str,
        /// `1` if the image shows a sum to be computed.
        calculate => "calc": &str,
        phrase => "phrase": &str,
        min_length => "min_len": &str,
        max_length => "max_len": &str,
        language => "lang": &str,
    }

    /// A question in words.
    ///
    /// ```
    /// let order = quittance::Text::new("If tomorrow is Saturday, what day is today?").language("en");
    /// ```
    Text = "text" (question => "textcaptcha": &str) {
        language => "lang": &str,
    }

    /// A reCAPTCHA v2 token, also invisible or enterprise.
    ///
    /// ```
    /// let order = quittance::RecaptchaV2::new("6Le-site-key", "https://example.com/login").invisible("1");
    /// ```
    RecaptchaV2 = "recaptcha_v2" (site_key => "googlekey": &str, page => "pageurl": &str) {
        invisible => "invisible": &str,
        enterprise => "enterprise": &str,
        data_s => "data-s": &str,
        action => "action": &str,
        user_agent => "userAgent": &str,
        cookies => "cookies": &str,
        proxy => "proxy": &str,
        proxy_type => "proxytype": &str,
    }

    /// A reCAPTCHA v3 token.
    ///
    /// ```
    /// let order = quittance::RecaptchaV3::new("6Le-site-key", "https://example.com/login").action("login").min_score("0.7");
    /// ```
    RecaptchaV3 = "recaptcha_v3" (site_key => "googlekey": &str, page => "pageurl": &str) {
        action => "action": &str,
        min_score => "min_score": &str,
        enterprise => "enterprise": &str,
    }

    /// An hCaptcha token.
    ///
    /// ```
    /// let order = quittance::HCaptcha::new("site-key", "https://example.com/login");
    /// ```
    HCaptcha = "hcaptcha" (site_key => "sitekey": &str, page => "pageurl": &str) {
        invisible => "invisible": &str,
        /// The value that the page calls `rqdata`.
        data => "data": &str,
        user_agent => "userAgent": &str,
        proxy => "proxy": &str,
        proxy_type => "proxytype": &str,
    }

    /// A Turnstile token.
    ///
    /// ```
    /// let order = quittance::Turnstile::new("0x4AAA", "https://example.com/login").action("login");
    /// ```
    Turnstile = "turnstile" (site_key => "sitekey": &str, page => "pageurl": &str) {
        action => "action": &str,
        /// The value that the page calls `cData`.
        data => "data": &str,
        /// The value that the page calls `chlPageData`.
        page_data => "pagedata": &str,
        user_agent => "userAgent": &str,
        proxy => "proxy": &str,
        proxy_type => "proxytype": &str,
    }

    /// A GeeTest v3 answer. A challenge is valid for one load of the page.
    ///
    /// ```
    /// let order = quittance::Geetest::new("gt", "challenge", "https://example.com/login");
    /// ```
    Geetest = "geetest" (gt => "gt": &str, challenge => "challenge": &str, page => "pageurl": &str) {
        api_server => "api_server": &str,
        user_agent => "userAgent": &str,
    }

    /// A GeeTest v4 answer.
    ///
    /// ```
    /// let order = quittance::GeetestV4::new("captcha-id", "https://example.com/login");
    /// ```
    GeetestV4 = "geetest_v4" (captcha_id => "captcha_id": &str, page => "pageurl": &str) {
        user_agent => "userAgent": &str,
    }

    /// A FunCaptcha token.
    ///
    /// ```
    /// let order = quittance::FunCaptcha::new("public-key", "https://example.com/login");
    /// ```
    FunCaptcha = "funcaptcha" (public_key => "publickey": &str, page => "pageurl": &str) {
        service_url => "surl": &str,
        blob => "data[blob]": &str,
        user_agent => "userAgent": &str,
        proxy => "proxy": &str,
        proxy_type => "proxytype": &str,
    }

    /// A clearance cookie, valid only for the proxy and browser of the solve.
    ///
    /// ```
    /// let order = quittance::CloudflareChallenge::new("https://example.com/", "user:pass@192.0.2.1:8080", "HTTP");
    /// ```
    CloudflareChallenge = "cloudflare_challenge"
        (page => "pageurl": &str, proxy => "proxy": &str, proxy_type => "proxytype": &str) {
        user_agent => "userAgent": &str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A typed order with names that the catalogue does not know would be refused, or identified wrongly.
    #[test]
    fn every_typed_order_says_what_its_kind_understands() {
        let page = "https://example.com/";
        let orders: [Order; 10] = [
            Image::new(vec![1; 200])
                .instructions("x")
                .case_sensitive("1")
                .numeric("1")
                .calculate("1")
                .phrase("1")
                .min_length("1")
                .max_length("2")
                .language("en")
                .into(),
            Text::new("?").language("en").into(),
            RecaptchaV2::new("k", page)
                .invisible("1")
                .enterprise("1")
                .data_s("s")
                .action("a")
                .user_agent("u")
                .cookies("c")
                .into(),
            RecaptchaV3::new("k", page).action("a").min_score("0.3").enterprise("1").into(),
            HCaptcha::new("k", page).invisible("1").data("d").user_agent("u").into(),
            Turnstile::new("k", page).action("a").data("d").page_data("p").user_agent("u").into(),
            Geetest::new("g", "c", page).api_server("s").user_agent("u").into(),
            GeetestV4::new("c", page).user_agent("u").into(),
            FunCaptcha::new("k", page).service_url("s").blob("b").user_agent("u").into(),
            CloudflareChallenge::new(page, "192.0.2.1:80", "HTTP").user_agent("u").into(),
        ];
        for order in orders {
            let kind = quittance_protocol::kinds::kind(order.kind()).expect("a kind of the catalogue");
            for name in order.draft.params.keys() {
                assert!(kind.fields.iter().any(|field| field.name == name), "{}: {name}", order.kind());
            }
            for field in kind.fields.iter().filter(|field| field.required) {
                assert!(order.draft.params.contains_key(field.name), "{}: {}", order.kind(), field.name);
            }
        }
    }
}
