//! Tests that need the inside of the crate: every row of the table, and the fields that the rows set.

mod fields;
mod layers;
#[path = "../tests/config/place.rs"]
mod place;
mod reload;

use super::{Config, ConfigErrors, Secret, Sources, StoreUrl, lines};
use place::{Place, SMALL, full, show};

/// The whole content of a configuration, with its secrets and without origins.
fn meaning(config: &Config) -> String {
    let tenants: Vec<_> =
        config.tenants.iter().map(|tenant| tenant.key.any_digest().map(|key| key.0)).collect();
    let providers: Vec<_> =
        config.providers.iter().map(|provider| provider.key.get().map(Secret::reveal)).collect();
    let engine = fields::fields(config);
    let secret = config.callback_secret();
    let config = Config { effective: super::effective::Effective::default(), ..config.clone() };
    format!("{config:#?} {engine:?} {tenants:?} {providers:?} {secret:?}")
}

#[test]
fn what_config_show_prints_is_a_config_that_means_the_same() {
    let same_place = |place: &Place| {
        let first = place.load().unwrap();
        let mut copy = Place::with_file(&show(&first));
        copy.variables.clone_from(&place.variables);
        let second = copy.load().unwrap_or_else(|error| panic!("{error}\n{}", show(&first)));
        (first, second)
    };
    for place in
        [full(), Place::with_file(SMALL), full().set(&["retry.preset=aggressive", "retry.jitter=3s"])]
    {
        let (first, second) = same_place(&place);
        assert_eq!(meaning(&first), meaning(&second));
    }
    // The default store stands where the process was started, and the copy in another folder.
    let (first, mut second) = same_place(&Place::empty());
    assert_eq!(first.store.url, StoreUrl::Embedded("./quittance-data".into()));
    assert!(matches!(&second.store.url, StoreUrl::Embedded(folder) if folder.is_absolute()));
    second.store = first.store.clone();
    assert_eq!(meaning(&first), meaning(&second));
}
