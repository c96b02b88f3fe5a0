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

#[test]
fn a_private_ca_is_trusted_only_when_it_is_named() {
    let (pem, config) = authority();
    let server = Server::https(config, |_, _| ok("tls\n"));

    let url = server.url("/f");
    let failure = get(&url).unwrap_err();
    assert!(failure.message.contains("TLS connection to "), "{failure:?}");
    assert!(failure.hints.join("\n").contains("SSL_CERT_FILE"), "{failure:?}");
    assert!(server.requests().is_empty());

    let client = client(bounds());
    let trusted = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
    let connection = reqwest::blocking::Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap();
    client.clients.lock().unwrap().insert((true, None), connection);
    assert_eq!(text(get_with(&client, &url)), "tls\n");
}
