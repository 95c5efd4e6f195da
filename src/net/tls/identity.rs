//! A certificate chain and its private key.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::Suite;
use super::version1::Certificate;

/// Who we are, out of PEM.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity {{ {} certificates and their key }}", self.chain.len())
    }
}

impl Identity {
    /// Whether the two belong together shows when they are used.
    #[must_use]
    pub fn new(chain: Chain, key: Key) -> Identity {
        Identity { chain: chain.0, key: key.0 }
    }

    /// Answers every question for a certificate with this one.
    pub(super) fn resolver(&self, suite: &Suite) -> Result<Arc<SingleCertAndKey>, String> {
        let key = suite
            .provider
            .key_provider
            .load_private_key(self.key.clone_key())
            .map_err(|error| format!("the private key cannot be used: {error}"))?;
        let certified = CertifiedKey::new(self.chain.clone(), key);
        let of_certificate = Certificate::parse(&self.chain[0]).map(|certificate| certificate.spki);
        let differs = match (certified.key.public_key(), of_certificate) {
            (Some(of_key), Some(of_certificate)) => of_key.as_ref() != of_certificate,
            // What cannot be compared, or not be read here, may still be what the other side wants.
            _ => false,
        };
        if differs {
            return Err("the private key is not that of the certificate".to_string());
        }
        Ok(Arc::new(SingleCertAndKey::from(certified)))
    }
}

/// Certificates: ours, then those that lead to the authority.
pub struct Chain(Vec<CertificateDer<'static>>);

impl Chain {
    /// # Errors
    ///
    /// What is wrong with the text, in a sentence.
    pub fn from_pem(pem: &[u8]) -> Result<Chain, String> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("it is damaged: {error}"))?;
        if chain.is_empty() {
            return Err("there is no certificate in it (PEM is expected)".to_string());
        }
        Ok(Chain(chain))
    }
}

/// A private key.
pub struct Key(PrivateKeyDer<'static>);

impl Key {
    /// # Errors
    ///
    /// What is wrong with the text, in a sentence; it never shows the key.
    pub fn from_pem(pem: &[u8]) -> Result<Key, String> {
        if is_encrypted(pem) {
            return Err(
                "the private key in it is encrypted, which is not supported here. Write it without a password \
                 (openssl pkey -in <encrypted> -out <plain>) and protect the file by its permissions instead"
                    .to_string(),
            );
        }
        let key = PrivateKeyDer::from_pem_slice(pem)
            .map_err(|error| format!("there is no private key in it (PEM is expected): {error}"))?;
        Ok(Key(key))
    }
}

/// PKCS#8's own heading, or the header of the older formats.
fn is_encrypted(pem: &[u8]) -> bool {
    let has = |part: &[u8]| pem.windows(part.len()).any(|window| window == part);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}
