//! The main job, played through on this machine: `cargo run --locked --example localize`.
//!
//! Makes two upstream repositories and a user's repository in a temporary directory, localizes one overlay of the
//! latter, and shows git's view of the result. Nothing leaves the machine: [`upstream`] serves what the URLs name. The
//! directory is kept for inspection.
//!
//! The program under show is this very executable under the name `git-kustomize-localize`, which is
//! how git finds its sub-commands.

#![allow(clippy::print_stdout)]

mod stage;
mod upstream;

use std::process::ExitCode;

use stage::{Result, Stage};

/// The user's overlay, as people write them: with comments and an order of their own.
const OVERLAY: &str = "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: shop

resources:
  - ../../base
  # Ask #team-platform before you raise this.
  - https://github.com/example-org/platform//monitoring?ref=v2.1.0
  - \"http://manifests.example.com/shop/v3/quota.yaml\" # by the capacity team

replicas: [{name: shop, count: 5}]
";

const BASE: &str = "\
resources:
- deployment.yaml
- https://github.com/example-org/platform//network/deny-all?ref=v2.1.0
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
      - name: shop
        image: registry.example.com/shop:1.4.2
";

fn main() -> ExitCode {
    if let Some(status) = git_kustomize_localize::as_git() {
        return status;
    }
    if stage::is_the_program() {
        return git_kustomize_localize::main();
    }
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("the example could not be played: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play() -> Result<()> {
    let stage = Stage::set()?;
    upstream::repositories(&stage)?;
    let shop = stage.repository("shop")?;
    stage.write("shop/deploy/overlays/production/kustomization.yaml", OVERLAY)?;
    stage.write("shop/deploy/base/kustomization.yaml", BASE)?;
    stage.write("shop/deploy/base/deployment.yaml", DEPLOYMENT)?;
    stage.write("shop/README.md", "The shop.\n")?;
    stage.commit("shop", "Deploy the shop")?;

    println!("A repository, and an overlay that a build can only read with a network:\n");
    shop.show(&["ls-tree", "-r", "--name-only", "HEAD"])?;
    shop.show(&["grep", "-n", "http", "HEAD", "--", "deploy"])?;

    println!("Localize it. Everything it references, and what that references in turn:\n");
    let target = "deploy/overlays/production";
    shop.show(&["kustomize-localize", target, "--scope", "deploy"])?;

    println!("The commit says where every byte came from:\n");
    shop.show(&["log", "-1", "--format=%B", "localized/main"])?;

    println!("The branch holds the repository, and a copy that names no URL:\n");
    shop.show(&["ls-tree", "-r", "--name-only", "localized/main"])?;

    println!("What was written by hand is as it was, but for the references:\n");
    let original = format!("main:{target}/kustomization.yaml");
    let localized = "localized/main:localized-production/overlays/production/kustomization.yaml";
    shop.show(&["diff", &original, localized])?;

    println!("Branch, index and working tree of the user are as they were:\n");
    shop.show(&["status", "--short", "--branch"])?;

    println!("Again, with nothing changed: no commit.\n");
    shop.show(&["kustomize-localize", target, "--scope", "deploy", "--offline"])?;

    println!("The repository is left for a look around:\n\n    cd {}", shop.path());
    println!("    git log --graph --oneline --all");
    println!("    git show localized/main:localized-production/kustomize-localize.lock");
    Ok(())
}
