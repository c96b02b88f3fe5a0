#[cfg(target_os = "linux")]
mod faults;
pub(crate) mod fuzz;
mod generated;
mod green;
mod hints;
mod judge;
#[cfg(debug_assertions)]
mod killed;
mod limits;
pub(crate) mod old_against_new;
mod parity;
mod processes;
mod secrets;
mod snapshots;
mod yaml;
mod year;
