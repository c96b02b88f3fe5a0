mod git;
mod http;
mod offline;
mod reach;
