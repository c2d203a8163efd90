//! The captchas of a demo: a mixture of kinds. Each has a mark that identifies it in the provider's ledger.

use crate::DemoPlan;
use base64::Engine as _;
use serde_json::{Value, json};

/// The name of a captcha in the provider's ledger.
pub(crate) fn mark(seed: u64, captcha: u32) -> String {
    format!("demo-{seed}-{captcha}")
}

/// The line of one order for `quittance solve --lines`.
pub(crate) fn order(plan: DemoPlan, captcha: u32, id: u32) -> Value {
    let mark = mark(plan.seed, captcha);
    let page = format!("https://{mark}.example.com/login");
    match captcha % 4 {
        0 | 1 => {
            json!({ "id": id, "kind": "recaptcha_v2", "params": { "googlekey": format!("6Le-{mark}-0123456789abcdefghijklmnop"), "pageurl": page } })
        }
        2 => {
            json!({ "id": id, "kind": "turnstile", "params": { "sitekey": format!("0x4AAAAAAA{mark}"), "pageurl": page } })
        }
        _ => {
            let picture = base64::engine::general_purpose::STANDARD.encode(picture(&mark));
            json!({ "id": id, "kind": "image", "params": { "textinstructions": mark }, "files": { "body": picture } })
        }
    }
}

/// The captcha of each request: all occur equally often, in an order that follows from the seed.
pub(crate) fn requests(plan: DemoPlan) -> Vec<u32> {
    let mut asked: Vec<u32> = (0..plan.requests).map(|request| request % plan.captchas).collect();
    let mut dice = plan.seed;
    for at in (1..asked.len()).rev() {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from((dice >> 33) % (at as u64 + 1)).unwrap_or_default();
        asked.swap(at, other);
    }
    asked
}

/// The smallest file that passes for a GIF, different for each mark.
fn picture(mark: &str) -> Vec<u8> {
    let mut gif = b"GIF89a\x40\x00\x20\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00\x40\x00\x20\x00\x00\x02".to_vec();
    while gif.len() < 200 {
        gif.extend_from_slice(mark.as_bytes());
    }
    gif.extend_from_slice(b"\x00\x3b");
    gif
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_captcha_is_asked_for_and_a_seed_repeats() {
        let plan = DemoPlan { seed: 7, requests: 100, captchas: 9, workers: 5, kills: 0 };
        let asked = requests(plan);
        assert_eq!(asked, requests(plan));
        assert_ne!(asked, requests(DemoPlan { seed: 8, ..plan }));
        for captcha in 0..9 {
            let times = asked.iter().filter(|asked| **asked == captcha).count();
            assert!((11..=12).contains(&times), "{captcha}: {times}");
        }
    }
}
