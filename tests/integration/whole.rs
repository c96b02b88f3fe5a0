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
mod parity;
mod pathspecs;
mod processes;
mod secrets;
mod snapshots;
mod yaml;
mod year;
