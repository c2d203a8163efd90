//! Tests of the screen and the text of `top`, through the interface that the command uses.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may end where it is")]

mod screens;
