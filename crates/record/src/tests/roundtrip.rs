//! Every value is read as it was written.

use super::any::Any;
use super::names::{every_use, uses_in};
use crate::fields::NamedVariant;
use std::collections::BTreeSet;

const SEEDS: u64 = 20_000;

#[test]
fn whatever_is_written_is_read_back_the_same() {
    for seed in 0..SEEDS {
        let value = Any(seed).written();
        let bytes = value.encode();
        assert_eq!(value.decode(&bytes).as_ref(), Ok(&value), "seed {seed}");
        assert_eq!(value.decode(&bytes).unwrap().encode(), bytes, "seed {seed}");
    }
}

/// Otherwise the tests of random values would prove less than they claim.
#[test]
fn the_made_up_values_use_every_name_wherever_it_can_stand() {
    let used: BTreeSet<String> = (0..SEEDS).flat_map(|seed| uses_in(&Any(seed).written().encode())).collect();
    let missing: Vec<_> = every_use().difference(&used).cloned().collect();
    assert!(missing.is_empty(), "never made: {missing:?}");
}

#[test]
fn no_two_variants_share_a_name() {
    fn check<T: NamedVariant>() {
        let distinct: BTreeSet<_> = T::NAMES.iter().collect();
        assert_eq!(distinct.len(), T::NAMES.len(), "{:?}", T::NAMES);
        for name in T::NAMES {
            assert_eq!(T::named(name).map(T::name_on_record), Some(*name));
        }
    }
    check::<crate::phase::PhaseName>();
    check::<crate::attempt::ProgressName>();
    check::<crate::timeline::TimelineEventName>();
    check::<crate::arrival::EventName>();
    check::<crate::document::DocumentName>();
    check::<quittance_lifecycle::FaultClass>();
}
