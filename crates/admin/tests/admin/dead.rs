//! Dead letters: find, read, replay, drop, export and import them, one by one and in bulk.

use super::counting_store::BROKEN;
use super::fixture::{ADMIN, ANNA, BERT, Fixture, path_of};
use super::provider::COST;
use super::talk::{Answered, Ask};
use serde_json::{Value, json};
use std::time::Duration;

/// Hostile text: markup, a terminal escape, a line break, and a change of writing direction.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{1b}[2J\r\n\u{202e}=1+1";

async fn get(fixture: &Fixture, path: &str) -> Value {
    fixture.ask(Ask::get(path).key(ADMIN)).await.order(200)
}

async fn post(fixture: &Fixture, path: &str, body: &Value) -> Answered {
    fixture.ask(Ask::post(path, body).key(ADMIN)).await
}

/// Places an order of this caller that becomes a dead letter. Returns its key.
async fn dies(fixture: &Fixture, caller: &str, sitekey: &str, page: &str, more: Value) -> String {
    let mut params = json!({ "sitekey": sitekey, "pageurl": page });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let ask = Ask::post("/v1/orders", &json!({ "kind": "turnstile", "reuse": "shared", "params": params }))
        .key(caller);
    let placed = fixture.ask(ask).await.order(202);
    loop {
        let order = fixture.ask(Ask::get(path_of(&placed)).key(caller)).await.order(200);
        if order["status"] == "dead" {
            return order["key"].as_str().unwrap().to_owned();
        }
        fixture.pass(Duration::from_millis(50));
        tokio::task::yield_now().await;
    }
}

fn keys(listed: &Value) -> Vec<String> {
    let orders = listed["orders"].as_array().unwrap();
    orders.iter().map(|order| order["key"].as_str().unwrap().to_owned()).collect()
}

fn sorted(keys: &[&String]) -> Vec<String> {
    let mut keys: Vec<String> = keys.iter().map(|key| (*key).clone()).collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn dead_letters_are_listed_by_what_a_person_looks_for() {
    let fixture = Fixture::new().await;
    let shop = dies(&fixture, ANNA, "die-1", "https://shop.example.com/a", json!({})).await;
    fixture.pass(Duration::from_secs(3600));
    let news = dies(&fixture, BERT, "die-2", "https://news.example.com/b", json!({})).await;
    let listed = get(&fixture, "/v1/admin/dead").await;
    assert_eq!(keys(&listed), sorted(&[&shop, &news]));
    let letter =
        listed["orders"].as_array().unwrap().iter().find(|letter| letter["key"] == shop.as_str()).unwrap();
    for (field, expected) in [
        ("tenant", json!("anna")),
        ("site", json!("shop.example.com")),
        ("page", json!("https://shop.example.com/a")),
        ("kind", json!("turnstile")),
        ("status", json!("dead")),
        ("cause", json!("retries_spent")),
        ("on_replay", json!("pays")),
        ("spent_micros", json!(0)),
        ("note", Value::Null),
    ] {
        assert_eq!(letter[field], expected, "{field}: {letter}");
    }
    assert!(letter["why"].as_str().unwrap().contains("ERROR_CAPTCHA_UNSOLVABLE"), "{letter}");
    let between = letter["dead_at"].as_str().unwrap();
    for (query, expected) in [
        ("cause=retries_spent".to_owned(), vec![&shop, &news]),
        ("cause=in_doubt".into(), vec![]),
        ("cause=unreadable".into(), vec![]),
        ("tenant=bert".into(), vec![&news]),
        ("site=SHOP.example.com.".into(), vec![&shop]),
        ("site=example.com".into(), vec![]),
        ("kind=image".into(), vec![]),
        ("kind=turnstile&tenant=anna".into(), vec![&shop]),
        (format!("since={between}"), vec![&shop, &news]),
        (format!("before={between}"), vec![]),
        ("before=2101-01-01".into(), vec![&shop, &news]),
        ("since=2101-01-01".into(), vec![]),
    ] {
        let listed = get(&fixture, &format!("/v1/admin/dead?{query}")).await;
        assert_eq!(keys(&listed), sorted(&expected), "{query}");
    }
    let first = get(&fixture, "/v1/admin/dead?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = get(&fixture, &format!("/v1/admin/dead?limit=1&after={next}")).await;
    assert_eq!([keys(&first), keys(&second)].concat(), sorted(&[&shop, &news]));
    for odd in ["cause=bad", "before=soon", "since=2026-13-01", "limit=0", "limit=201", "after=x", "what=1"] {
        fixture.ask(Ask::get(format!("/v1/admin/dead?{odd}")).key(ADMIN)).await.must_be(422, "bad_params");
    }
}

#[tokio::test]
async fn a_story_tells_everything_but_secrets_and_takes_a_note() {
    let fixture = Fixture::new().await;
    let secrets = json!({
        "proxy": "ada:hunter2@10.0.0.1:80", "cookies": "sid=hunter2", "apiKey": "hunter2", "data": HOSTILE,
    });
    let key = dies(&fixture, ANNA, "die-1", "https://ada:hunter2@shop.example.com/", secrets).await;
    let path = format!("/v1/admin/orders/{key}");
    let reply = fixture.ask(Ask::get(&path).key(ADMIN)).await;
    assert!(!reply.text.contains("hunter2"), "{}", reply.text);
    let timeline = reply.order(200);
    assert_eq!(timeline["params"]["data"], HOSTILE, "it is text, and nothing else");
    assert_eq!(timeline["params"]["proxy"], "***@10.0.0.1:80");
    assert_eq!(
        (&timeline["tenant"], &timeline["site"], &timeline["life"]),
        (&json!("anna"), &json!("shop.example.com"), &json!(1))
    );
    assert_eq!(timeline["dead_letter"]["cause"], "retries_spent");
    assert_eq!(
        (&timeline["on_replay"]["name"], &timeline["on_replay"]["may_pay"]),
        (&json!("pays"), &json!(true))
    );
    let attempts = timeline["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3);
    assert_eq!((&attempts[0]["number"], &attempts[0]["progress"]), (&json!(1), &json!("faulted")));
    let events = timeline["timeline"].as_array().unwrap();
    for attempt in attempts {
        let is_taken =
            events.iter().any(|event| event["name"] == "accepted" && event["attempt"] == attempt["number"]);
        assert_eq!(attempt["task"].is_string(), is_taken, "what was taken has a task, whatever came of it");
    }
    let names: Vec<&str> = timeline["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!((names[0], *names.last().unwrap()), ("placed", "moved_to_dead_letters"), "{names:?}");
    let fault =
        timeline["timeline"].as_array().unwrap().iter().find(|event| event["name"] == "faulted").unwrap();
    assert_eq!(fault["fault"], json!({ "class": "unsolvable", "code": "ERROR_CAPTCHA_UNSOLVABLE" }));
    assert_eq!(fault["attempt"], 1);

    let noted = post(&fixture, &format!("{path}/note"), &json!({ "text": HOSTILE })).await.order(200);
    let last = noted["timeline"].as_array().unwrap().last().unwrap();
    assert_eq!(last["name"], "noted");
    assert!(!last["what"].as_str().unwrap().contains('\u{1b}'), "{last}");
    assert_eq!(get(&fixture, "/v1/admin/dead").await["orders"][0]["note"], HOSTILE);
    for odd in [
        json!({}),
        json!({ "text": " " }),
        json!({ "text": 1 }),
        json!({ "text": "x".repeat(1001) }),
        json!({ "text": "a", "b": 1 }),
    ] {
        post(&fixture, &format!("{path}/note"), &odd).await.must_be(422, "bad_params");
    }
    let unknown = "0".repeat(64);
    fixture
        .ask(Ask::get(format!("/v1/admin/orders/{unknown}")).key(ADMIN))
        .await
        .must_be(404, "unknown_order");
    post(&fixture, &format!("/v1/admin/orders/{unknown}/note"), &json!({ "text": "a" }))
        .await
        .must_be(404, "unknown_order");
}

#[tokio::test]
async fn letters_are_carried_from_one_store_to_another_once() {
    let (fixture, other) = (Fixture::new().await, Fixture::new().await);
    let whole = dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({ "data": HOSTILE })).await;
    let broken = dies(&fixture, BERT, "die-2", "https://news.example.com/", json!({})).await;
    fixture.break_record(&broken);
    let exported = Ask::get("/v1/admin/dead/export").key(ADMIN).to_its_end(fixture.address).await;
    assert_eq!((exported.status, exported.header("content-type")), (200, Some("application/x-ndjson")));
    let lines: Vec<Value> = exported.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let unread = lines.iter().find(|line| line["key"] == broken.as_str()).unwrap();
    assert_eq!(*unread, json!({ "key": broken, "cause": "unreadable", "why": BROKEN }));
    let read = lines.iter().find(|line| line["key"] == whole.as_str()).unwrap();
    assert_eq!((&read["tenant"], &read["site"]), (&json!("anna"), &json!("shop.example.com")));
    assert!(read["timeline"].as_array().unwrap().len() > 3);
    let some = Ask::get("/v1/admin/dead/export?tenant=bert").key(ADMIN).to_its_end(fixture.address).await;
    assert_eq!(some.text, "", "an unreadable record belongs to no tenant");

    let body = format!(
        "\u{feff}{}\n\nno JSON\n{{\"key\":\"x\"}}\n{}\n",
        exported.text,
        read.to_string().replace(&whole, &broken)
    );
    let import = || async {
        other.ask(Ask::new("POST", "/v1/admin/dead/import").key(ADMIN).body(&body)).await.order(200)
    };
    let body = import().await;
    assert_eq!(
        (&body["imported"], &body["there_already"], &body["refused_count"]),
        (&json!(1), &json!(0), &json!(4)),
        "{body}"
    );
    let why: Vec<(u64, &str)> = body["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["line"].as_u64().unwrap(), line["why"].as_str().unwrap()))
        .collect();
    assert!(why.contains(&(5, "this line is not from an export of dead letters")), "{why:?}");
    assert!(why.contains(&(7, "the `key` of this line differs from the key in its record")), "{why:?}");
    let again = import().await;
    assert_eq!((&again["imported"], &again["there_already"]), (&json!(0), &json!(1)));
    let path = format!("/v1/admin/orders/{whole}");
    assert_eq!(get(&other, &path).await, get(&fixture, &path).await, "it is the same, with its whole story");
    post(&other, &format!("/v1/admin/dead/{whole}/replay"), &json!({})).await.order(200);
}

#[tokio::test]
async fn an_export_that_breaks_off_says_so() {
    let fixture = Fixture::new().await;
    dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    fixture.store_is_away.store(true, std::sync::atomic::Ordering::Relaxed);
    let exported = Ask::get("/v1/admin/dead/export").key(ADMIN).to_its_end(fixture.address).await;
    let last: Value = serde_json::from_str(exported.text.lines().last().unwrap()).unwrap();
    assert!(last["error"].as_str().unwrap().contains("the export is not complete"));
}

/// Waits, while time passes, until the work has ended.
async fn ended(fixture: &Fixture, bulk: &Value) -> Value {
    loop {
        let now = get(fixture, &format!("/v1/admin/dead/bulk/{}", bulk["number"])).await;
        if !now["ended_at"].is_null() {
            return now;
        }
        fixture.pass(Duration::from_millis(200));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_great_many_are_rehearsed_and_then_done() {
    let fixture = Fixture::new().await;
    // The usage knows what an answer of this kind costs.
    fixture.place_keyed("solve-1", "k").await.order(200);
    for n in 0..3 {
        dies(&fixture, ANNA, &format!("die-{n}"), "https://shop.example.com/", json!({})).await;
    }
    dies(&fixture, BERT, "die-b", "https://news.example.com/", json!({})).await;
    fixture.pass(Duration::from_secs(1));
    let dry = json!({ "action": "replay", "tenant": "anna", "dry_run": true });
    let body = post(&fixture, "/v1/admin/dead/bulk", &dry).await.order(200);
    let cost = 3 * COST.0;
    let expected = json!({
        "dry_run": true, "currency": "USD", "dead_letters": 3, "would_pay": 3, "cost_micros": cost, "unpriced": 0, "may_pay_twice": 0,
        "not_allowed": 0, "spent_micros": 0, "spent_unpriced": 0, "by_cause": { "retries_spent": 3 }, "unreadable": 0,
    });
    assert_eq!(body, expected);
    let dropping = json!({ "action": "drop", "dry_run": true });
    let body = post(&fixture, "/v1/admin/dead/bulk", &dropping).await.order(200);
    assert_eq!(
        (&body["dead_letters"], &body["would_pay"], &body["cost_micros"]),
        (&json!(4), &json!(0), &json!(0))
    );
    assert_eq!(get(&fixture, "/v1/admin/dead/bulk").await, json!({ "bulks": [] }), "nothing was begun");

    let begun = post(
        &fixture,
        "/v1/admin/dead/bulk",
        &json!({ "action": "drop", "tenant": "bert", "per_second": 7 }),
    )
    .await;
    let begun = begun.order(202);
    assert_eq!(
        (&begun["action"], &begun["tenant"], &begun["per_second"]),
        (&json!("drop"), &json!("bert"), &json!(7))
    );
    let done = ended(&fixture, &begun).await;
    assert_eq!(
        (&done["done"], &done["skipped"], &done["was_stopped"]),
        (&json!(1), &json!(0), &json!(false))
    );
    assert_eq!(keys(&get(&fixture, "/v1/admin/dead").await).len(), 3);
    let begun = post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "replay" })).await.order(202);
    assert_eq!(ended(&fixture, &begun).await["done"], 3);
    let all = get(&fixture, "/v1/admin/dead/bulk").await;
    assert_eq!(all["bulks"].as_array().unwrap().len(), 2);
    // The outcome counts the replayed orders only.
    dies(&fixture, ANNA, "die-other", "https://shop.example.com/", json!({})).await;
    let path = format!("/v1/admin/dead/bulk/{}/outcome", begun["number"]);
    let outcome = loop {
        let body = get(&fixture, &format!("{path}?status=all")).await;
        if body["open"] == 0 {
            break body;
        }
        fixture.pass(Duration::from_millis(50));
        tokio::task::yield_now().await;
    };
    let expected = json!({ "open": 0, "held": 0, "working": 0, "answered": 0, "failed": 0, "dead": 3 });
    assert_eq!(outcome, expected);
    for n in 0..3 {
        assert!(fixture.provider.submits(&format!("die-{n}")) > 3, "it was tried again");
    }
    assert_eq!(get(&fixture, &path).await["dead"], 0, "without a word it is the open ones that are counted");
    fixture.ask(Ask::get(format!("{path}?status=odd")).key(ADMIN)).await.must_be(422, "bad_params");
    fixture.ask(Ask::get("/v1/admin/dead/bulk/99/outcome").key(ADMIN)).await.must_be(404, "unknown_bulk");
}

#[tokio::test]
async fn what_was_spent_on_a_great_many_is_reported_before_they_are_dropped() {
    let fixture = Fixture::new().await;
    let page = "https://shop.example.com/";
    dies(&fixture, ANNA, "die-1", page, json!({})).await;
    for sitekey in ["once-1", "once-2"] {
        let order = super::fixture::order(sitekey);
        fixture.ask(Ask::post("/v1/orders", &order).key(ANNA).header("Prefer", "wait=60")).await.order(200);
        // Its answer is too old for the next, and another cannot be bought.
        fixture.pass(Duration::from_secs(3600));
        dies(&fixture, ANNA, sitekey, page, json!({})).await;
    }
    let body =
        post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "drop", "dry_run": true })).await.order(200);
    assert_eq!((&body["dead_letters"], &body["spent_micros"]), (&json!(3), &json!(2 * COST.0)));
}

#[tokio::test]
async fn a_price_that_is_not_known_is_reported() {
    let fixture = Fixture::new().await;
    dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    fixture.pass(Duration::from_secs(1));
    let dry = json!({ "action": "replay", "dry_run": true });
    let body = post(&fixture, "/v1/admin/dead/bulk", &dry).await.order(200);
    assert_eq!(
        (&body["would_pay"], &body["unpriced"], &body["cost_micros"]),
        (&json!(1), &json!(1), &Value::Null)
    );
}

#[tokio::test]
async fn bulk_work_that_makes_no_sense_is_refused_and_what_is_under_way_can_be_stopped() {
    let fixture = Fixture::new().await;
    for odd in [
        json!({}),
        json!({ "action": "keep" }),
        json!({ "action": "drop", "per_second": 0 }),
        json!({ "action": "drop", "per_second": 1001 }),
        json!({ "action": "drop", "per_second": "fast" }),
        json!({ "action": "drop", "cause": "bad" }),
        json!({ "action": "drop", "before": 7 }),
        json!({ "action": "drop", "after": "0".repeat(64) }),
        json!({ "action": "drop", "colour": "red" }),
    ] {
        post(&fixture, "/v1/admin/dead/bulk", &odd).await.must_be(422, "bad_params");
    }
    // No worker runs, so it stays in progress.
    fixture.rest().await;
    let begun = post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "drop" })).await.order(202);
    let path = format!("/v1/admin/dead/bulk/{}", begun["number"]);
    let stopped = fixture.ask(Ask::new("DELETE", &path).key(ADMIN)).await.order(200);
    assert!(stopped["was_stopped"] == true && stopped["ended_at"].is_string(), "{stopped}");
    assert_eq!(get(&fixture, &path).await, stopped);
    for unknown in ["/v1/admin/dead/bulk/99", "/v1/admin/dead/bulk/x", "/v1/admin/dead/bulk/-1"] {
        fixture.ask(Ask::get(unknown).key(ADMIN)).await.must_be(404, "unknown_bulk");
        fixture.ask(Ask::new("DELETE", unknown).key(ADMIN)).await.must_be(404, "unknown_bulk");
    }
    for _ in 0..16 {
        post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "drop" })).await.order(202);
    }
    post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "drop" })).await.must_be(409, "too_many_bulks");
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_shown_as_one() {
    let fixture = Fixture::new().await;
    let key = dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    fixture.break_record(&key);
    let unread = json!({ "key": key, "cause": "unreadable", "why": BROKEN });
    assert_eq!(get(&fixture, "/v1/admin/dead").await["orders"], json!([unread]));
    assert_eq!(get(&fixture, "/v1/admin/dead?cause=unreadable").await["orders"], json!([unread]));
    assert_eq!(get(&fixture, "/v1/admin/dead?tenant=anna").await["orders"], json!([]));
    assert_eq!(get(&fixture, &format!("/v1/admin/find?q={}", &key[..8])).await["orders"], json!([unread]));
    let body =
        fixture.ask(Ask::get(format!("/v1/admin/orders/{key}")).key(ADMIN)).await.must_be(409, "unreadable");
    assert!(body["detail"].as_str().unwrap().contains("no JSON"), "{body}");
    assert!(body["hint"].as_str().unwrap().contains("/drop"), "{body}");
    post(&fixture, &format!("/v1/admin/dead/{key}/replay"), &json!({})).await.must_be(409, "unreadable");
    let note = json!({ "text": "look at this" });
    post(&fixture, &format!("/v1/admin/orders/{key}/note"), &note).await.must_be(409, "unreadable");
    let placed = place_again(&fixture, "die-1").await.must_be(409, "needs_a_person");
    assert!(placed["hint"].as_str().unwrap().contains("only be dropped"), "{placed}");
    let dry = post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "replay", "dry_run": true }))
        .await
        .order(200);
    assert_eq!((&dry["dead_letters"], &dry["unreadable"]), (&json!(0), &json!(1)));
    let dry =
        post(&fixture, "/v1/admin/dead/bulk", &json!({ "action": "drop", "dry_run": true })).await.order(200);
    assert_eq!((&dry["dead_letters"], &dry["unreadable"]), (&json!(1), &json!(1)));
}

/// Places the order of `dies` again.
async fn place_again(fixture: &Fixture, sitekey: &str) -> Answered {
    let params = json!({ "sitekey": sitekey, "pageurl": "https://shop.example.com/" });
    fixture
        .ask(
            Ask::post("/v1/orders", &json!({ "kind": "turnstile", "reuse": "shared", "params": params }))
                .key(ANNA),
        )
        .await
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_dropped_and_its_order_can_be_placed_again() {
    let fixture = Fixture::new().await;
    let key = dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    fixture.break_record(&key);
    let path = format!("/v1/admin/dead/{key}/drop");
    let dropped = post(&fixture, &path, &json!({})).await.order(200);
    assert_eq!(dropped, json!({ "key": key, "cause": "unreadable", "discarded": true }));
    post(&fixture, &path, &json!({})).await.must_be(404, "unknown_order");
    assert_eq!(get(&fixture, "/v1/admin/dead").await["orders"], json!([]));
    let again = place_again(&fixture, "die-1").await.order(202);
    assert_eq!(again["key"], key.as_str(), "the key is free, and this is a new order");
}

#[tokio::test]
async fn what_a_later_version_wrote_is_not_dropped() {
    let fixture = Fixture::new().await;
    let key = dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    fixture.write_record_later(&key);
    let body =
        post(&fixture, &format!("/v1/admin/dead/{key}/drop"), &json!({})).await.must_be(409, "cannot_drop");
    assert!(body["detail"].as_str().unwrap().contains("no JSON"), "{body}");
    assert!(body["hint"].as_str().unwrap().contains("later version"), "{body}");
    assert_eq!(get(&fixture, "/v1/admin/dead?cause=unreadable").await["orders"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_great_many_that_cannot_be_read_are_dropped_and_a_replay_passes_them_over() {
    for (wanted, done, passed_over, left) in [
        (json!({ "action": "replay", "cause": "unreadable" }), 0, 3, 4),
        (json!({ "action": "drop", "cause": "unreadable" }), 2, 1, 2),
        (json!({ "action": "drop" }), 3, 1, 1),
        (json!({ "action": "drop", "tenant": "anna" }), 1, 0, 3),
    ] {
        let fixture = Fixture::new().await;
        let mut keys = Vec::new();
        for n in 0..4 {
            keys.push(
                dies(&fixture, ANNA, &format!("die-{n}"), "https://shop.example.com/", json!({})).await,
            );
        }
        fixture.break_record(&keys[0]);
        fixture.break_record(&keys[1]);
        fixture.write_record_later(&keys[2]);
        fixture.pass(Duration::from_secs(1));
        let begun = post(&fixture, "/v1/admin/dead/bulk", &wanted).await.order(202);
        let body = ended(&fixture, &begun).await;
        assert_eq!((&body["done"], &body["skipped"]), (&json!(done), &json!(passed_over)), "{wanted}");
        assert_eq!(
            get(&fixture, "/v1/admin/dead").await["orders"].as_array().unwrap().len(),
            left,
            "{wanted}"
        );
    }
}

#[tokio::test]
async fn an_order_is_found_by_whatever_a_person_has_of_it() {
    let fixture = Fixture::new().await;
    let dead = dies(&fixture, ANNA, "die-1", "https://shop.example.com/", json!({})).await;
    let open =
        fixture.ask(Ask::post("/v1/orders", &super::fixture::order("hold-1")).key(BERT)).await.order(202);
    let (open, id) = (open["key"].as_str().unwrap(), open["id"].as_str().unwrap());
    let find = async |q: &str| keys(&get(&fixture, &format!("/v1/admin/find?q={q}")).await);
    assert_eq!(find(&dead).await, [dead.as_str()]);
    assert_eq!(find(&dead[..6].to_uppercase()).await, [dead.as_str()]);
    assert_eq!(find(id).await, [open]);
    assert_eq!(find("BERT").await, [open]);
    assert_eq!(find("shop.exam").await.len(), 2);
    assert_eq!(find("turnstile").await.len(), 2);
    let chosen = fixture.place_keyed("solve-7", "Checkout/4711").await.order(200);
    assert_eq!(
        find("Checkout/4711").await,
        [chosen["key"].as_str().unwrap()],
        "by the key that its caller chose"
    );
    assert_eq!(
        find("https://shop.example.com/elsewhere").await.len(),
        3,
        "by the address of a page of the site"
    );
    assert_eq!(find("ffffff").await, [""; 0]);
    assert_eq!(find("nowhere").await, [""; 0]);
    let page = get(&fixture, "/v1/admin/find?q=turnstile&limit=1").await;
    let rest =
        get(&fixture, &format!("/v1/admin/find?q=turnstile&after={}", page["next"].as_str().unwrap())).await;
    assert_eq!((keys(&page).len(), keys(&rest).len()), (1, 2));
    for odd in ["", "q=", "q=%20", "q=a&limit=0", "q=a&after=b", "q=a&x=1"] {
        fixture.ask(Ask::get(format!("/v1/admin/find?{odd}")).key(ADMIN)).await.must_be(422, "bad_params");
    }
    // What begins with these digits stands in one place: nothing else is read.
    fixture.rest().await;
    find(&dead[..10]).await;
    assert_eq!(fixture.store_calls(), ["list"]);
}
