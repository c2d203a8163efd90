//! The differences between the providers of the JSON protocol, as data: other code reads these facts and compares no
//! names. The facts describe both what a provider answers and what our own API must answer.

use crate::poll_rules::{KindRules, rules};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JsonDialect {
    TwoCaptcha,
    AntiCaptcha,
    CapSolver,
    CapMonster,
}

/// The fields of a finished task beside its solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    pub cost: bool,
    pub ip: bool,
    /// `createTime` and `endTime`, in seconds.
    pub times: bool,
    pub solve_count: bool,
}

/// What the provider takes, and how long it keeps results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    pub poll_rules: KindRules,
    /// The most polls of one task. The provider does not answer more.
    pub queries_per_task_max: Option<u32>,
    /// How long a result can be read.
    pub result_kept: Option<Duration>,
    /// The shortest time between two balance requests.
    pub balance_interval: Duration,
    pub file_bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonFacts {
    pub name: &'static str,
    pub ids_are_uuids: bool,
    /// Whether the reply to `createTask` holds the status of the task.
    pub status_in_create: bool,
    /// Whether the reply to `getTaskResult` repeats the task id.
    pub echoes_task: bool,
    pub error_id_always_one: bool,
    /// Whether clients of this dialect need `solution.userAgent` for Turnstile, even if it is empty.
    pub turnstile_has_agent: bool,
    /// Task types that are answered in `createTask` itself, by the end of their name. Clients look nowhere else.
    pub answered_in_create: &'static [&'static str],
    /// Whether the dialect has statistics (`getSpendingStats`, `getAppStats`, `getQueueStats`).
    pub has_statistics: bool,
    pub cost_is_string: bool,
    /// The status of a task that has not begun.
    pub status_new: &'static str,
    pub status_pending: &'static str,
    pub status_ready: &'static str,
    pub status_failed: Option<&'static str>,
    /// The HTTP status of an error.
    pub http_error: u16,
    pub http_key_error: u16,
    pub extras: Extras,
    /// The endpoints for reports of good answers: one for each type of task, the most likely first.
    pub report_good: &'static [&'static str],
    pub report_bad: &'static [&'static str],
    pub limits: JsonLimits,
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

const TWO_CAPTCHA: JsonFacts = JsonFacts {
    name: "2captcha",
    ids_are_uuids: false,
    status_in_create: false,
    echoes_task: false,
    error_id_always_one: false,
    turnstile_has_agent: true,
    answered_in_create: &[],
    has_statistics: true,
    cost_is_string: true,
    status_new: "processing",
    status_pending: "processing",
    status_ready: "ready",
    status_failed: None,
    http_error: 200,
    http_key_error: 200,
    extras: Extras { cost: true, ip: true, times: true, solve_count: true },
    report_good: &["reportCorrect"],
    report_bad: &["reportIncorrect"],
    limits: JsonLimits {
        // Advice, which is not enforced: 5 s before the first poll, and 5 s between polls.
        poll_rules: KindRules { pictures: rules(2, 2), tokens: rules(5, 2) },
        queries_per_task_max: None,
        result_kept: None,
        balance_interval: seconds(0),
        file_bytes_max: 600 * 1024,
    },
};

const ANTI_CAPTCHA: JsonFacts = JsonFacts {
    name: "anticaptcha",
    report_good: &["reportCorrectRecaptcha"],
    report_bad: &["reportIncorrectRecaptcha", "reportIncorrectImageCaptcha", "reportIncorrectHcaptcha"],
    limits: JsonLimits {
        // Its documents advise 5 s before the first poll, which is not enforced, and 2 to 3 s between polls.
        poll_rules: KindRules { pictures: rules(2, 2), tokens: rules(5, 2) },
        // Counted from the solve, and the same for reports.
        result_kept: Some(seconds(60)),
        balance_interval: seconds(30),
        file_bytes_max: 500 * 1024,
        ..TWO_CAPTCHA.limits
    },
    ..TWO_CAPTCHA
};

const CAP_SOLVER: JsonFacts = JsonFacts {
    name: "capsolver",
    ids_are_uuids: true,
    status_in_create: true,
    echoes_task: true,
    error_id_always_one: true,
    answered_in_create: &["ImageToTextTask", "VisionEngine", "Classification"],
    has_statistics: false,
    cost_is_string: false,
    status_new: "idle",
    status_failed: Some("failed"),
    http_error: 400,
    http_key_error: 401,
    extras: Extras { cost: false, ip: false, times: false, solve_count: false },
    report_good: &["feedbackTask"],
    report_bad: &["feedbackTask"],
    limits: JsonLimits {
        // 1 to 3 s before the first poll, and 3 s between polls.
        poll_rules: KindRules { pictures: rules(1, 3), tokens: rules(1, 3) },
        queries_per_task_max: Some(120),
        // Counted from the creation.
        result_kept: Some(seconds(300)),
        balance_interval: seconds(0),
        file_bytes_max: 1024 * 1024,
    },
    ..TWO_CAPTCHA
};

const CAP_MONSTER: JsonFacts = JsonFacts {
    name: "capmonster",
    error_id_always_one: true,
    turnstile_has_agent: false,
    has_statistics: false,
    cost_is_string: false,
    extras: Extras { cost: false, ip: false, times: false, solve_count: false },
    report_good: &[],
    report_bad: &["reportIncorrectTokenCaptcha", "reportIncorrectImageCaptcha"],
    limits: JsonLimits {
        // 1 to 10 s before the first poll, by type. It rejects polls that are less than 2 s apart.
        poll_rules: KindRules { pictures: rules(1, 2), tokens: rules(3, 2) },
        queries_per_task_max: Some(120),
        result_kept: Some(seconds(300)),
        balance_interval: seconds(0),
        file_bytes_max: 50 * 1024,
    },
    ..TWO_CAPTCHA
};

impl JsonDialect {
    pub const ALL: [Self; 4] = [Self::TwoCaptcha, Self::AntiCaptcha, Self::CapSolver, Self::CapMonster];

    #[must_use]
    pub const fn facts(self) -> &'static JsonFacts {
        match self {
            Self::TwoCaptcha => &TWO_CAPTCHA,
            Self::AntiCaptcha => &ANTI_CAPTCHA,
            Self::CapSolver => &CAP_SOLVER,
            Self::CapMonster => &CAP_MONSTER,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether `createTask` for this task type is answered with the solution.
    #[must_use]
    pub fn is_answered_in_create(self, type_name: &str) -> bool {
        let ends = |end: &&str| type_name.len().checked_sub(end.len()).and_then(|at| type_name.get(at..));
        self.facts()
            .answered_in_create
            .iter()
            .any(|end| ends(end).is_some_and(|tail| tail.eq_ignore_ascii_case(end)))
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name_and_no_other() {
        for dialect in JsonDialect::ALL {
            assert_eq!(JsonDialect::parse(dialect.name()), Some(dialect));
        }
        assert_eq!(JsonDialect::parse("CapSolver"), None);
    }
}
