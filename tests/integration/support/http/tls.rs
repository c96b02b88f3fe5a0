//! A certificate authority that only the sandbox trusts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, OnceLock};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Signs a certificate for every host that is requested.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pem: String,
    hosts: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl Authority {
    /// Returns the one of all servers: to make keys takes longer than most tests.
    pub(super) fn shared() -> &'static Authority {
        static SHARED: OnceLock<Authority> = OnceLock::new();
        SHARED.get_or_init(Authority::new)
    }

    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of the tests");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { pem: issuer.pem(), issuer, hosts: Mutex::default() }
    }

    /// Returns the certificate of the authority.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Begins TLS as `host`.
    pub(super) fn accept(&self, stream: TcpStream, host: &str) -> io::Result<Tls> {
        let config = match self.hosts.lock().unwrap().entry(host.to_owned()) {
            Entry::Occupied(entry) => Arc::clone(entry.get()),
            Entry::Vacant(entry) => Arc::clone(entry.insert(self.configuration(host)?)),
        };
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Tls(StreamOwned::new(connection, stream)))
    }

    /// Fails for a host that no certificate can name.
    fn configuration(&self, host: &str) -> io::Result<Arc<ServerConfig>> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, host);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Ok(Arc::new(config))
    }
}

/// A TLS connection that sends `close_notify`, so that clients can tell an end from a cut.
pub(super) struct Tls(StreamOwned<ServerConnection, TcpStream>);

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.0.conn.send_close_notify();
        self.0.flush().ok();
    }
}
