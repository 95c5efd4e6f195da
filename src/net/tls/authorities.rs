//! Whom to believe.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::ClientCertVerifier;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::{Suite, WebPkiClientVerifier};

/// The certificates of authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
}

impl Default for Authorities {
    /// Nobody.
    fn default() -> Authorities {
        Authorities { roots: Arc::new(RootCertStore::empty()) }
    }
}

impl Authorities {
    /// Adds all certificates of a PEM text; returns how many there were.
    ///
    /// # Errors
    ///
    /// The text is damaged, or holds a certificate that cannot be read; in a sentence.
    pub fn add(&mut self, pem: &[u8]) -> Result<usize, String> {
        let mut count = 0;
        let roots = Arc::make_mut(&mut self.roots);
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("it is damaged: {error}"))?;
            count += 1;
            roots.add(certificate).map_err(|error| format!("certificate {count} in it cannot be used: {error}"))?;
        }
        Ok(count)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    pub(super) fn of_clients(&self, suite: &Suite, optional: bool) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let roots = Arc::clone(&self.roots);
        let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&suite.provider));
        // Clients have one certificate and need no hints; the names of a whole folder of authorities would make every
        // handshake some twenty kilobytes longer.
        let builder = builder.clear_root_hint_subjects();
        let builder = if optional { builder.allow_unauthenticated() } else { builder };
        let verifier = builder.build().map_err(|error| error.to_string())?;
        Ok(verifier)
    }

    pub(super) fn of_servers(&self, suite: &Suite) -> Arc<dyn ServerCertVerifier> {
        let algorithms = suite.provider.signature_verification_algorithms;
        Arc::new(ChainOnly { roots: Arc::clone(&self.roots), algorithms })
    }
}

/// Believes a server whose certificate leads to an authority, whatever its name.
#[derive(Debug)]
struct ChainOnly {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
