mod action;
mod installed;
mod pre_commit;
mod recipes;
