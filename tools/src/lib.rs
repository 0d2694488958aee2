//! What the programs of this package share. It is no API: any release may change it. README.md says what the programs do.
#![doc(hidden)]
#![expect(missing_debug_implementations, reason = "only the programs of this package use it")]

pub mod collate;
pub mod end;
pub mod format;
pub mod measure;
pub mod open;
pub mod order;
pub mod remote;
pub mod row;
pub mod size;
