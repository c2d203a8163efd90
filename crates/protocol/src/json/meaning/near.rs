//! Finds names that are nearly known: typing errors, and known names in another spelling. Buying a guess helps no
//! caller, so such a request is refused, and the error names the nearest known name.

use crate::classic::method;
use crate::json::task;
use crate::kinds::{CONTROL, PARAMETERS, UNDESCRIBED, order_field_meant};
use quittance_hosts::roots;
use quittance_lifecycle::terms::KIND_BYTES_MAX;
use quittance_lifecycle::{BadRequest, Kind, Role, Shape, Value as Param};
use std::collections::BTreeMap;

/// The letters and digits of a name, in lower case.
pub(super) fn squeezed(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether the lengths of two names differ by so few characters. This costs nothing, and a distance is never less.
fn is_as_long(typed: &str, known: &str, most: usize) -> bool {
    typed.chars().count().abs_diff(known.chars().count()) <= most
}

/// Whether two short names differ by one typing error.
fn is_near_and_short(typed: &str, known: &str) -> bool {
    let is_short = (3..=4).contains(&known.chars().count().min(typed.chars().count()));
    is_short && strsim::osa_distance(typed, known) <= 1
}

/// Whether two names differ only by typing errors.
fn is_near(typed: &str, known: &str) -> bool {
    let most = match known.chars().count().min(typed.chars().count()) {
        0..=4 => 0,
        5..=8 => 1,
        _ => 2,
    };
    typed == known
        || (most > 0 && is_as_long(typed, known, most) && strsim::osa_distance(typed, known) <= most)
}

/// Whether a name is probably a misspelt kind, method or type. A wrong guess costs the caller a look at the
/// suggestion, and a missed one costs a purchase. So more typing errors are tolerated than in a parameter.
fn is_near_kind(typed: &str, known: &str) -> bool {
    let edits_max = match known.chars().count() {
        0..=4 => 0,
        5..=9 => 2,
        _ => 3,
    };
    let is_possible = can_be_meant(typed, known) && is_as_long(typed, known, edits_max);
    typed == known || (is_possible && strsim::damerau_levenshtein(typed, known) <= edits_max)
}

/// The least similarity (Jaro-Winkler) at which a name is taken for a known kind, method or type.
const SIMILAR: f64 = 0.9;

fn is_similar_kind(typed: &str, known: &str) -> bool {
    can_be_meant(typed, known) && strsim::jaro_winkler(typed, known) >= SIMILAR
}

/// Whether both names are long enough to tell a typing error from another name.
fn can_be_meant(typed: &str, known: &str) -> bool {
    typed.chars().count() >= 4 && known.chars().count() >= 5
}

/// Whether a parameter is probably a misspelt known one. For names of two letters, only a doubled letter or swapped
/// letters count.
fn is_slip(typed: &str, known: &str) -> bool {
    let is_twice = |letter: char| typed == known.replace(letter, &format!("{letter}{letter}"));
    let is_swapped = || typed.chars().rev().eq(known.chars());
    let is_of_two = || known.chars().count() == 2 && (known.chars().any(is_twice) || is_swapped());
    is_near(typed, known) || is_near_and_short(typed, known) || is_of_two()
}

/// A type, method or kind without `Task` and `Proxyless`, even if `Proxyless` is misspelt.
fn core_of(squeezed: &str) -> &str {
    let without_proxy = (7..=10).filter_map(|length| squeezed.len().checked_sub(length)).find_map(|at| {
        let (head, tail) = (squeezed.get(..at)?, squeezed.get(at..)?);
        (tail.starts_with('p') && strsim::osa_distance(tail, "proxyless") <= 2).then_some(head)
    });
    let name = without_proxy.unwrap_or(squeezed);
    name.strip_suffix("task").filter(|core| !core.is_empty()).unwrap_or(name)
}

/// Words that say nothing about the kind.
const EMPTY_WORDS: [&str; 5] = ["anti", "captcha", "less", "proxy", "task"];
/// Two names of one vendor.
const SAME_WORDS: [(&str, &str); 1] = [("aws", "amazon")];
/// The fewest letters that must remain of a word, so that `recaptcha` and `hcaptcha` stay different.
const WORD_LETTERS_MIN: usize = 3;

/// The words of a name in lower case. Words that say nothing about the kind are left out.
fn words_of(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let is_after_small = at > 0 && letters[at - 1].is_lowercase();
        let is_before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if !letter.is_alphanumeric() || (letter.is_uppercase() && (is_after_small || is_before_small)) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    let trimmed = |word: String| {
        let empty = ["proxyless", "task", "captcha", "anti"];
        let one = |word: &str| {
            let shorter =
                empty.iter().find_map(|empty| word.strip_suffix(empty).or_else(|| word.strip_prefix(empty)));
            shorter.filter(|shorter| shorter.chars().count() >= WORD_LETTERS_MIN).map(str::to_owned)
        };
        std::iter::successors(Some(word), |word| one(word)).last().unwrap_or_default()
    };
    let is_stated =
        |word: &String| !word.is_empty() && word != "proxyless" && !EMPTY_WORDS.contains(&word.as_str());
    words.into_iter().map(trimmed).filter(is_stated).collect()
}

/// The words in alphabetical order, with one name for each vendor.
fn sorted(words: &[String]) -> Vec<&str> {
    let one_name =
        |word: &'_ String| SAME_WORDS.iter().find(|(other, _)| other == word).map(|(_, name)| *name);
    let mut words: Vec<&str> = words.iter().map(|word| one_name(word).unwrap_or(word)).collect();
    words.sort_unstable();
    words
}

/// The known kind that has the same words, in another order or among words that say nothing.
fn kind_by_words(name: &str) -> Option<String> {
    let typed = words_of(name);
    let kinds = crate::kinds::kinds().map(|kind| (kind.name.to_string(), kind.name.to_string()));
    let types = task::kinds_of_types().map(|(name, kind)| (name.to_owned(), kind.to_owned()));
    let others = UNDESCRIBED.iter().map(|name| ((*name).to_owned(), (*name).to_owned()));
    let is_same = |known: &str| {
        let known = words_of(known);
        !typed.is_empty() && (sorted(&known) == sorted(&typed) || known.concat() == typed.concat())
    };
    kinds.chain(types).chain(others).find(|(known, _)| is_same(known)).map(|(_, kind)| kind)
}

/// The fewest letters of a known kind of one word that is searched among other words: `fun` and `atb` are too common.
const ONLY_WORD_LETTERS_MIN: usize = 4;

/// The known kind with the most words that stand side by side in the name: `cloudflare_turnstile` holds `turnstile`.
/// Only kinds that need a page count, because names such as `image`, `text` and `grid` are common words.
fn kind_among_words(name: &str) -> Option<String> {
    let typed = words_of(name);
    let needs_page =
        |kind: &Kind| kind.fields.iter().any(|field| field.shape == Shape::PageAddress && field.required);
    let known = crate::kinds::kinds().filter(needs_page).map(|kind| (words_of(&kind.name), kind.name));
    let is_telling = |words: &[String]| match words {
        [] => false,
        [word] => word.chars().count() >= ONLY_WORD_LETTERS_MIN,
        _ => true,
    };
    let among = known.filter(|(words, _)| {
        is_telling(words) && typed.windows(words.len()).any(|window| sorted(window) == sorted(words))
    });
    among.max_by_key(|(words, _)| words.len()).map(|(_, name)| name.into_owned())
}

/// The known kind that a name is most like, unless the services document the name and we do not.
pub(super) fn kind(name: &str) -> Option<String> {
    let typed = squeezed(name);
    let stem = |name: &str| name.strip_suffix("proxyless").unwrap_or(name).to_owned();
    let mut same = UNDESCRIBED.iter().filter(|known| stem(&squeezed(known)) == stem(&typed)).peekable();
    if let Some(first) = same.peek().copied() {
        // The services differ in capitals. A sign more or less is a slip: no provider has a kind of that name.
        let is_same = |known: &&str| stem(&known.to_lowercase()) == stem(&name.to_lowercase());
        return if same.any(is_same) { None } else { Some((*first).to_owned()) };
    }
    let kinds = crate::kinds::kinds().map(|kind| kind.name.into_owned());
    let others = method::methods().chain(task::types()).chain(UNDESCRIBED.iter().copied());
    let names: Vec<String> = kinds.chain(others.map(str::to_owned)).collect();
    let distance = |known: &&String| {
        let known = squeezed(known);
        let between_cores = strsim::osa_distance(core_of(&typed), core_of(&known));
        (between_cores, strsim::osa_distance(&typed, &known))
    };
    let nearest = |is_meant: fn(&str, &str) -> bool| {
        let is_meant = |known: &&String| {
            let known = squeezed(known);
            is_meant(&typed, &known) || is_meant(core_of(&typed), core_of(&known))
        };
        names.iter().filter(is_meant).min_by_key(distance)
    };
    let is_short = |known: &&String| is_near_and_short(&typed, &squeezed(known));
    let near = nearest(is_near_kind).into_iter().chain(names.iter().filter(is_short)).min_by_key(distance);
    // The same words are nearer than other letters.
    match near {
        Some(near) if distance(&near).0 <= 1 => Some(near.clone()),
        near => kind_by_words(name)
            .or(near.cloned())
            .or_else(|| kind_among_words(name))
            .or_else(|| nearest(is_similar_kind).cloned()),
    }
}

/// Whether the `class` of a custom task is a kind that has another task type.
pub(super) fn is_class_of_another(params: &BTreeMap<String, Param>) -> bool {
    let Some(class) = params.get("class") else { return false };
    let class = squeezed(&String::from_utf8_lossy(class.as_bytes()));
    let core = core_of(&class);
    let kinds = crate::kinds::kinds().map(|kind| squeezed(&kind.name));
    let others = method::methods().chain(task::types()).map(squeezed);
    kinds.chain(others).any(|known| core_of(&known) == core && !core.is_empty())
}

/// The type that has a `class` of its own, and its classes. They have the names of kinds, but mean the pictures of one.
const PICTURE_TYPE: &str = "compleximagetask";
const PICTURE_CLASSES: [&str; 4] = ["funcaptcha", "hcaptcha", "recaptcha", "recognition"];

/// Fields whose value chooses the kind, and their values that no row of the table has.
const TELLING: [(&str, &[&str]); 2] = [
    ("class", &["alibaba", "altcha", "Basilisk", "binance", "castle", "HUNT", "prosopo", "temu", "yidun"]),
    ("cloudflareTaskType", &["token"]),
];

/// Whether a value can be the name of a kind. A longer one is not compared: that costs more, the longer the value is.
fn is_short(value: &Param) -> bool {
    matches!(value, Param::Text(text) if text.len() <= KIND_BYTES_MAX)
}

/// Refuses a misspelt value of a field that chooses the kind.
pub(super) fn check_values(stated: &str, params: &BTreeMap<String, Param>) -> Result<(), BadRequest> {
    for (name, others) in TELLING {
        let Some(Param::Text(value)) = params.get(name).filter(|value| is_short(value)) else { continue };
        let typed = squeezed(value);
        let is_of_pictures = name == "class" && squeezed(stated) == PICTURE_TYPE;
        let known: Vec<&str> = match is_of_pictures {
            true => PICTURE_CLASSES.to_vec(),
            false => task::telling_values(name).chain(others.iter().copied()).collect(),
        };
        if known.iter().any(|known| squeezed(known) == typed) {
            continue;
        }
        let distance = |known: &&&str| strsim::osa_distance(&typed, &squeezed(known));
        let is_meant = |known: &&&str| distance(known) <= if squeezed(known).len() <= 5 { 1 } else { 2 };
        let nearest = known.iter().filter(is_meant).min_by_key(distance).map(|known| (*known).to_owned());
        if let Some(meant) = nearest.or_else(|| kind(value).filter(|_| !is_of_pictures)) {
            return Err(BadRequest::MisspeltValue { name: name.to_owned(), meant });
        }
    }
    Ok(())
}

/// Names that every order may have.
const COMMON: [&str; 9] = [
    "type",
    "pageurl",
    "proxy",
    "proxytype",
    "proxyType",
    "proxyAddress",
    "proxyPort",
    "proxyLogin",
    "proxyPassword",
];

/// Parameters about the visit, which orders of any kind can have. Of an undescribed kind nothing else is known, and
/// an order without its intended proxy is wasted.
const VISIT: [&str; 11] = [
    "cookies",
    "pageurl",
    "pageURL",
    "proxy",
    "proxyAddress",
    "proxyLogin",
    "proxyPassword",
    "proxyPort",
    "proxytype",
    "userAgent",
    "websiteURL",
];

/// Refuses parameters that some reader takes for known ones. For a described kind, also refuses misspelt known ones.
pub(super) fn check_names(kind: Option<&Kind>, params: &BTreeMap<String, Param>) -> Result<(), BadRequest> {
    let open = crate::kinds::open_kind("");
    let of = kind.unwrap_or(&open);
    let all = || {
        let ours =
            of.fields.iter().map(|field| field.name).chain(of.hosts.roles.iter().map(|(name, _)| *name));
        let tells = method::tells(&of.name).chain(task::tells(&of.name)).map(|(tell, ..)| tell);
        let marks = method::marks(&of.name).map(|(mark, _)| mark);
        ours.chain(COMMON)
            .chain(task::wire_names(&of.name))
            .chain(tells)
            .chain(marks)
            .chain(CONTROL.iter().copied())
    };
    for name in params.keys() {
        if let Some(meant) = order_field_meant(name) {
            let (kind, meant) = (of.name.to_string(), meant.to_owned());
            return Err(BadRequest::MisspeltParam { kind, name: name.clone(), meant });
        }
        // A client that sends the parameters of all kinds with each order has not misspelt any of them.
        let is_known = crate::kinds::kinds().any(|kind| kind.role(name) != Role::Unknown);
        let is_object =
            || all().any(|known| known.strip_prefix(name).is_some_and(|tail| tail.starts_with('.')));
        if is_known || all().any(|known| known == name) || name == "type" || is_object() {
            continue;
        }
        let typed = squeezed(name);
        let roots = roots(name);
        let is_documented = PARAMETERS.contains(&name.as_str());
        let is_near = |known: &&str| {
            let known_name = squeezed(known);
            let is_slip = match kind {
                Some(_) if is_documented => typed == known_name,
                Some(_) => is_slip(&typed, &known_name),
                None => VISIT.contains(known) && typed != known_name && is_slip(&typed, &known_name),
            };
            is_slip || roots.contains(&known.to_lowercase())
        };
        let near = all().filter(is_near);
        let distance = |known: &&str| {
            (!roots.contains(&known.to_lowercase()), strsim::osa_distance(&typed, &squeezed(known)))
        };
        if let Some(meant) = near.min_by_key(distance) {
            return Err(BadRequest::MisspeltParam {
                kind: of.name.to_string(),
                name: name.clone(),
                meant: meant.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
