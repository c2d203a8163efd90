//! Opens objects that came as text. Fields that the protocol knows are taken out of them, so that they mean the same
//! as in a task.

use super::MeantParams;
use crate::json::task;
use quittance_lifecycle::Value as Param;
use serde_json::{Map, Value};

/// Takes known fields out of objects: fields of this kind, and of the kinds that it can turn into.
pub(super) fn open(kind: &str, params: &mut MeantParams) {
    let tells = task::tells(kind).map(|(path, ..)| path);
    for (outer, inside) in task::wire_names(kind).chain(tells).filter_map(|path| path.split_once('.')) {
        let Some(Param::Text(text)) = params.get(outer) else { continue };
        let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(text) else { continue };
        let path = format!("{outer}.{inside}");
        // What is there already is left where it is: two values for one thing are refused later.
        if params.contains_key(&path) {
            continue;
        }
        let Some(value) = object.remove(inside) else { continue };
        if object.is_empty() {
            params.remove(outer);
        } else {
            params.insert(outer.to_owned(), Param::Text(Value::Object(object).to_string()));
        }
        if let Some(text) = task::text_of(&value) {
            params.insert(path, Param::Text(text));
        }
    }
}
