//! Encodes a form as the body of a request: urlencoded, or multipart if it holds a file. No field goes into the URL,
//! because proxies and logs would keep a key or an answer there.

use crate::classic::form::{Form, Part};

/// An encoded body and its content type.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedForm {
    pub content_type: String,
    pub body: Vec<u8>,
}

impl std::fmt::Debug for EncodedForm {
    /// Shows only the size, because the body holds a key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoded({} bytes of {})", self.body.len(), self.content_type)
    }
}

#[must_use]
pub fn encode(form: &Form) -> EncodedForm {
    let is_urlencoded = form.0.values().all(|part| matches!(part, Part::Text(_)));
    if is_urlencoded { urlencoded(form) } else { multipart(form) }
}

fn urlencoded(form: &Form) -> EncodedForm {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, part) in &form.0 {
        if let Part::Text(text) = part {
            pairs.append_pair(name, text);
        }
    }
    EncodedForm {
        content_type: "application/x-www-form-urlencoded".to_owned(),
        body: pairs.finish().into_bytes(),
    }
}

fn multipart(form: &Form) -> EncodedForm {
    let boundary = boundary(form);
    let mut body = Vec::new();
    for (name, part) in &form.0 {
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        let (head, value) = match part {
            Part::Text(text) => ("\r\n\r\n".to_owned(), text.as_bytes()),
            Part::File(bytes) => {
                let head = "; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n";
                (head.to_owned(), bytes.as_slice())
            }
        };
        body.extend_from_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{head}").as_bytes(),
        );
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    EncodedForm { content_type: format!("multipart/form-data; boundary={boundary}"), body }
}

/// A boundary that is in no part. It is found by counting and not at random, so that equal forms give equal bytes.
fn boundary(form: &Form) -> String {
    let stands_in = |part: &Part, boundary: &str| {
        let bytes = match part {
            Part::Text(text) => text.as_bytes(),
            Part::File(bytes) => bytes,
        };
        bytes.windows(boundary.len()).any(|window| window == boundary.as_bytes())
    };
    (0_u64..)
        .map(|n| format!("quittance-{n:020}"))
        .find(|boundary| !form.0.values().any(|part| stands_in(part, boundary)))
        .expect("no body is long enough to hold them all")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn back(form: &Form) -> Form {
        let sent = encode(form);
        Form::read("", Some(&sent.content_type), &sent.body).unwrap()
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let text = |text: &str| Part::Text(text.to_owned());
        let mut form = Form(BTreeMap::from([
            ("data[blob]".to_owned(), text("a+b c&d=e%20|ü\r\n")),
            ("pageurl".to_owned(), text("https://example.com/?a=1&b=2#c")),
        ]));
        assert!(encode(&form).content_type.starts_with("application/x-www-form-urlencoded"));
        assert_eq!(back(&form), form);
        let tricky = b"\r\n--quittance-00000000000000000000--\r\n\xff\x00".to_vec();
        form.0.insert("file_1".to_owned(), Part::File(tricky));
        assert!(encode(&form).content_type.starts_with("multipart/form-data"));
        assert_eq!(back(&form), form);
    }

    #[test]
    fn what_is_sent_is_not_in_what_is_printed() {
        let form = Form(BTreeMap::from([("key".to_owned(), Part::Text("secret".to_owned()))]));
        assert!(!format!("{:?} {form:?}", encode(&form)).contains("secret"));
    }
}
