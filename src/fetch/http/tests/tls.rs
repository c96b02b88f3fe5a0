//! Whom the client trusts.

use std::sync::Arc;

use super::server::{Server, ok};
use super::*;

/// A CA's certificate as PEM, and a server for 127.0.0.1 that it vouches for.
fn authority() -> (String, rustls::ServerConfig) {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    (pem, config)
}

fn trusting(roots: Roots) -> Client {
    let surroundings = Surroundings { roots, ..Surroundings::default() };
    Client::with(options(), nobody(), Arc::default(), surroundings)
}

#[test]
fn a_private_ca_is_trusted_when_named_and_only_then() {
    let (pem, config) = authority();
    let server = Server::https(config, |_, _| ok("tls\n"));

    let error = get(&server.url("/f")).unwrap_err();
    assert!(error.to_string().starts_with("no trusted connection to "), "{error:?}");
    let hints = error.into_failure(&server.url("/f")).hints.join("\n");
    assert!(hints.contains("SSL_CERT_FILE"), "{hints}");
    assert!(server.requests().is_empty());

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&file, format!("a comment\n{broken}{pem}")).unwrap();
    for roots in [
        Roots { file: Some(file.clone()), directories: vec![directory.path().join("absent")] },
        Roots { file: None, directories: vec![directory.path().to_owned()] },
    ] {
        let client = trusting(roots);
        assert_eq!(text(client.get(&server.url("/f"), Access::FREE)), "tls\n");
    }
}
