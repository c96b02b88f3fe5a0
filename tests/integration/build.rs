mod compared;
mod engines;
mod proof;
