//! The memory store.
#[derive(Debug)]
pub struct MemoryStore;
#[derive(Debug)]
pub struct MemorySpill;
