//! How a pool sizes itself: tests put orders and leads in, and check the levels that come out.

use super::{Level, Sizer, Why, erlang_b, shortfall};
use quittance_lifecycle::Timestamp;
use quittance_ports::{Goal, SIZE_MAX};
use std::time::Duration;

const USABLE: Duration = Duration::from_secs(80);
/// The life of a recaptcha answer, within which the level must follow a step in demand.
const LIFE_S: u64 = 120;
const GOAL: Goal = Goal::Served { permille: 950 };

/// A pool whose orders are independent of each other, and whose answers all have the same lead.
struct Pool {
    sizer: Sizer,
    now_ms: u64,
    lead: Duration,
    seed: u64,
}

impl Pool {
    fn new(goal: Goal, usable: Duration, lead_s: u64) -> Self {
        let lead = Duration::from_secs(lead_s);
        Self { sizer: Sizer::new(goal, usable, lead), now_ms: 1_000_000, lead, seed: 1 }
    }

    fn unit(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (f64::from(u32::try_from(self.seed >> 32).expect("32 bits")) + 1.0) / (f64::from(u32::MAX) + 1.0)
    }

    /// Simulates this many seconds of orders at this rate, and reads the level every second; `each` gets every level.
    fn lives(&mut self, seconds: u64, rate: f64, mut each: impl FnMut(u64, Level)) -> Level {
        let gap_ms = |pool: &mut Self| if rate > 0.0 { -pool.unit().ln() / rate * 1000.0 } else { f64::MAX };
        let mut next = self.now_ms as f64 + gap_ms(self);
        for second in 0..seconds {
            self.now_ms += 1000;
            let mut asked = 0;
            while next <= self.now_ms as f64 {
                asked += 1;
                next += gap_ms(self);
                self.sizer.bought(self.lead);
            }
            self.sizer.asked(Timestamp::from_millis(self.now_ms), asked);
            each(second, self.level());
        }
        self.level()
    }

    fn after(&mut self, seconds: u64, rate: f64) -> Level {
        self.lives(seconds, rate, |_, _| {})
    }

    fn level(&mut self) -> Level {
        self.sizer.level(Timestamp::from_millis(self.now_ms))
    }
}

/// The smallest size that Erlang's formula allows.
fn erlangs(load: f64) -> u32 {
    (0..).find(|size| erlang_b(*size, load) <= 0.05).expect("it falls to nothing")
}

#[test]
fn nothing_is_held_before_the_first_order() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    let level = pool.after(3600, 0.0);
    assert_eq!((level.size, level.why), (0, Why::NothingSeenYet));
    assert_eq!(level.why.to_string(), "no order has come yet, so nothing is held");
}

#[test]
fn demand_that_is_too_low_is_reported_and_nothing_is_held() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    let mut held = 0;
    let level = pool.lives(100 * 80, 1.5 / 80.0, |_, level| held += u64::from(level.size > 0));
    assert!(held < 80, "in {held} of 8000 seconds");
    let Why::TooLittleDemand { per_life, usable } = level.why else { panic!("{level:?}") };
    assert!((1.0..2.0).contains(&per_life) && usable == USABLE, "{level:?}");
    let text = Why::TooLittleDemand { per_life: 2.14, usable }.to_string();
    assert_eq!(text, "2.1 orders in an answer's usable life of 80 s: fewer than 3, so nothing is held");
    let text = Why::TooLittleDemand { per_life: 2.999, usable }.to_string();
    assert!(text.starts_with("2.9 orders"), "{text}");
}

#[test]
fn steady_demand_is_held_at_erlangs_level_within_one_up_to_two_hundred_on_their_way() {
    for (rate, lead_s) in [(0.2, 20), (1.0, 20), (3.0, 15), (10.0, 20)] {
        let mut pool = Pool::new(GOAL, USABLE, lead_s);
        let level = pool.after(30_000, rate);
        let wanted = erlangs(rate * lead_s as f64);
        assert!(level.size.abs_diff(wanted) <= 1, "{rate} a second: {wanted}, and not {level:?}");
        assert!(matches!(level.why, Why::Served { permille: 950, .. }), "{level:?}");
        assert!(level.served > 0.945 && level.expired < 0.01, "{level:?}");
        assert!((level.rate / rate - 1.0).abs() < 0.05, "{level:?}");
    }
    let text = Why::Served { permille: 950, load: 20.04 }.to_string();
    assert_eq!(text, "20.0 orders come while an answer is on its way: the fewest that serve 95 % of orders");
    assert!(Why::Served { permille: 995, load: 1.0 }.to_string().contains("99.5 %"));
}

#[test]
fn tenfold_steps_are_followed_within_one_lifetime_however_long_it_was_steady() {
    for (slow, fast) in [(0.1, 1.0), (1.0, 10.0)] {
        let mut pool = Pool::new(GOAL, USABLE, 20);
        pool.after(20_000, slow);
        for rate in [fast, slow, fast, slow] {
            let level = pool.after(LIFE_S, rate);
            let wanted = erlangs(rate * 20.0);
            assert!(
                level.size.abs_diff(wanted) <= (wanted / 4).max(2),
                "{rate} a second: {wanted}, and not {level:?}"
            );
        }
    }
}

#[test]
fn a_pool_without_orders_soon_holds_nothing() {
    for (rate, lives) in [(0.1, 3), (1.0, 1), (10.0, 1)] {
        let mut pool = Pool::new(GOAL, USABLE, 20);
        assert!(pool.after(10_000, rate).size > 0);
        let level = pool.after(lives * LIFE_S, 0.0);
        assert_eq!(level.size, 0, "{rate} a second, {lives} lifetimes ago: {level:?}");
        assert!(matches!(level.why, Why::TooLittleDemand { .. }), "{level:?}");
        let held = {
            let mut held = 0;
            pool.lives(24 * 3600, 0.0, |_, level| held += level.size);
            held
        };
        assert_eq!(held, 0, "an idle pool costs nothing");
    }
}

#[test]
fn one_or_two_orders_after_a_long_silence_buy_nothing() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    pool.after(3600, 0.0);
    for count in [1, 2] {
        pool.after(3600, 0.0);
        pool.sizer.asked(Timestamp::from_millis(pool.now_ms), count);
        pool.lives(3600, 0.0, |second, level| {
            assert_eq!(level.size, 0, "{second} s after {count}: {level:?}");
        });
    }
}

#[test]
fn a_goal_that_would_expire_too_much_is_not_reached_and_that_is_reported() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    let level = pool.after(80_000, 4.5 / 80.0);
    let Why::ExpiresTooSoon { asked, held, expired_if_asked } = level.why else { panic!("{level:?}") };
    assert!(held == level.size && held < asked && expired_if_asked > 0.05, "{level:?}");
    assert!(level.served < 0.95 && level.expired < 0.07, "{level:?}");
    let text = Why::ExpiresTooSoon { asked: 5, held: 3, expired_if_asked: 0.117 }.to_string();
    assert_eq!(
        text,
        "the goal asks for 5, of which 12 % would expire: 3 is the most of which no more than about 5 % does"
    );
}

#[test]
fn two_levels_are_not_taken_in_turn_because_of_a_hairs_breadth() {
    // 6 lines carry 2.96 Erlang at 5 % loss, so orders come exactly at the border between 6 and 7.
    let mut pool = Pool::new(GOAL, Duration::from_secs(3600), 20);
    pool.after(40_000, 2.96 / 20.0);
    let (mut changes, mut last) = (0, pool.level().size);
    pool.lives(100_000, 2.96 / 20.0, |_, level| {
        changes += u32::from(level.size != last);
        last = level.size;
    });
    assert!(changes <= 30, "{changes} changes in a day of steady demand");
}

#[test]
fn orders_that_are_reported_in_batches_count_as_those_reported_one_by_one() {
    let (mut singly, mut batched) =
        (Sizer::new(GOAL, USABLE, USABLE / 4), Sizer::new(GOAL, USABLE, USABLE / 4));
    for tick in 1..=4000_u64 {
        let now = Timestamp::from_millis(tick * 500);
        singly.asked(now, 1);
        singly.level(now);
        if tick % 4 == 0 {
            batched.asked(now, 4);
        }
    }
    let now = Timestamp::from_millis(4000 * 500);
    assert_eq!(singly.level(now).size, batched.level(now).size);
    assert!(singly.level(now).size.abs_diff(erlangs(40.0)) <= 1, "{:?}", singly.level(now));
}

#[test]
fn leads_are_learned_and_a_provider_that_becomes_slow_is_followed() {
    let mut pool = Pool::new(GOAL, USABLE, 60);
    pool.lead = Duration::from_secs(10);
    let level = pool.after(5000, 1.0);
    assert!(level.size.abs_diff(erlangs(10.0)) <= 1, "{level:?}");
    pool.lead = Duration::from_secs(30);
    let level = pool.after(3600, 1.0);
    assert!(level.size.abs_diff(erlangs(30.0)) <= 2, "{level:?}");
    assert!((28.0..32.0).contains(&level.lead.as_secs_f64()), "{level:?}");
}

#[test]
fn a_clock_that_jumps_costs_a_lifetime_of_learning_and_no_more() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    let wanted = pool.after(10_000, 1.0).size;
    for jump_ms in [3_600_000, -3_600_000, 400_000_000_000, -400_000_000_000_i64] {
        pool.now_ms = pool.now_ms.saturating_add_signed(jump_ms);
        pool.level();
        let level = pool.after(LIFE_S, 1.0);
        assert!(level.size.abs_diff(wanted) <= wanted / 4, "{jump_ms} ms: {wanted}, and not {level:?}");
    }
}

#[test]
fn a_fixed_size_is_held_within_what_a_pool_may_hold() {
    let mut pool = Pool::new(Goal::Fixed { size: 5 }, USABLE, 20);
    assert_eq!((pool.after(10_000, 0.0).size, pool.level().why), (5, Why::Fixed));
    pool.sizer.set_goal(Goal::Fixed { size: u32::MAX });
    assert_eq!(pool.level().size, SIZE_MAX);
}

#[test]
fn a_new_goal_and_a_shorter_life_count_at_once() {
    let mut pool = Pool::new(GOAL, USABLE, 20);
    let before = pool.after(10_000, 0.3).size;
    pool.sizer.set_goal(Goal::Served { permille: 500 });
    let less = pool.level().size;
    assert!(less < before, "{less} and {before}");
    pool.sizer.set_goal(GOAL);
    assert_eq!(pool.level().size, before);
    pool.sizer.set_usable(Duration::from_secs(9));
    assert!(matches!(pool.level().why, Why::TooLittleDemand { .. }), "{:?}", pool.level());
    pool.sizer.set_usable(Duration::ZERO);
    assert_eq!(pool.after(100, 0.3).size, 0);
    pool.sizer.set_usable(Duration::MAX);
    assert!(pool.after(LIFE_S, 0.3).size.abs_diff(before) <= 2, "{:?}", pool.level());
}

#[test]
fn no_pool_is_larger_than_the_most_that_one_may_hold() {
    let mut pool = Pool::new(GOAL, USABLE, 60);
    let level = pool.after(300, 40.0);
    assert_eq!(level.size, SIZE_MAX);
    assert!(matches!(level.why, Why::TooMuchDemand { .. }), "{level:?}");
    assert!(level.why.to_string().ends_with("more than the 1000 that a pool may hold"), "{}", level.why);
    assert!(level.served < 0.6, "{level:?}");
}

#[test]
fn what_is_on_its_way_is_not_bought_twice() {
    assert_eq!(shortfall(5, 0, 0), 5);
    assert_eq!(shortfall(5, 2, 2), 1);
    assert_eq!(shortfall(5, 2, 3), 0);
    assert_eq!(shortfall(5, 9, 0), 0, "a level that has fallen takes nothing back");
    assert_eq!(shortfall(5, u32::MAX, u32::MAX), 0);
}
