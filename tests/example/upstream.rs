//! What the URLs of the example name: two repositories, found by git's `insteadOf`, and a file,
//! answered by a proxy on loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::stage::{Result, Stage};

const QUOTA: &str = "\
apiVersion: v1
kind: ResourceQuota
metadata:
  name: quota
spec:
  hard: {pods: \"20\"}
";

const FILES: [(&str, &str); 8] = [
    (
        "platform/monitoring/kustomization.yaml",
        "\
resources:
- monitor.yaml
- ../alerts
components:
- https://github.com/example-org/labels//owner?ref=v7
",
    ),
    (
        "platform/monitoring/monitor.yaml",
        "\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: shop}
",
    ),
    (
        "platform/alerts/kustomization.yaml",
        "\
configMapGenerator:
- name: alerts
  files: [rules.txt]
",
    ),
    ("platform/alerts/rules.txt", "page when slow\n"),
    ("platform/network/deny-all/kustomization.yaml", "resources: [policy.yaml]\n"),
    (
        "platform/network/deny-all/policy.yaml",
        "\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny-all}
spec: {podSelector: {}}
",
    ),
    ("platform/unrelated/large.bin", "never copied\n"),
    (
        "labels/owner/kustomization.yaml",
        "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
labels:
- pairs: {owner: platform}
",
    ),
];

/// Makes the upstreams, and has their URLs lead to them.
pub(crate) fn repositories(stage: &Stage) -> Result<()> {
    for (path, text) in FILES {
        stage.write(&format!("upstream/{path}"), text)?;
    }
    for (name, tag) in [("platform", "v2.1.0"), ("labels", "v7")] {
        let name = format!("upstream/{name}");
        stage.repository(&name)?;
        stage.commit(&name, "Publish")?;
        stage.quiet(&stage.path(&name), &["tag", tag])?;
    }
    stage.pretend("https://github.com/example-org/", "upstream")?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    stage.set_variable("http_proxy", format!("http://{}", listener.local_addr()?));
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A client that goes away early has what it wanted.
            thread::spawn(|| answer(connection).ok());
        }
    });
    // Whatever else were asked for would get no further than this machine.
    for (name, proxy) in [("https_proxy", "http://127.0.0.1:9"), ("no_proxy", "")] {
        stage.set_variable(name, proxy.to_owned());
    }
    Ok(())
}

/// Answers one request, as the proxy for every host.
fn answer(connection: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(&connection).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The answer ends the connection: unread headers would make it look broken.
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = if request.starts_with("GET http://manifests.example.com/shop/v3/quota.yaml ") {
        ("200 OK", QUOTA)
    } else {
        ("404 Not Found", "there is no such file\n")
    };
    write!(&connection, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}
