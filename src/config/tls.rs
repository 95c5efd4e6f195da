//! The directives about TLS. Whether files and suites can be used shows when the shell loads them; here is what the text
//! alone can tell.

use super::directives::Directive;
use super::error::Fault;
use super::options::{integer, one_of, text, yes_or_no};
use crate::base::Alike;
use std::fmt;

/// What is said about TLS, with redis-sentinel's defaults.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// 0: no TLS listener.
    pub port: u16,
    /// Outgoing links use TLS.
    pub replication: bool,
    pub cert_file: String,
    pub key_file: String,
    /// Of no use: the key has to be without one.
    pub key_file_pass: Vec<u8>,
    /// On outgoing links; empty: `cert_file`.
    pub client_cert_file: String,
    pub client_key_file: String,
    pub client_key_file_pass: Vec<u8>,
    pub ca_cert_file: String,
    pub ca_cert_dir: String,
    /// Without effect.
    pub dh_params_file: String,
    pub auth_clients: AuthClients,
    /// TLS 1.2 and TLS 1.3; at least one.
    pub protocols: (bool, bool),
    /// In OpenSSL's words; empty: all.
    pub ciphers: String,
    pub ciphersuites: String,
    pub prefer_server_ciphers: bool,
    pub session_caching: bool,
    /// 0: no limit.
    pub session_cache_size: u32,
    /// Seconds.
    pub session_cache_timeout: u32,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    No,
    Yes,
    /// They may; a bad one is refused.
    Optional,
}

impl Default for TlsOptions {
    fn default() -> Self {
        TlsOptions {
            port: 0,
            replication: false,
            cert_file: String::new(),
            key_file: String::new(),
            key_file_pass: Vec::new(),
            client_cert_file: String::new(),
            client_key_file: String::new(),
            client_key_file_pass: Vec::new(),
            ca_cert_file: String::new(),
            ca_cert_dir: String::new(),
            dh_params_file: String::new(),
            auth_clients: AuthClients::Yes,
            protocols: (true, true),
            ciphers: String::new(),
            ciphersuites: String::new(),
            prefer_server_ciphers: false,
            session_caching: true,
            session_cache_size: 20_480,
            session_cache_timeout: 300,
        }
    }
}

/// The passwords are nobody's business.
impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (port, replication, certificate) = (self.port, self.replication, &self.cert_file);
        write!(f, "TlsOptions {{ port: {port}, replication: {replication}, cert_file: {certificate:?}, .. }}")
    }
}

impl TlsOptions {
    /// Whether TLS is spoken at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.port != 0 || self.replication
    }

    pub(super) fn set(&mut self, row: &Directive, value: &[u8]) -> Result<(), Fault> {
        let harmless = value.alike(row.default.as_bytes());
        if cfg!(not(feature = "tls")) && !harmless {
            let hint = "this watchfire was built without TLS; build it with the feature 'tls'";
            return Err(Fault::with_hint(format!("{} is not supported by this build", row.name), hint));
        }
        let small = |number: i64| u32::try_from(number).expect("the table's bounds fit");
        match row.name {
            "tls-port" => self.port = u16::try_from(integer(row, value)?).expect("the table's bounds fit"),
            "tls-replication" => self.replication = yes_or_no(value)?,
            "tls-cert-file" => self.cert_file = text(value)?,
            "tls-key-file" => self.key_file = text(value)?,
            "tls-key-file-pass" => self.key_file_pass = value.to_vec(),
            "tls-client-cert-file" => self.client_cert_file = text(value)?,
            "tls-client-key-file" => self.client_key_file = text(value)?,
            "tls-client-key-file-pass" => self.client_key_file_pass = value.to_vec(),
            "tls-ca-cert-file" => self.ca_cert_file = text(value)?,
            "tls-ca-cert-dir" => self.ca_cert_dir = text(value)?,
            "tls-dh-params-file" => self.dh_params_file = text(value)?,
            "tls-auth-clients" => {
                self.auth_clients = match one_of(row, value)? {
                    "no" => AuthClients::No,
                    "optional" => AuthClients::Optional,
                    _ => AuthClients::Yes,
                }
            }
            "tls-protocols" => self.protocols = protocols(&text(value)?)?,
            "tls-ciphers" => self.ciphers = text(value)?,
            "tls-ciphersuites" => self.ciphersuites = text(value)?,
            "tls-prefer-server-ciphers" => self.prefer_server_ciphers = yes_or_no(value)?,
            "tls-session-caching" => self.session_caching = yes_or_no(value)?,
            "tls-session-cache-size" => self.session_cache_size = small(integer(row, value)?),
            "tls-session-cache-timeout" => self.session_cache_timeout = small(integer(row, value)?),
            other => unreachable!("{other} is in the table, and nothing is done with it"),
        }
        Ok(())
    }

    /// What has no effect and might be missed, for the log.
    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        if !self.dh_params_file.is_empty() {
            notes.push(
                "tls-dh-params-file: without effect, because there are no cipher suites with finite-field Diffie-Hellman \
                 here; all of them use elliptic curves"
                    .into(),
            );
        }
        let (cert, key) = ("tls-client-cert-file", "tls-client-key-file");
        let lone = match (self.client_cert_file.is_empty(), self.client_key_file.is_empty()) {
            (false, true) => Some((cert, key)),
            (true, false) => Some((key, cert)),
            _ => None,
        };
        if let Some((given, missing)) = lone {
            notes.push(format!(
                "{given} without {missing}: NOT in effect; outgoing links show the certificate of tls-cert-file"
            ));
        }
        let files = !self.cert_file.is_empty() || !self.ca_cert_file.is_empty() || !self.ca_cert_dir.is_empty();
        if files && !self.is_on() {
            notes.push("tls-*: TLS is NOT in use, because neither tls-port nor tls-replication turns it on".into());
        }
        if self.replication && self.port == 0 {
            notes.push(
                "tls-replication without tls-port: the other Sentinels are told our plain port, which they cannot reach \
                 with TLS"
                    .into(),
            );
        }
    }
}

/// TLS 1.2 and TLS 1.3, of a list of words; an empty one is both.
fn protocols(list: &str) -> Result<(bool, bool), Fault> {
    let (mut tls12, mut tls13) = (false, false);
    for word in list.split_ascii_whitespace() {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => tls12 = true,
            "tlsv1.3" => tls13 = true,
            "tlsv1" | "tlsv1.1" => {
                let hint = "TLS 1.0 and 1.1 are broken and not supported here; allowed are TLSv1.2 and TLSv1.3";
                return Err(Fault::with_hint(format!("tls-protocols: '{word}' is not supported"), hint));
            }
            _ => {
                let hint = format!("'{word}' is unknown; allowed are TLSv1.2 and TLSv1.3");
                return Err(Fault::with_hint("Invalid tls-protocols specified", hint));
            }
        }
    }
    Ok(if tls12 || tls13 { (tls12, tls13) } else { (true, true) })
}
