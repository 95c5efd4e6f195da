//! The directives about TLS at the start: what is refused, what is named, with and without the feature.

mod support;

use std::fs;
use std::process::{Command, Output};

use support::ports;
use support::process::Folder;

/// Starts (or checks) the real binary with these lines, which have to make it fail or need `--check-config`.
fn run(folder: &Folder, lines: &str, check: bool) -> Output {
    let conf = folder.path().join("sentinel.conf");
    fs::write(&conf, format!("port {}\nbind 127.0.0.1\n{lines}\n", ports::free())).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_watchfire"));
    command.arg(&conf).args(check.then_some("--check-config"));
    command.output().unwrap()
}

fn refusal(folder: &Folder, lines: &str) -> String {
    let output = run(folder, lines, false);
    assert_eq!(output.status.code(), Some(1), "{lines}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn values_that_say_nothing_about_tls_are_accepted_by_every_build() {
    let folder = Folder::new("tls-start");
    let lines = "tls-port 0\ntls-replication no\ntls-cluster yes\ntls-auth-clients yes\ntls-session-caching yes\ntls-ciphers \"\"";
    let output = run(&folder, lines, true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(not(feature = "tls"))]
#[test]
fn without_the_feature_what_needs_tls_is_refused_with_a_word() {
    let folder = Folder::new("tls-start");
    for line in ["tls-port 26380", "tls-replication yes", "tls-cert-file /etc/node.crt", "tls-auth-clients no"] {
        let said = refusal(&folder, line);
        let name = line.split(' ').next().unwrap();
        assert!(said.contains(&format!(">>> '{line}'\n{name} is not supported by this build")), "{said}");
        assert!(said.contains("built without TLS"), "{said}");
    }
}

#[cfg(feature = "tls")]
mod with_tls {
    use super::{refusal, run};
    use crate::support::process::Folder;
    use rcgen::{CertificateParams, KeyPair};
    use std::fs;

    fn place() -> Folder {
        let folder = Folder::new("tls-start");
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_string()]).unwrap().self_signed(&key).unwrap();
        fs::write(folder.path().join("crt"), certificate.pem()).unwrap();
        fs::write(folder.path().join("key"), key.serialize_pem()).unwrap();
        fs::write(folder.path().join("other"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
        fs::write(folder.path().join("encrypted"), encrypted).unwrap();
        folder
    }

    /// `@` stands for the folder.
    fn at(folder: &Folder, lines: &str) -> String {
        lines.replace('@', &format!("{}/", folder.path().display()))
    }

    const GOOD: &str = "tls-port 1\ntls-cert-file @crt\ntls-key-file @key\ntls-ca-cert-file @crt";

    #[test]
    fn values_that_cannot_be_used_are_refused_with_their_line() {
        let folder = place();
        for (line, word) in [
            ("tls-port 70000", "between 0 and 65535"),
            ("tls-protocols TLSv1.1", "TLS 1.0 and 1.1 are broken"),
            ("tls-protocols \"TLSv1.2 TLSv1\"", "TLS 1.0 and 1.1 are broken"),
            ("tls-protocols SSLv3", "Invalid tls-protocols specified"),
            ("tls-auth-clients perhaps", "no, yes, optional"),
            ("tls-session-caching 1", "'yes' or 'no'"),
            ("tls-session-cache-size -1", "between"),
        ] {
            let said = refusal(&folder, line);
            assert!(said.contains(&format!(">>> '{line}'")) && said.contains(word), "{said}");
        }
    }

    #[test]
    fn files_and_suites_that_cannot_be_used_are_named() {
        let folder = place();
        for (change, word) in [
            ("tls-cert-file \"\"", "tls-cert-file, which is not set"),
            ("tls-key-file \"\"", "tls-key-file, which is not set"),
            ("tls-cert-file @nowhere", "nowhere: No such file"),
            ("tls-cert-file @key", "there is no certificate in it"),
            ("tls-key-file @crt", "there is no private key in it"),
            ("tls-key-file @other", "the private key is not that of the certificate"),
            ("tls-key-file @encrypted\ntls-key-file-pass secret", "is encrypted"),
            ("tls-ca-cert-file \"\"", "tls-ca-cert-file or tls-ca-cert-dir is needed"),
            ("tls-ca-cert-file @key", "there is no certificate in it"),
            ("tls-ca-cert-dir @nowhere", "nowhere: No such file"),
            ("tls-ciphers AES128-SHA", "none of the cipher suites for TLS 1.2"),
            ("tls-ciphersuites TLS_AES_128_CCM_SHA256", "none of the cipher suites for TLS 1.3"),
            ("tls-client-cert-file @nowhere\ntls-client-key-file @key", "nowhere: No such file"),
        ] {
            let lines = at(&folder, &format!("{GOOD}\n{change}"));
            for said in [refusal(&folder, &lines), {
                let output = run(&folder, &lines, true);
                String::from_utf8_lossy(&output.stderr).into_owned()
            }] {
                assert!(said.starts_with("Failed to configure TLS. ") && said.contains(word), "{change}: {said}");
                assert!(!said.contains("secret"));
            }
        }
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let folder = place();
        let check = |lines: &str| {
            let output = run(&folder, &at(&folder, lines), true);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert!(check(&format!("{GOOD}\ntls-dh-params-file @crt")).contains("tls-dh-params-file: without effect"));
        assert!(check(&format!("{GOOD}\ntls-key-file-pass secret")).contains("tls-key-file-pass: without effect"));
        assert!(check(&format!("{GOOD}\ntls-ciphers AES128-SHA:HIGH")).contains("NOT in effect: AES128-SHA"));
        assert!(check(&format!("{GOOD}\ntls-auth-clients-user CN")).contains("NOT in effect"));
        // One half of a pair is not even looked at, as in redis.
        for (given, missing) in [("cert", "key"), ("key", "cert")] {
            let text = format!("tls-client-{given}-file without tls-client-{missing}-file: NOT in effect");
            assert!(check(&format!("{GOOD}\ntls-client-{given}-file @nowhere")).contains(&text));
        }
        assert!(check(&format!("{GOOD}\ntls-port 0")).contains("TLS is NOT in use"));
        assert!(check(&format!("{GOOD}\ntls-port 0\ntls-replication yes")).contains("without tls-port"));
        // Nobody without a certificate gets in, so nobody is warned of strangers.
        for (auth, doubted) in [("yes", false), ("optional", true)] {
            let said = check(&format!("{GOOD}\nport 0\nbind *\ntls-auth-clients {auth}"));
            assert_eq!(said.contains("Anybody who reaches this port"), doubted, "{auth}: {said}");
        }
    }
}
