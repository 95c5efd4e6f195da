//! TLS over the streams of the reactor, with rustls.
//!
//! An [`Acceptor`] or a [`Connector`] holds everything that new connections need: certificate, key, whom to believe, which
//! protocols and suites. They are cheap to copy and never change; new certificates mean new ones, and streams that stand
//! keep what they began with. A stream with a session speaks through the same verbs as one without: `read` gives plain
//! text, `write` takes it, and neither does before the handshake is through.
//!
//! Who is believed: a certificate that leads to one of the [`Authorities`], is valid today and is not marked for another
//! purpose. Host names are not compared: the nodes of a group are met by address and trusted by their authority alone, as
//! Redis does it.

mod authorities;
mod identity;
mod session;
mod sessions;
mod suites;
mod version1;

pub use authorities::Authorities;
pub use identity::{Chain, Identity, Key};
pub(super) use session::Session;

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{NoServerSessionStorage, StoresServerSessions};
use rustls::{ClientConfig, ServerConfig, SupportedProtocolVersion};

use crate::base::Millis;

/// What of TLS may be used. The default is all that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    pub tls12: bool,
    pub tls13: bool,
    /// OpenSSL's cipher list for TLS 1.2, `ECDHE-RSA-AES128-GCM-SHA256:…` or with its keywords. Empty: all.
    pub ciphers: String,
    /// The suites of TLS 1.3 by name, separated by colons. Empty: all.
    pub suites: String,
    /// Our order of suites counts, not the client's.
    pub own_order: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params { tls12: true, tls13: true, ciphers: String::new(), suites: String::new(), own_order: false }
    }
}

/// What is asked of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    Unasked,
    /// May be missing; one that is shown must be good.
    Optional,
    Required,
}

/// Sessions that clients may resume.
#[derive(Clone, Copy, Debug)]
pub struct Sessions {
    /// How many are kept; 0 is no limit but that of memory, see [`crate::base::limits::TLS_SESSION_BYTES`].
    pub count: usize,
    pub seconds: u64,
    /// Monotonic, as that of the reactor.
    pub clock: fn() -> Millis,
}

/// Protocols and suites, chosen and not empty.
#[derive(Clone, Debug)]
pub struct Suite {
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    own_order: bool,
}

impl Suite {
    /// Chooses. Beside the suite come sentences about names that are not available here, for the log.
    ///
    /// # Errors
    ///
    /// Nothing is left to be used.
    pub fn choose(params: &Params) -> Result<(Suite, Vec<String>), String> {
        let mut versions = Vec::new();
        if params.tls12 {
            versions.push(&rustls::version::TLS12);
        }
        if params.tls13 {
            versions.push(&rustls::version::TLS13);
        }
        if versions.is_empty() {
            return Err("no version of the protocol is left".to_string());
        }
        let mut notes = Vec::new();
        let cipher_suites = suites::choose(params, &mut notes)?;
        let provider = Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() });
        Ok((Suite { provider, versions, own_order: params.own_order }, notes))
    }
}

/// Our side of connections that come in.
#[derive(Clone, Debug)]
pub struct Acceptor(Arc<ServerConfig>);

impl Acceptor {
    /// `sessions` None: every connection does the whole handshake.
    ///
    /// # Errors
    ///
    /// The parts do not fit together, in a sentence.
    pub fn new(
        suite: &Suite,
        identity: &Identity,
        certificates: Certificates,
        authorities: &Authorities,
        sessions: Option<Sessions>,
    ) -> Result<Acceptor, String> {
        let provider = Arc::clone(&suite.provider);
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&suite.versions)
            .map_err(|error| error.to_string())?;
        let builder = if certificates == Certificates::Unasked {
            builder.with_no_client_auth()
        } else {
            builder.with_client_cert_verifier(authorities.of_clients(suite, certificates == Certificates::Optional)?)
        };
        let mut config = builder.with_cert_resolver(identity.resolver(suite)?);
        config.ignore_client_order = suite.own_order;
        let store: Arc<dyn StoresServerSessions> = match sessions {
            Some(sessions) => Arc::new(sessions::Store::new(sessions)),
            None => Arc::new(NoServerSessionStorage {}),
        };
        // Clients here hold a connection for long; the second ticket that the standard proposes would hardly be used.
        config.send_tls13_tickets = usize::from(sessions.is_some());
        config.session_storage = store;
        Ok(Acceptor(Arc::new(config)))
    }
}

/// Our side of connections that go out.
#[derive(Clone, Debug)]
pub struct Connector(Arc<ClientConfig>);

impl Connector {
    /// `identity` is what we show when we are asked for a certificate.
    ///
    /// # Errors
    ///
    /// The parts do not fit together, in a sentence.
    pub fn new(suite: &Suite, identity: Option<&Identity>, authorities: &Authorities) -> Result<Connector, String> {
        let provider = Arc::clone(&suite.provider);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&suite.versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(authorities.of_servers(suite));
        let mut config = match identity {
            Some(identity) => builder.with_client_cert_resolver(identity.resolver(suite)?),
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = false;
        // A link is dialled rarely and its session is of use to nobody else.
        config.resumption = Resumption::disabled();
        Ok(Connector(Arc::new(config)))
    }
}
