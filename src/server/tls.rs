//! TLS, as the configuration wants it: files to certificates, and certificates to what new connections are given.
//!
//! Everything is read at the start and again on SIGHUP. What cannot be used then changes nothing: the old certificates stay,
//! and the log says why. So it is with a file of an authority that was whole before and is not now: somebody is in the middle
//! of replacing it, and half of it would lock clients out. Streams that stand keep theirs in any case.

use crate::config::{AuthClients, TlsOptions};
use crate::net::tls::{Acceptor, Connector};
use crate::net::{Reactor, Token};

/// What the shell needs for its connections; without TLS in the configuration, nothing.
#[derive(Debug, Default)]
pub struct Tls {
    /// For clients on the TLS port.
    acceptor: Option<Acceptor>,
    /// For links, when they use TLS.
    pub connector: Option<Connector>,
    /// The listeners of the TLS port.
    pub listeners: Vec<Token>,
    /// Which files in the folder of authorities held certificates.
    folder: material::Folder,
}

impl Tls {
    /// Reads the files. Beside the result come sentences for the log.
    pub fn load(options: &TlsOptions) -> Result<(Tls, Vec<String>), String> {
        let mut notes = Vec::new();
        let mut tls = Tls::default();
        if options.is_on() {
            (tls.acceptor, tls.connector) = material::load(options, &mut tls.folder, &mut notes)?;
        }
        Ok((tls, notes))
    }

    /// Reads the files again, for connections from now on.
    pub fn reload(&mut self, options: &TlsOptions) {
        let whole = |(fresh, notes): (Tls, Vec<String>)| match fresh.folder.worse_than(&self.folder) {
            Some(file) => Err(format!("tls-ca-cert-dir: {} cannot be read in whole.", file.display())),
            None => Ok((fresh, notes)),
        };
        match Tls::load(options).and_then(whole) {
            Ok((fresh, notes)) => {
                notes.iter().for_each(|note| log::warn!("{note}"));
                self.acceptor = fresh.acceptor;
                self.connector = fresh.connector;
                self.folder = fresh.folder;
                log::info!("Received SIGHUP: the TLS certificates were read again and hold for new connections.");
            }
            Err(why) => {
                log::warn!("Received SIGHUP, but the TLS certificates cannot be used, so the old ones stay: {why}")
            }
        }
    }

    /// Has an accepted stream speak TLS if its listener is one of the TLS port. False when that is not possible.
    pub fn accepted(&self, reactor: &mut Reactor, listener: Token, stream: Token) -> bool {
        let Some(acceptor) = self.acceptor.as_ref().filter(|_| self.listeners.contains(&listener)) else { return true };
        match reactor.accept_tls(stream, acceptor) {
            Ok(()) => true,
            Err(why) => {
                log::warn!("TLS with a client is not possible: {why}");
                false
            }
        }
    }
}

/// Whether the TLS port lets in only those who show a certificate.
pub fn keeps_strangers_out(options: &TlsOptions) -> bool {
    options.auth_clients == AuthClients::Yes
}

#[cfg(not(feature = "tls"))]
mod material {
    use super::{Acceptor, Connector, TlsOptions};
    use std::path::Path;

    #[derive(Debug, Default)]
    pub struct Folder;

    impl Folder {
        pub fn worse_than<'a>(&self, _: &'a Folder) -> Option<&'a Path> {
            None
        }
    }

    pub fn load(
        _: &TlsOptions,
        _: &mut Folder,
        _: &mut Vec<String>,
    ) -> Result<(Option<Acceptor>, Option<Connector>), String> {
        Err("this build has none".into())
    }
}

#[cfg(feature = "tls")]
mod material {
    use super::super::sys;
    use super::{Acceptor, AuthClients, Connector, TlsOptions};
    use crate::base::SortedSet;
    use crate::net::tls::{Authorities, Certificates, Chain, Identity, Key, Params, Sessions, Suite};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A larger file is no certificate but a mistake, in bytes.
    const LARGEST_FILE: u64 = 4 * 1024 * 1024;

    /// The files in a folder of authorities that hold certificates.
    #[derive(Debug, Default)]
    pub struct Folder(SortedSet<PathBuf>);

    impl Folder {
        /// A file that is still there and whose certificates are not. (One that never had any is passed over, as at the start.)
        pub fn worse_than<'a>(&self, before: &'a Folder) -> Option<&'a Path> {
            let is_worse = |file: &&Path| !self.0.contains(*file) && file.exists();
            before.0.iter().map(PathBuf::as_path).find(is_worse)
        }
    }

    pub fn load(
        options: &TlsOptions,
        folder: &mut Folder,
        notes: &mut Vec<String>,
    ) -> Result<(Option<Acceptor>, Option<Connector>), String> {
        let params = Params {
            tls12: options.protocols.0,
            tls13: options.protocols.1,
            ciphers: options.ciphers.clone(),
            suites: options.ciphersuites.clone(),
            own_order: options.prefer_server_ciphers,
        };
        let (suite, unknown) =
            Suite::choose(&params).map_err(|why| format!("tls-ciphers, tls-ciphersuites: {why}."))?;
        notes.extend(unknown.into_iter().map(|note| format!("tls-ciphers, tls-ciphersuites: {note}")));

        let own = identity("tls-cert-file", &options.cert_file, "tls-key-file", &options.key_file)?;
        // One without the other is ignored, as redis does; the configuration has a note about it.
        let (cert, key) = (&options.client_cert_file, &options.client_key_file);
        let client = if cert.is_empty() || key.is_empty() {
            None
        } else {
            Some(identity("tls-client-cert-file", cert, "tls-client-key-file", key)?)
        };
        let passwords = [
            ("tls-key-file-pass", &options.key_file_pass),
            ("tls-client-key-file-pass", &options.client_key_file_pass),
        ];
        for (name, _) in passwords.iter().filter(|(_, password)| !password.is_empty()) {
            notes.push(format!("{name}: without effect, the key in the file is not encrypted"));
        }
        let authorities = authorities(options, &mut folder.0, notes)?;
        if authorities.is_empty() && (options.replication || options.auth_clients != AuthClients::No) {
            return Err("tls-ca-cert-file or tls-ca-cert-dir is needed to check the certificates of others (with \
                 tls-replication yes, and unless tls-auth-clients is no)."
                .into());
        }

        let mut acceptor = None;
        if options.port != 0 {
            let certificates = match options.auth_clients {
                AuthClients::No => Certificates::Unasked,
                AuthClients::Yes => Certificates::Required,
                AuthClients::Optional => Certificates::Optional,
            };
            let sessions = options.session_caching.then(|| Sessions {
                count: options.session_cache_size as usize,
                seconds: u64::from(options.session_cache_timeout),
                clock: sys::clock,
            });
            let made = Acceptor::new(&suite, &own, certificates, &authorities, sessions);
            acceptor = Some(made.map_err(|why| format!("tls-cert-file and tls-key-file: {why}."))?);
        }
        let mut connector = None;
        if options.replication {
            let made = Connector::new(&suite, Some(client.as_ref().unwrap_or(&own)), &authorities);
            connector = Some(made.map_err(|why| format!("the certificate and key for outgoing links: {why}."))?);
        }
        Ok((acceptor, connector))
    }

    fn identity(cert_name: &str, cert: &str, key_name: &str, key: &str) -> Result<Identity, String> {
        let chain = Chain::from_pem(&content(cert_name, cert)?).map_err(|why| format!("{cert_name} {cert}: {why}."))?;
        let key = Key::from_pem(&content(key_name, key)?).map_err(|why| format!("{key_name} {key}: {why}."))?;
        Ok(Identity::new(chain, key))
    }

    fn authorities(
        options: &TlsOptions,
        held: &mut SortedSet<PathBuf>,
        notes: &mut Vec<String>,
    ) -> Result<Authorities, String> {
        let mut authorities = Authorities::default();
        if !options.ca_cert_file.is_empty() {
            let path = &options.ca_cert_file;
            let pem = content("tls-ca-cert-file", path)?;
            match authorities.add(&pem) {
                Ok(0) => return Err(format!("tls-ca-cert-file {path}: there is no certificate in it.")),
                Ok(_) => {}
                Err(why) => return Err(format!("tls-ca-cert-file {path}: {why}.")),
            }
        }
        if !options.ca_cert_dir.is_empty() {
            let folder = &options.ca_cert_dir;
            let refused = |why: std::io::Error| format!("tls-ca-cert-dir {folder}: {why}.");
            let mut files = SortedSet::new();
            for entry in fs::read_dir(folder).map_err(refused)? {
                files.insert(entry.map_err(refused)?.path());
            }
            for file in files.iter().filter(|file| is_certificate_file(file)) {
                let pem = fs::read(file).map_err(|why| format!("tls-ca-cert-dir {}: {why}.", file.display()))?;
                // A folder holds whatever it holds; the one odd file in it must not keep the others from being used.
                match authorities.add(&pem) {
                    Ok(0) => {}
                    Ok(_) => {
                        held.insert(file.clone());
                    }
                    Err(why) => notes.push(format!("tls-ca-cert-dir: {} is passed over: {why}", file.display())),
                }
            }
            if held.is_empty() {
                return Err(format!("tls-ca-cert-dir {folder}: there is no certificate in it."));
            }
        }
        Ok(authorities)
    }

    /// Links count as what they lead to: certificates of a system are linked under their hashes as well.
    fn is_certificate_file(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST_FILE)
    }

    fn content(name: &str, path: &str) -> Result<Vec<u8>, String> {
        if path.is_empty() {
            return Err(format!("TLS needs {name}, which is not set."));
        }
        let file = fs::metadata(Path::new(path)).map_err(|why| format!("{name} {path}: {why}."))?;
        if file.len() > LARGEST_FILE {
            return Err(format!("{name} {path}: it is too large."));
        }
        fs::read(path).map_err(|why| format!("{name} {path}: {why}."))
    }
}
