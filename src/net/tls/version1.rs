//! Certificates that rustls refuses for their form, and that half of all Redis groups are built of.
//!
//! `openssl x509 -req` without a file of extensions writes X.509 version 1 up to OpenSSL 3.1, and so does Redis' own script
//! for test certificates. Such a certificate says who it is and who vouches for it, and nothing about what it may be used
//! for. It is believed here when an authority of the list has signed it itself; it can never vouch for another one.
//!
//! The other case is a single certificate that signs itself, and that every node has both as its own and as its authority:
//! whoever shows exactly one of the listed certificates is believed.
//!
//! Everything is read strictly, from borrowed bytes, and what is not understood is not believed.

use rustls::pki_types::{SignatureVerificationAlgorithm, TrustAnchor, UnixTime};
use rustls::{CertificateError, Error};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The explicit tag of the version, which version 1 does not have.
const VERSION: u8 = 0xa0;

/// The fields of a certificate that its form has had from the beginning.
#[derive(Debug)]
pub(super) struct Certificate<'a> {
    pub(super) is_version1: bool,
    /// What was signed, whole.
    signed: &'a [u8],
    /// Without its outer tag, as in a trust anchor.
    issuer: &'a [u8],
    /// In seconds since 1970, both included.
    valid: (u64, u64),
    /// With its outer tag.
    pub(super) spki: &'a [u8],
    key: Key<'a>,
    /// Without its outer tag.
    algorithm: &'a [u8],
    signature: &'a [u8],
}

/// A public key with what it is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    algorithm: &'a [u8],
    bits: &'a [u8],
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut all = Reader(der);
        let mut outer = Reader(all.take(SEQUENCE)?.content);
        all.end()?;
        let signed = outer.take(SEQUENCE)?;
        let algorithm = outer.take(SEQUENCE)?.content;
        let signature = bits(outer.take(BIT_STRING)?.content)?;
        outer.end()?;

        let mut fields = Reader(signed.content);
        let is_version1 = fields.0.first() != Some(&VERSION);
        if !is_version1 {
            fields.take(VERSION)?;
        }
        fields.take(INTEGER)?;
        if fields.take(SEQUENCE)?.content != algorithm {
            return None;
        }
        let issuer = fields.take(SEQUENCE)?.content;
        let mut validity = Reader(fields.take(SEQUENCE)?.content);
        let valid = (validity.time()?, validity.time()?);
        validity.end()?;
        fields.take(SEQUENCE)?;
        let spki = fields.take(SEQUENCE)?;
        if is_version1 {
            // Nothing may follow: neither the identifiers of version 2 nor the extensions of version 3.
            fields.end()?;
        }
        let key = Key::of(spki.content)?;
        Some(Certificate {
            is_version1,
            signed: signed.whole,
            issuer,
            valid,
            spki: spki.whole,
            key,
            algorithm,
            signature,
        })
    }

    /// Whether it holds at this time.
    pub(super) fn check_time(&self, now: UnixTime) -> Result<(), Error> {
        let now = now.as_secs();
        if now < self.valid.0 {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > self.valid.1 {
            return Err(CertificateError::Expired.into());
        }
        Ok(())
    }

    /// Whether one of these authorities has signed it.
    pub(super) fn check_issuer(
        &self,
        roots: &[TrustAnchor<'_>],
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> Result<(), Error> {
        let mut error = CertificateError::UnknownIssuer;
        // An authority that is bound to certain names cannot be asked about a certificate that has none in its form.
        for root in roots.iter().filter(|root| root.subject.as_ref() == self.issuer && root.name_constraints.is_none())
        {
            let Some(key) = Key::of(&root.subject_public_key_info) else { continue };
            let fits = |algorithm: &&&dyn SignatureVerificationAlgorithm| {
                algorithm.signature_alg_id().as_ref() == self.algorithm
            };
            if key.has_signed(self.signed, self.signature, algorithms.iter().filter(fits)) {
                return Ok(());
            }
            error = CertificateError::BadSignature;
        }
        Err(error.into())
    }

    /// Whether its owner has signed a message, in one of these ways.
    pub(super) fn has_signed(
        &self,
        message: &[u8],
        signature: &[u8],
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> bool {
        self.key.has_signed(message, signature, algorithms.iter())
    }
}

impl<'a> Key<'a> {
    /// Out of a SubjectPublicKeyInfo without its outer tag.
    fn of(spki: &'a [u8]) -> Option<Key<'a>> {
        let mut fields = Reader(spki);
        let algorithm = fields.take(SEQUENCE)?.content;
        let bits = bits(fields.take(BIT_STRING)?.content)?;
        fields.end()?;
        Some(Key { algorithm, bits })
    }

    fn has_signed<'b>(
        &self,
        message: &[u8],
        signature: &[u8],
        algorithms: impl Iterator<Item = &'b &'b dyn SignatureVerificationAlgorithm>,
    ) -> bool {
        algorithms
            .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == self.algorithm)
            .any(|algorithm| algorithm.verify_signature(self.bits, message, signature).is_ok())
    }
}

/// Whole bytes, of which no bit is unused.
fn bits(content: &[u8]) -> Option<&[u8]> {
    match content {
        [0, bits @ ..] => Some(bits),
        _ => None,
    }
}

struct Reader<'a>(&'a [u8]);

struct Value<'a> {
    whole: &'a [u8],
    content: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next value, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<Value<'a>> {
        let (&[found, first], rest) = self.0.split_first_chunk::<2>()?;
        if found != tag {
            return None;
        }
        let (head, length) = match (first, rest) {
            (..=0x7f, _) => (2, usize::from(first)),
            // The shortest form alone.
            (0x81, [length, ..]) if *length >= 0x80 => (3, usize::from(*length)),
            (0x82, [high, low, ..]) if *high > 0 => (4, usize::from(*high) << 8 | usize::from(*low)),
            _ => return None,
        };
        let whole = self.0.get(..head + length)?;
        self.0 = &self.0[head + length..];
        Some(Value { whole, content: &whole[head..] })
    }

    /// A time in one of the two forms, in seconds since 1970.
    fn time(&mut self) -> Option<u64> {
        let (year, rest) = match *self.0.first()? {
            UTC_TIME => {
                let text = self.take(UTC_TIME)?.content;
                let year = number(text.get(..2)?)?;
                (if year < 50 { 2000 + year } else { 1900 + year }, text.get(2..)?)
            }
            GENERALIZED_TIME => {
                let text = self.take(GENERALIZED_TIME)?.content;
                (number(text.get(..4)?)?, text.get(4..)?)
            }
            _ => return None,
        };
        let (&[a, b, c, d, e, f, g, h, i, j, b'Z'], []) = rest.split_first_chunk::<11>()? else { return None };
        let (month, day) = (number(&[a, b])?, number(&[c, d])?);
        let (hour, minute, second) = (number(&[e, f])?, number(&[g, h])?, number(&[i, j])?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        // Before 1970 is as good as 1970: nothing was signed then.
        let days = days_since_1970(year, month, day).unwrap_or(0);
        Some(days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    /// Nothing may be left.
    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

/// In the Gregorian calendar; years are counted from March, so that the leap day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::ring;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use std::time::Duration;

    const AUTHORITY: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBdDCCARugAwIBAgIUeqLHXbC+tndn0nigZoPgDIbxviswCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMzAxNDE4MTlaGA8yMTI2MTEwNjE0MTgx
OVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFnI
ENnH8kz/shsjqFRzDeaU+Jad1CBt7nmTiiz1h3FKcktSKhUNWbEPKvyZUbqveX0Y
JbKK1z8QEqGYeWAIHjSjUzBRMB0GA1UdDgQWBBSyDAAwPpy2WmzmZnJRGzsiUkLw
VDAfBgNVHSMEGDAWgBSyDAAwPpy2WmzmZnJRGzsiUkLwVDAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0cAMEQCIB7lSOpEut0+v7qQZaaA2GBaXjUHjTAAitms
mLR0L/HuAiBA3FZCOPbOaEEEE5eR4gUKefJ/A9OvcwrwZgrtIaMRhw==
-----END CERTIFICATE-----";
    /// Issued by it with `openssl x509 -req`, for a hundred years from 30 November 2026.
    const NODE: &[u8] = b"-----BEGIN CERTIFICATE-----
MIIBGjCBwQIUC6g30jJxRJepaPOHWN6wpQbmAzswCgYIKoZIzj0EAwIwDzENMAsG
A1UEAwwEdGVzdDAgFw0yNjExMzAxNDE4MTlaGA8yMTI2MTEwNjE0MTgxOVowDzEN
MAsGA1UEAwwEbm9kZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABA5ZjA8MgcQe
CDKP14ISAowYOupNEm2iwEl7y+U1QrNPWP3hf4akskc+EI/ZY3s9Nz+TlL08swm9
vbXnwnsTH/cwCgYIKoZIzj0EAwIDSAAwRQIgEuX5lQX1W3TNV6niznOcJh7PqAKc
mUFYnr7JdWY9IgYCIQCSJvCShrU0QHrSBX8WaN9UrNDXlI+tj7VYn3btbRs/9w==
-----END CERTIFICATE-----";

    fn der(pem: &[u8]) -> Vec<u8> {
        CertificateDer::from_pem_slice(pem).unwrap().to_vec()
    }

    fn roots(der: &[u8]) -> Vec<TrustAnchor<'static>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(der.to_vec())).unwrap();
        roots.roots
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn a_certificate_of_version_1_is_believed_when_an_authority_has_signed_it() {
        let (authority, node) = (der(AUTHORITY), der(NODE));
        let certificate = Certificate::parse(&node).unwrap();
        assert!(certificate.is_version1);
        let all = ring::default_provider().signature_verification_algorithms.all;
        assert_eq!(certificate.check_issuer(&roots(&authority), all), Ok(()));
        assert_eq!(certificate.check_issuer(&[], all), Err(CertificateError::UnknownIssuer.into()));
        assert!(!Certificate::parse(&authority).unwrap().is_version1);
    }

    #[test]
    fn no_bit_of_it_can_be_changed() {
        let (authority, node) = (der(AUTHORITY), der(NODE));
        let all = ring::default_provider().signature_verification_algorithms.all;
        let roots = roots(&authority);
        for index in 0..node.len() {
            for bit in 0..8 {
                let mut changed = node.clone();
                changed[index] ^= 1 << bit;
                let believed = Certificate::parse(&changed).is_some_and(|certificate| {
                    certificate.is_version1 && certificate.check_issuer(&roots, all).is_ok()
                });
                assert!(!believed, "byte {index}, bit {bit}");
            }
        }
        for length in 0..node.len() {
            assert!(Certificate::parse(&node[..length]).is_none());
        }
        assert!(Certificate::parse(&[node.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn it_holds_from_its_first_second_to_its_last() {
        let node = der(NODE);
        let certificate = Certificate::parse(&node).unwrap();
        let (first, last) = (1_796_048_299, 4_949_648_299);
        assert_eq!(certificate.valid, (first, last));
        assert_eq!(certificate.check_time(at(first - 1)), Err(CertificateError::NotValidYet.into()));
        assert_eq!(certificate.check_time(at(first)), Ok(()));
        assert_eq!(certificate.check_time(at(last)), Ok(()));
        assert_eq!(certificate.check_time(at(last + 1)), Err(CertificateError::Expired.into()));
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let read = |tag: u8, text: &str| {
            let bytes = [&[tag, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            Reader(&bytes).time()
        };
        assert_eq!(read(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(read(UTC_TIME, "000229123456Z"), Some(951_827_696));
        assert_eq!(read(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(read(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        assert_eq!(read(UTC_TIME, "500101000000Z"), Some(0));
        for wrong in ["701301000000Z", "700100000000Z", "700101240000Z", "700101000000", "7001010000Z", "70010100000aZ"]
        {
            assert_eq!(read(UTC_TIME, wrong), None, "{wrong}");
        }
        assert_eq!(read(INTEGER, "700101000000Z"), None);
    }

    #[test]
    fn lengths_are_read_in_their_shortest_form_alone() {
        let length = |bytes: &[u8]| Reader(bytes).take(SEQUENCE).map(|value| value.content.len());
        assert_eq!(length(&[SEQUENCE, 1, 0]), Some(1));
        assert_eq!(length(&[&[SEQUENCE, 0x81, 0x80], &[0; 128][..]].concat()), Some(128));
        assert_eq!(length(&[&[SEQUENCE, 0x82, 1, 0], &[0; 256][..]].concat()), Some(256));
        assert_eq!(length(&[SEQUENCE, 0x81, 1, 0]), None);
        assert_eq!(length(&[&[SEQUENCE, 0x82, 0, 0x80], &[0; 128][..]].concat()), None);
        assert_eq!(length(&[SEQUENCE, 0x80, 0, 0]), None);
        assert_eq!(length(&[SEQUENCE, 2, 0]), None);
    }
}
