//! What the integration tests share: a place to work in, repositories, servers, the real kustomize.
//!
//! A test of what is found in files needs none of it, and stands beside the code; with the real kustomize it starts
//! from [`Memory`]. One that fetches starts from [`World`], or from [`Project`] where one upstream will do; any other
//! from [`Sandbox::new`], which gives out [`Repo`]s, runs the program and git, and knows how to send both to a loopback
//! [`Server`] instead of the real hosts.

mod http;
mod kustomize;
mod memory;
pub(crate) mod pages;
mod process;
mod programs;
mod project;
mod random;
mod repo;
mod sandbox;
pub(crate) mod schema;
mod selftest;
mod state;
mod template;
mod tool;
mod world;

pub(crate) use http::{Limit, Reply, Request, Server, base64};
pub(crate) use kustomize::Kustomize;
pub(crate) use memory::Memory;
pub(crate) use process::{Output, Running, Transcript, ended_within, wait_until};
pub(crate) use project::{OVERLAY, Project, base_of, config, service};
pub(crate) use random::Random;
pub(crate) use repo::Repo;
pub(crate) use sandbox::Sandbox;
pub(crate) use state::{State, each_file, files};
pub(crate) use tool::{NO_MOUNT, full, program, rows, skip, tool};
pub(crate) use world::{World, config_map, deployment};

/// No texts: the expected value of an empty list of texts, such as the requests of a server.
pub(crate) const NONE: [&str; 0] = [];
