//! What each client is told, to the byte: the four dialects, the errors, and what becomes of nonsense. The world of these
//! tests is an engine on a store in memory, a provider that does as the test says, and the door.

mod dialects;
mod errors;
mod nonsense;
#[path = "../../tests/gateway/still_clock.rs"]
mod still_clock;
mod tenants;
mod troubles;
mod world;
