//! What each client is told, to the byte: the four dialects, the errors, and what becomes of nonsense. The world of these
//! tests is an engine on a store in memory, a provider that does as the test says, and the door.

mod bad_input;
mod dialects;
mod errors;
mod fixture;
#[path = "../../tests/gateway/still_clock.rs"]
mod still_clock;
mod store_errors;
mod tenants;
