//! Finds the key of a request that has not arrived whole.

use crate::tenant::KEY_BYTES;

/// The most bytes between a key and its name: `"clientKey" : "`, or the blank line in a multipart form.
const NAME_DISTANCE_MAX: usize = 8;

/// The first key in the beginning of a query or a body of any format: a run of letters and digits with the length of
/// a key, after a name that ends in `key`.
pub(crate) fn early_key(beginning: &[u8]) -> Option<&str> {
    let mut from = 0;
    for run in beginning.split(|byte| !byte.is_ascii_alphanumeric()) {
        let begun = from;
        from += run.len() + 1;
        if run.len() != KEY_BYTES {
            continue;
        }
        let before = &beginning[..begun];
        let name_end = before.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
        let name = before[..name_end].last_chunk::<3>();
        if before.len() - name_end <= NAME_DISTANCE_MAX
            && name.is_some_and(|n| n.eq_ignore_ascii_case(b"key"))
        {
            return std::str::from_utf8(run).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_the_beginning_of_any_format_behind_its_name_only() {
        let key = "a1".repeat(KEY_BYTES / 2);
        let found = |text: String| early_key(text.as_bytes()).map(str::to_owned);
        for text in [
            format!("key={key}"),
            format!("method=base64&key={key}&body=AAAA"),
            format!("{{\"clientKey\": \"{key}\", \"task\":"),
            format!("--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n{key}\r\n--x"),
        ] {
            assert_eq!(found(text.clone()).as_deref(), Some(key.as_str()), "{text}");
        }
        for text in [
            String::new(),
            key.clone(),
            format!("key={key}b"),
            format!("key={}", &key[1..]),
            format!("googlekeys={key}"),
            format!("key={}{key}", "-".repeat(NAME_DISTANCE_MAX)),
        ] {
            assert_eq!(found(text.clone()), None, "{text}");
        }
    }
}
