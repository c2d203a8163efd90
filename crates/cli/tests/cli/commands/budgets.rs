//! Tests of the built binary with budgets: what is shown of them, and what `config check` and `config show` say.

use crate::commands::house::{CommandOutput, House};
use serde_json::{Value, json};

const FILE: &str = r#"
[[provider]]
name = "main"
dialect = "2captcha"
url = "http://127.0.0.1:1"
key_env = "K"
[[budget]]
name = "all"
limit = "50.00"
period = "day"
[[budget]]
name = "images"
limit = 0.0005
period = "month"
kind = "image"
at_limit = "wait"
"#;

/// A folder with this config file and a store.
fn house(file: &str) -> House {
    let house = House::new();
    std::fs::write(house.path("quittance.toml"), file).unwrap();
    let pool = ["pool", "set", "login", "--kind", "turnstile", "--size", "1", "-p", "sitekey=0x4A"];
    run(&house, &[&pool[..], &["-p", "pageurl=https://example.com/"]].concat()).exits(0);
    house
}

fn run(house: &House, args: &[&str]) -> CommandOutput {
    house.run_with(args, &[("K", "0123456789abcdef0123456789abcdef")])
}

#[test]
fn budgets_are_listed_and_shown_as_text_and_as_json() {
    let house = house(FILE);
    let text = run(&house, &["budget", "list"]).exits(0).out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("NAME    STATE  SPENT  RESERVED  LEFT"), "{text}");
    assert!(lines[1].starts_with("all     ok     0      0         50      50 USD      day"), "{text}");
    assert!(lines[2].starts_with("images") && lines[2].ends_with("kind image"), "{text}");
    let shown = run(&house, &["budget", "show", "images"]).exits(0).out;
    for words in [
        "counts     kind image\n",
        "limit      0.0005 USD each month\n",
        "at limit   wait: orders wait",
        "spent      0 USD\n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let list = run(&house, &["budget", "list", "--json"]).exits(0).json();
    let one = run(&house, &["budget", "show", "images", "--json"]).exits(0).json();
    assert_eq!(list["budgets"][1], one);
    assert_eq!(
        (&one["kind"], &one["tenant"], &one["limit"]),
        (&json!("image"), &Value::Null, &json!("0.0005"))
    );
    let unknown = run(&house, &["budget", "show", "image"]).exits(1).err;
    assert!(unknown.contains("no budget is called `image`: did you mean `images`?"), "{unknown}");
}

#[test]
fn without_budgets_the_list_says_how_to_set_one() {
    let none = house("");
    assert!(run(&none, &["budget", "list"]).exits(0).out.contains("add a `[[budget]]`, see docs/budgets.md"));
    assert_eq!(run(&none, &["budget", "list", "--json"]).exits(0).json(), json!({ "budgets": [] }));
}

#[test]
fn the_configuration_is_checked_and_shown_with_its_budgets() {
    let house = house(FILE);
    let check = run(&house, &["config", "check", "--json"]).exits(0).json();
    let notes: Vec<&str> = check["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let small = notes.iter().find(|note| note.starts_with("budget `images`")).unwrap();
    assert!(
        small.contains("the limit of 0.0005 USD is smaller than the price of one answer, 0.001 USD"),
        "{notes:?}"
    );
    let show = run(&house, &["config", "show"]).exits(0).out;
    assert!(show.contains("[[budget]]\n") && show.contains("at_limit = \"wait\""), "{show}");
    let doctor = run(&house, &["doctor"]).out;
    assert!(
        doctor.contains("budget `images`: the limit") && doctor.contains("budget `all` allows purchases"),
        "{doctor}"
    );
    std::fs::write(house.path("quittance.toml"), FILE.replace("\"day\"", "\"week\"")).unwrap();
    let wrong = run(&house, &["config", "check"]).exits(4).err;
    assert!(wrong.contains("quittance.toml:10: `budget.all.period` is \"week\""), "{wrong}");
}
