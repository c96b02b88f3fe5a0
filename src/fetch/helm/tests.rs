use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const CHART: &str = "apiVersion: v2\nname: nginx\nversion: 1.2.3\n";

/// An archive with these entries, whatever their names say.
fn archive(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        // `set_path` refuses what a hostile archive does not.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        builder.append(&header, *bytes).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn regular(name: &str) -> Vec<u8> {
    let regular = tar::EntryType::Regular;
    archive(&[("nginx/Chart.yaml", regular, CHART.as_bytes()), (name, regular, b"x")])
}

fn wanted(version: &str) -> ChartRef {
    ChartRef { repo: "https://charts.example".into(), name: "nginx".into(), version: version.into(), devel: false }
}

fn refused(bytes: &[u8]) -> String {
    match unpack(&wanted("1.2.3"), bytes) {
        Err(failure) => failure.message,
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn a_chart_is_the_contents_of_its_directory() {
    // helm reads over a byte order mark.
    let marked = archive(&[("nginx/Chart.yaml", tar::EntryType::Regular, format!("\u{feff}{CHART}").as_bytes())]);
    assert_eq!(unpack(&wanted("1.2.3"), &marked).ok().unwrap().resolved, "1.2.3");
    let bytes = regular("nginx/templates/./a.yaml");
    let archive = unpack(&wanted("v1.2.3"), &bytes).ok().unwrap();
    let paths: Vec<&str> = archive.files.keys().map(String::as_str).collect();
    assert_eq!(paths, ["Chart.yaml", "templates/a.yaml"]);
    assert_eq!(archive.resolved, "1.2.3");
    assert_eq!(archive.size, bytes.len() as u64);
    assert!(unpack(&wanted("^1.0"), &bytes).is_ok());
    assert!(unpack(&wanted(""), &bytes).is_ok());
}

#[test]
fn entries_that_lead_out_are_refused() {
    for (name, reason) in [
        ("nginx/../../x", "leads out of the archive"),
        ("../x", "leads out of the archive"),
        ("/etc/x", "is absolute"),
        ("x", "is not in the directory of the chart"),
        ("nginx/a\\..\\b", "contains a character"),
        ("nginx/c:/x", "contains a character"),
        ("nginx/a\nb", "contains a character"),
        ("nginx/Chart.yaml", "appears twice"),
        ("nginx/Chart.yaml/x", "is both a file and a directory"),
    ] {
        let said = refused(&regular(name));
        assert!(said.contains(reason), "{name}: {said}");
        assert!(said.starts_with("the archive of https://charts.example#nginx@1.2.3 is refused: "), "{said}");
    }
    for kind in [tar::EntryType::Symlink, tar::EntryType::Link, tar::EntryType::Char, tar::EntryType::Fifo] {
        let said = refused(&archive(&[("nginx/x", kind, b"")]));
        assert!(said.contains("is a link") || said.contains("is not a regular file"), "{kind:?}: {said}");
    }
}

#[test]
fn malformed_archives_are_refused() {
    assert!(refused(b"").contains("not compressed with gzip"));
    assert!(refused(b"<!doctype html>").contains("not compressed with gzip"));
    let whole = regular("nginx/x");
    assert!(refused(&whole[..whole.len() / 2]).contains("damaged"));
    let none = archive(&[("nginx/x", tar::EntryType::Regular, b"x")]);
    assert!(refused(&none).contains("it has no `Chart.yaml`"));
    let other = CHART.replace("nginx", "redis");
    let other = archive(&[("nginx/Chart.yaml", tar::EntryType::Regular, other.as_bytes())]);
    assert!(refused(&other).ends_with("expected the chart `nginx`, found `redis`"));
    let other = CHART.replace("1.2.3", "1.2.4");
    let other = archive(&[("nginx/Chart.yaml", tar::EntryType::Regular, other.as_bytes())]);
    assert!(refused(&other).ends_with("expected version `1.2.3`, found `1.2.4`"));
}

#[test]
fn a_bomb_is_not_read_to_its_end() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = tar::Header::new_gnu();
    header.set_path("nginx/x").unwrap();
    header.set_size(1 << 40);
    header.set_cksum();
    encoder.write_all(header.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..160 {
        encoder.write_all(&zeros).unwrap();
    }
    let bytes = encoder.finish().unwrap();
    assert!(bytes.len() < 1 << 20);
    let said = refused(&bytes);
    assert!(said.contains("more than 104857600 bytes"), "{said}");
}

#[test]
fn an_archive_that_is_cut_between_two_entries_is_not_read() {
    // The limit is a multiple of the size of a header, so directories alone end right at it.
    let mut header = tar::Header::new_gnu();
    header.set_path("nginx/").unwrap();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_cksum();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&header.as_bytes().repeat(2048)).unwrap();
    // A stream may have several members.
    let bytes = encoder.finish().unwrap().repeat(160);
    let said = refused(&bytes);
    assert!(said.contains("it is too large"), "{said}");
}
