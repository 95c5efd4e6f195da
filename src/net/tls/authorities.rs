//! Whom to believe: one judge for the certificates of servers and of clients.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{
    WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use super::Suite;
use super::version1::Certificate;

/// The certificates of authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    /// The same, as they are.
    listed: Arc<Vec<CertificateDer<'static>>>,
}

impl Default for Authorities {
    /// Nobody.
    fn default() -> Authorities {
        Authorities { roots: Arc::new(RootCertStore::empty()), listed: Arc::default() }
    }
}

impl Authorities {
    /// Adds all certificates of a PEM text, or none; returns how many there were.
    ///
    /// # Errors
    ///
    /// The text is damaged, or holds a certificate that cannot be read; in a sentence.
    pub fn add(&mut self, pem: &[u8]) -> Result<usize, String> {
        let mut roots = RootCertStore::empty();
        let mut listed = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| format!("it is damaged: {error}"))?;
            listed.push(certificate.clone());
            roots
                .add(certificate)
                .map_err(|error| format!("certificate {} in it cannot be used: {error}", listed.len()))?;
        }
        let count = listed.len();
        Arc::make_mut(&mut self.roots).extend(roots.roots);
        Arc::make_mut(&mut self.listed).append(&mut listed);
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
        let inner = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(OfClients { inner, judge: self.judge(suite) }))
    }

    pub(super) fn of_servers(&self, suite: &Suite) -> Arc<dyn ServerCertVerifier> {
        Arc::new(OfServers { judge: self.judge(suite) })
    }

    fn judge(&self, suite: &Suite) -> Judge {
        let (roots, listed) = (Arc::clone(&self.roots), Arc::clone(&self.listed));
        Judge { roots, listed, algorithms: suite.provider.signature_verification_algorithms }
    }
}

/// Judges what rustls does not: see `version1`.
#[derive(Debug)]
struct Judge {
    roots: Arc<RootCertStore>,
    listed: Arc<Vec<CertificateDer<'static>>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Judge {
    /// The second opinion about a certificate that rustls finds wrong. What it could read and found wanting stays refused;
    /// only the form is forgiven.
    fn reconsider(&self, end_entity: &CertificateDer<'_>, error: Error, now: UnixTime) -> Result<(), Error> {
        let Error::InvalidCertificate(CertificateError::Other(_)) = error else { return Err(error) };
        let Some(certificate) = Certificate::parse(end_entity) else { return Err(error) };
        if self.listed.contains(end_entity) {
            certificate.check_time(now)
        } else if certificate.is_version1 {
            certificate.check_time(now)?;
            certificate.check_issuer(&self.roots.roots, self.algorithms.all)
        } else {
            Err(error)
        }
    }

    fn tls12(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Certificate::parse(cert).filter(|certificate| certificate.is_version1) {
            Some(certificate) => {
                let algorithms = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == dss.scheme);
                if algorithms.is_some_and(|(_, all)| certificate.has_signed(message, dss.signature(), all)) {
                    Ok(HandshakeSignatureValid::assertion())
                } else {
                    Err(CertificateError::BadSignature.into())
                }
            }
            None => verify_tls12_signature(message, cert, dss, &self.algorithms),
        }
    }

    fn tls13(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match Certificate::parse(cert).filter(|certificate| certificate.is_version1) {
            Some(certificate) => {
                let key = SubjectPublicKeyInfoDer::from(certificate.spki);
                verify_tls13_signature_with_raw_key(message, &key, dss, &self.algorithms)
            }
            None => verify_tls13_signature(message, cert, dss, &self.algorithms),
        }
    }
}

/// Believes a server whose certificate leads to an authority, whatever its name.
#[derive(Debug)]
struct OfServers {
    judge: Judge,
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judge = &self.judge;
        ParsedCertificate::try_from(end_entity)
            .and_then(|certificate| {
                let algorithms = judge.algorithms.all;
                verify_server_cert_signed_by_trust_anchor(&certificate, &judge.roots, intermediates, now, algorithms)
            })
            .or_else(|error| judge.reconsider(end_entity, error, now))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.algorithms.supported_schemes()
    }
}

/// As rustls judges clients, with the second opinion.
#[derive(Debug)]
struct OfClients {
    inner: Arc<dyn ClientCertVerifier>,
    judge: Judge,
}

impl ClientCertVerifier for OfClients {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.inner.verify_client_cert(end_entity, intermediates, now).or_else(|error| {
            self.judge.reconsider(end_entity, error, now)?;
            Ok(ClientCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.tls12(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.tls13(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
