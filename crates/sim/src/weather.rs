//! How often faults occur. Each life draws its own mixture from its seed. After the storm there are no more faults,
//! and all work must finish.

use crate::rng::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The most providers that a life has.
pub(crate) const PROVIDERS_MAX: usize = 2;

macro_rules! fault_rates {
    ($($(#[$doc:meta])* $name:ident: $most:literal),* $(,)?) => {
        /// How often each fault occurs, in thousandths.
        #[derive(Clone, Debug, Default)]
        pub struct FaultRates { $($(#[$doc])* pub $name: u64),* }

        impl FaultRates {
            /// Each fault is absent from half of the lives, so that no fault hides another.
            #[must_use]
            pub fn draw(rng: &mut Rng) -> Self {
                Self { $($name: if rng.chance(500) { rng.in_range(0..$most + 1) } else { 0 }),* }
            }
        }
    };
}

fault_rates! {
    store_request_lost: 60,
    /// The write happened, and the reply is lost.
    store_reply_lost: 60,
    store_slow: 60,
    claims_ignored: 500,
    /// The submit was never sent.
    submit_unreachable: 200,
    /// The submit was sent and got lost on the way.
    submit_lost: 150,
    /// The provider took the task, and the reply is lost.
    submit_reply_lost: 250,
    submit_slow: 200,
    submit_busy: 250,
    submit_odd: 100,
    submit_answers_at_once: 100,
    poll_lost: 200,
    poll_busy: 200,
    poll_odd: 100,
    poll_part_missing: 200,
    poll_slow: 100,
    unsolvable: 200,
    result_vanishes: 20,
    callback_lost: 500,
    callback_doubled: 200,
    callback_delayed: 300,
    /// The provider calls at once, and the bytes of its call come slowly.
    callback_slow: 1_000,
    /// The task is solved before the reply to the submit is sent.
    solved_at_once: 200,
}

/// The faults of one life, shared by all parts.
#[derive(Debug, Default)]
pub(crate) struct Weather {
    pub fault_rates: FaultRates,
    calm: AtomicBool,
    store_down_until: AtomicU64,
    /// For each provider.
    provider_down_until: [AtomicU64; PROVIDERS_MAX],
}

impl Weather {
    #[must_use]
    pub(crate) fn new(fault_rates: FaultRates) -> Self {
        Self { fault_rates, ..Self::default() }
    }

    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.store_down_until.store(0, Ordering::Relaxed);
        self.provider_down_until.iter().for_each(|until| until.store(0, Ordering::Relaxed));
    }

    #[must_use]
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Whether a fault occurs now.
    pub(crate) fn strikes(&self, rng: &mut Rng, fault_rate: fn(&FaultRates) -> u64) -> bool {
        !self.is_calm() && rng.chance(fault_rate(&self.fault_rates))
    }

    pub(crate) fn take_store_down(&self, until: u64) {
        self.store_down_until.store(until, Ordering::Relaxed);
    }

    #[must_use]
    pub(crate) fn is_store_down(&self, now: u64) -> bool {
        now < self.store_down_until.load(Ordering::Relaxed)
    }

    pub(crate) fn take_provider_down(&self, provider: usize, until: u64) {
        self.provider_down_until[provider].store(until, Ordering::Relaxed);
    }

    #[must_use]
    pub(crate) fn is_provider_down(&self, provider: usize, now: u64) -> bool {
        now < self.provider_down_until[provider].load(Ordering::Relaxed)
    }
}
