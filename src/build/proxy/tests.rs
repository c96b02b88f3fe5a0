use super::*;

fn proxy(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Proxy) {
    let directory = tempfile::tempdir().unwrap();
    let repositories = ["https://files.example.com/o/r?ref=v1", "http://plain.example.com/o/r"];
    let served = Served::new(files.iter().copied(), repositories, directory.path()).unwrap();
    let proxy = Proxy::start(&Arc::new(served)).unwrap();
    (directory, proxy)
}

/// Asks the proxy as a client does, and returns the status and the body.
fn get(proxy: &Proxy, url: &str) -> Result<(u16, String), reqwest::Error> {
    let pem = std::fs::read(&proxy.shared.served.certificate).unwrap();
    let address = format!("http://{USER}:{}@{}", proxy.shared.served.password, proxy.address);
    let mut roots = rustls::RootCertStore::empty();
    let certificate = rustls::pki_types::pem::PemObject::from_pem_slice(&pem).unwrap();
    roots.add(certificate).unwrap();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::blocking::Client::builder()
        .tls_backend_preconfigured(tls)
        .proxy(reqwest::Proxy::all(address).unwrap())
        .build()?;
    let response = client.get(url).send()?;
    let status = response.status().as_u16();
    Ok((status, response.text()?))
}

fn raw(proxy: &Proxy, text: &[u8]) -> String {
    let mut stream = TcpStream::connect(proxy.address).unwrap();
    // It may hang up before it has read all of it.
    stream.write_all(text).ok();
    stream.shutdown(std::net::Shutdown::Write).ok();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).ok();
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn fetched_files_are_served_over_http_and_https() {
    let (_directory, proxy) = proxy(&[
        ("https://files.example.com/a/map.yaml", b"one"),
        ("https://files.example.com:8443/map.yaml?v=1&w=a b", b"two"),
        ("http://plain.example.com/sp%61ce%20d.yaml#part", b"three"),
        ("https://user:hunter2@FILES.example.com/secret.yaml", b"four"),
        ("https://192.0.2.7/ip.yaml", b"ip"),
        ("https://files.example.com/empty", b""),
    ]);
    for (url, body) in [
        ("https://files.example.com/a/map.yaml", "one"),
        ("https://files.example.com:443/a/map.yaml", "one"),
        ("https://files.example.com:8443/map.yaml?v=1&w=a%20b", "two"),
        ("http://plain.example.com/space%20d.yaml", "three"),
        ("https://files.example.com/secret.yaml", "four"),
        ("https://192.0.2.7/ip.yaml", "ip"),
        ("https://files.example.com/empty", ""),
    ] {
        assert_eq!(get(&proxy, url).unwrap(), (200, body.to_owned()), "{url}");
    }
}

#[test]
fn everything_else_is_refused() {
    let (_directory, proxy) =
        proxy(&[("https://files.example.com/map.yaml", b"one"), ("http://plain.example.com/one", b"one")]);
    for url in [
        "https://files.example.com/other.yaml",
        "https://files.example.com/map.yaml?v=2",
        "https://files.example.com//map.yaml",
        "http://files.example.com/map.yaml",
        "http://files.example.com/map.yaml?token=hunter2",
    ] {
        let (status, body) = get(&proxy, url).unwrap();
        assert_eq!((status, body.as_str()), (403, "this was not fetched\n"), "{url}");
        let shown = url.replace("hunter2", "REDACTED");
        assert!(proxy.refused().contains(&shown), "{shown}: {:?}", proxy.refused());
    }
    assert!(get(&proxy, "https://elsewhere.example.com/map.yaml").is_ok_and(|(s, _)| s == 403));
    assert!(get(&proxy, "https://files.example.com:8443/map.yaml").is_ok_and(|(s, _)| s == 403));
    // Asking is all that can be done.
    let said = raw(&proxy, b"POST http://files.example.com/map.yaml HTTP/1.1\r\n\r\n");
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    raw(&proxy, b"SSH-2.0-OpenSSH_9.2\r\n");
    raw(&proxy, b"CONNECT dark.example.com:443 HTTP/1.1\r\n\r\n");
    // Other users of the machine do not know the password.
    for login in ["", "Proxy-Authorization: Basic YnVpbGQ6eA==\r\n"] {
        let said = raw(&proxy, format!("GET http://plain.example.com/one HTTP/1.1\r\n{login}\r\n").as_bytes());
        assert!(said.starts_with("HTTP/1.1 403 ") && !said.contains("one"), "{said}");
    }
    let refused = proxy.refused();
    for noted in [
        "https://elsewhere.example.com/map.yaml",
        "https://files.example.com:8443/map.yaml",
        "http://files.example.com/map.yaml",
        "a connection that is not HTTP",
        "https://dark.example.com/",
    ] {
        assert!(refused.contains(noted), "{noted}: {refused:?}");
    }
}

#[test]
fn kustomize_may_ask_for_the_url_of_a_repository_in_vain() {
    let (_directory, proxy) = proxy(&[("https://files.example.com/map.yaml", b"one")]);
    for url in
        ["https://files.example.com/map.yaml", "https://files.example.com/o/r?ref=v1", "http://plain.example.com/o/r"]
    {
        get(&proxy, url).unwrap();
    }
    assert_eq!(proxy.refused(), BTreeSet::new());
    get(&proxy, "https://files.example.com/o/r?ref=v2").unwrap();
    assert_eq!(proxy.refused().len(), 1);
}

#[test]
fn one_address_with_two_contents_is_served_by_neither() {
    let (_directory, proxy) = proxy(&[
        ("http://one:a@files.example.com/map.yaml", b"one"),
        ("http://two:b@files.example.com/map.yaml", b"two"),
        ("http://one:a@files.example.com/same.yaml", b"same"),
        ("http://two:b@files.example.com/same.yaml", b"same"),
    ]);
    assert_eq!(get(&proxy, "http://files.example.com/map.yaml").unwrap().0, 403);
    assert_eq!(get(&proxy, "http://files.example.com/same.yaml").unwrap().0, 200);
}

#[test]
fn malformed_requests_do_no_harm() {
    let (_directory, proxy) = proxy(&[("http://files.example.com/map.yaml", b"one")]);
    for text in [
        b"" as &[u8],
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /map.yaml HTTP/1.1\r\nHost: files.example.com\r\n",
        b"\xff\xfe\r\n\r\n",
        b"\x16\x03\x01\x00",
        b"CONNECT  HTTP/1.1\r\n\r\n",
        b"CONNECT a b c HTTP/1.1\r\n\r\n",
        &[b'a'; 100_000],
    ] {
        assert!(!raw(&proxy, text).contains("one"), "{text:?}");
    }
    // More at the same time than are answered.
    let idle: Vec<_> = (0..2 * CONNECTIONS).map(|_| TcpStream::connect(proxy.address).unwrap()).collect();
    drop(idle);
    let answers = || get(&proxy, "http://files.example.com/map.yaml").is_ok_and(|(s, _)| s == 200);
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while !answers() {
        assert!(std::time::Instant::now() < end, "idle connections have ended");
    }
}

#[test]
fn it_ends_when_it_is_dropped_and_leaves_no_key() {
    let (directory, proxy) = proxy(&[("https://files.example.com/map.yaml", b"one")]);
    let address = proxy.address;
    assert!(address.ip().is_loopback());
    drop(proxy);
    assert!(TcpStream::connect(address).is_err());
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(text.contains("BEGIN CERTIFICATE") && !text.contains("KEY"), "{text}");
    }
}

#[test]
fn hosts_on_this_machine_are_recognized() {
    for (url, expected) in [
        ("http://127.0.0.1:80/a", true),
        ("http://127.9.9.9/a", true),
        ("http://localhost/a", true),
        ("https://[::1]/a", true),
        ("https://example.com/a", false),
        ("https://127.0.0.1.example.com/a", false),
        ("nothing", false),
    ] {
        assert_eq!(is_direct(url), expected, "{url}");
    }
}
