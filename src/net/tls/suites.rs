//! OpenSSL's words for cipher suites, and which of ours they mean.
//!
//! A list for TLS 1.2 is a small language: names and groups joined by `+` (all of these at once), taken in turn; `!` bars
//! for good, `-` takes out, a leading `+` moves to the end. Groups that hold none of our suites (`3DES`, `PSK`, `MEDIUM` …)
//! are understood and empty. A suite that OpenSSL has and rustls has not is named in a note.

use crate::base::Alike;
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite as ring;

use super::Params;

/// A suite of TLS 1.2.
struct Known {
    openssl: &'static str,
    iana: &'static str,
    suite: SupportedCipherSuite,
    /// The groups of OpenSSL's that it belongs to, in small letters, besides those that hold all of ours.
    groups: &'static [&'static str],
}

/// In the order in which they are preferred.
const TLS12: [Known; 6] = [
    Known {
        openssl: "ECDHE-ECDSA-AES256-GCM-SHA384",
        iana: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        suite: ring::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        groups: &["aecdsa", "ecdsa", "aesgcm", "aes", "aes256"],
    },
    Known {
        openssl: "ECDHE-RSA-AES256-GCM-SHA384",
        iana: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        suite: ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        groups: &["arsa", "aesgcm", "aes", "aes256"],
    },
    Known {
        openssl: "ECDHE-ECDSA-CHACHA20-POLY1305",
        iana: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        suite: ring::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        groups: &["aecdsa", "ecdsa", "chacha20"],
    },
    Known {
        openssl: "ECDHE-RSA-CHACHA20-POLY1305",
        iana: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        suite: ring::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        groups: &["arsa", "chacha20"],
    },
    Known {
        openssl: "ECDHE-ECDSA-AES128-GCM-SHA256",
        iana: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        suite: ring::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        groups: &["aecdsa", "ecdsa", "aesgcm", "aes", "aes128"],
    },
    Known {
        openssl: "ECDHE-RSA-AES128-GCM-SHA256",
        iana: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        suite: ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        groups: &["arsa", "aesgcm", "aes", "aes128"],
    },
];

const TLS13: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", ring::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", ring::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", ring::TLS13_AES_128_GCM_SHA256),
];

/// Groups that hold all suites of [`TLS12`].
const WHOLE: [&str; 9] = ["all", "default", "high", "fips", "tlsv1.2", "ecdhe", "eecdh", "kecdhe", "keecdh"];
/// Groups that hold none of them.
const EMPTY: &str = "\
complementofdefault complementofall medium low exp export export40 export56 enull null anull krsa \
rsa kdhr kdhd kdh dh adh aecdh kdhe kedh dhe edh adss dss tlsv1.0 tlsv1 tlsv1.1 sslv2 sslv3 aesccm \
aesccm8 aria aria128 aria256 ariagcm camellia camellia128 camellia256 cbc 3des des rc4 rc2 idea seed \
md5 sha sha1 sha256 sha384 agost agost01 kgost gost94 gost89mac psk kpsk apsk kecdhepsk kdhepsk \
krsapsk srp ksrp asrp kecdh";

/// The suites for both versions, as far as they are wanted.
pub(super) fn choose(params: &Params, notes: &mut Vec<String>) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut suites = Vec::new();
    if params.tls13 {
        suites.extend(of_tls13(&params.suites, notes)?);
    }
    if params.tls12 {
        suites.extend(of_tls12(&params.ciphers, notes)?);
    }
    Ok(suites)
}

fn of_tls13(list: &str, notes: &mut Vec<String>) -> Result<Vec<SupportedCipherSuite>, String> {
    if list.is_empty() {
        return Ok(TLS13.iter().map(|(_, suite)| *suite).collect());
    }
    let mut chosen = Vec::new();
    let mut unknown = Vec::new();
    for word in words(list) {
        match TLS13.iter().find(|(name, _)| name.alike(word)) {
            Some((_, suite)) if !chosen.contains(suite) => chosen.push(*suite),
            Some(_) => {}
            None => unknown.push(word),
        }
    }
    finish(chosen, &unknown, "TLS 1.3", &TLS13.map(|(name, _)| name), notes)
}

fn of_tls12(list: &str, notes: &mut Vec<String>) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut barred: Vec<usize> = Vec::new();
    let mut unknown = Vec::new();
    let list = if list.is_empty() { "DEFAULT" } else { list };
    for word in words(list) {
        if word.starts_with('@') {
            // @STRENGTH is our order anyway, and all of ours pass every @SECLEVEL that is in use.
            continue;
        }
        let (sign, name) = match word.as_bytes()[0] {
            sign @ (b'!' | b'-' | b'+') => (sign, &word[1..]),
            _ => (0, word),
        };
        let Some(meant) = meaning(name) else {
            unknown.push(name);
            continue;
        };
        match sign {
            0 => {
                for index in meant {
                    if !chosen.contains(&index) && !barred.contains(&index) {
                        chosen.push(index);
                    }
                }
            }
            b'+' => {
                let (moved, kept): (Vec<_>, Vec<_>) = chosen.iter().partition(|index| meant.contains(index));
                chosen = [kept, moved].concat();
            }
            sign => {
                chosen.retain(|index| !meant.contains(index));
                if sign == b'!' {
                    barred.extend(meant);
                }
            }
        }
    }
    let suites = chosen.iter().map(|index| TLS12[*index].suite).collect();
    finish(suites, &unknown, "TLS 1.2", &TLS12.map(|known| known.openssl), notes)
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([':', ',', ' ', ';']).filter(|word| !word.is_empty())
}

/// Which suites of [`TLS12`] are in all the groups that are joined by `+`; None when one is no group.
fn meaning(name: &str) -> Option<Vec<usize>> {
    let mut meant: Vec<usize> = (0..TLS12.len()).collect();
    for part in name.split('+') {
        let lower = part.to_ascii_lowercase();
        let lower = lower.as_str();
        if WHOLE.contains(&lower) {
            continue;
        }
        let holds =
            |known: &Known| known.groups.contains(&lower) || known.openssl.alike(part) || known.iana.alike(part);
        if !EMPTY.split(' ').any(|empty| empty == lower) && !TLS12.iter().any(holds) {
            return None;
        }
        meant.retain(|index| holds(&TLS12[*index]));
    }
    Some(meant)
}

fn finish(
    suites: Vec<SupportedCipherSuite>,
    unknown: &[&str],
    version: &str,
    all: &[&str],
    notes: &mut Vec<String>,
) -> Result<Vec<SupportedCipherSuite>, String> {
    if suites.is_empty() {
        let all = all.join(", ");
        return Err(format!("none of the cipher suites for {version} is available here; there are {all}"));
    }
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        notes.push(format!("cipher suites for {version} that are not available here and NOT in effect: {unknown}"));
    }
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chosen suites of TLS 1.2 by their places in the table, and the notes.
    fn tls12(list: &str) -> (Vec<usize>, Vec<String>) {
        let mut notes = Vec::new();
        let suites = of_tls12(list, &mut notes).unwrap_or_default();
        let place = |suite: &SupportedCipherSuite| TLS12.iter().position(|known| known.suite == *suite).unwrap();
        (suites.iter().map(place).collect(), notes)
    }

    #[test]
    fn lists_of_openssl_mean_the_suites_that_there_are() {
        assert_eq!(tls12("").0, [0, 1, 2, 3, 4, 5]);
        assert_eq!(tls12("DEFAULT:!MEDIUM"), (vec![0, 1, 2, 3, 4, 5], vec![]));
        assert_eq!(tls12("HIGH:!aNULL:!kRSA:!PSK:!SRP:!MD5:!RC4"), (vec![0, 1, 2, 3, 4, 5], vec![]));
        assert_eq!(tls12("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384").0, [5, 1]);
        assert_eq!(tls12("EECDH+AESGCM:EDH+AESGCM"), (vec![0, 1, 4, 5], vec![]));
        assert_eq!(tls12("ECDHE+ECDSA+AES128").0, [4]);
        assert_eq!(tls12("ALL:!AES256:+CHACHA20").0, [4, 5, 2, 3]);
        assert_eq!(tls12("!AES256,ALL @STRENGTH").0, [2, 3, 4, 5]);
        assert_eq!(tls12("ALL:-AES:aRSA").0, [2, 3, 1, 5]);
        assert_eq!(tls12("tls_ecdhe_rsa_with_aes_128_gcm_sha256").0, [5]);
    }

    #[test]
    fn suites_that_are_not_there_are_named_and_an_empty_list_is_refused() {
        let (suites, notes) = tls12("AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-SHA");
        assert_eq!(suites, [5]);
        assert!(notes[0].ends_with("NOT in effect: AES128-SHA, DHE-RSA-AES256-SHA"), "{notes:?}");
        let error = of_tls12("AES128-SHA:MEDIUM", &mut Vec::new()).unwrap_err();
        assert!(error.contains("ECDHE-RSA-AES256-GCM-SHA384"), "{error}");
    }

    #[test]
    fn suites_of_tls_1_3_go_by_their_names() {
        let mut notes = Vec::new();
        let list = "TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256:tls_aes_256_gcm_sha384:TLS_AES_128_GCM_SHA256";
        assert_eq!(of_tls13(list, &mut notes).unwrap(), [TLS13[2].1, TLS13[0].1]);
        assert!(notes[0].ends_with("TLS_AES_128_CCM_SHA256"), "{notes:?}");
        assert_eq!(of_tls13("", &mut notes).unwrap().len(), 3);
        assert!(of_tls13("DEFAULT", &mut notes).is_err());
        let only = Params { tls13: false, ..Params::default() };
        assert_eq!(choose(&only, &mut notes).unwrap().len(), 6);
    }
}
