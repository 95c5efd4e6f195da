//! Certificates, a blocking client and processes for the tests of TLS.
#![allow(dead_code)]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use watchfire::resp::{Reply, ReplyDecoder, request};

use super::support::ports;
use super::support::process::{Folder, Process, Program, wait_for};

const PATIENCE: Duration = Duration::from_secs(10);

/// An authority, in files of its folder.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub file: PathBuf,
    folder: PathBuf,
}

/// Where a certificate and its key are.
#[derive(Clone, Debug)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    #[must_use]
    pub fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = folder.join(format!("{name}.ca"));
        fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Authority { issuer: Issuer::new(params, key), file, folder: folder.to_path_buf() }
    }

    /// A certificate for no host in particular, as those of most groups.
    #[must_use]
    pub fn issue(&self, name: &str) -> Pair {
        self.issue_with(name, |_| {})
    }

    #[must_use]
    pub fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pair = Pair { cert: self.folder.join(format!("{name}.crt")), key: self.folder.join(format!("{name}.key")) };
        fs::write(&pair.cert, certificate.pem()).unwrap();
        fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }
}

/// The lines that make a node of a group: TLS alone, both ways.
#[must_use]
pub fn tls_lines(authority: &Authority, pair: &Pair) -> Vec<String> {
    vec![
        format!("tls-cert-file {}", pair.cert.display()),
        format!("tls-key-file {}", pair.key.display()),
        format!("tls-ca-cert-file {}", authority.file.display()),
    ]
}

/// A process with a TLS port and no other.
pub struct Node {
    pub port: u16,
    pub process: Process,
    folder: Folder,
    program: Program,
}

impl Node {
    /// Starts a Sentinel (or, with a program of that name, a server) and waits until it answers `dial`.
    #[must_use]
    pub fn start(program: &Program, lines: &[String], dial: &Dial) -> Node {
        let folder = Folder::new("tls");
        let port = ports::free();
        let dir = folder.path().display();
        let conf = format!("port 0\ntls-port {port}\nbind 127.0.0.1\ndir {dir}\n{}\n", lines.join("\n"));
        fs::write(folder.path().join("conf"), conf).unwrap();
        let process = Node::spawn(program, &folder, port);
        let mut node = Node { port, process, folder, program: program.clone() };
        node.wait(dial);
        node
    }

    fn spawn(program: &Program, folder: &Folder, port: u16) -> Process {
        let mut command = Command::new(&program.path);
        command.arg(folder.path().join("conf")).args(&program.args).current_dir(folder.path());
        Process::spawn(&format!("{} {port}", program.name), command, &folder.path().join("log"))
    }

    fn wait(&mut self, dial: &Dial) {
        let port = self.port;
        wait_for(PATIENCE, "the first answer over TLS", || {
            dial.to(port).and_then(|mut conn| conn.cmd(&["PING"])).is_ok()
        });
    }

    pub fn restart(&mut self, dial: &Dial) {
        self.process.kill();
        self.process = Node::spawn(&self.program, &self.folder, self.port);
        self.wait(dial);
    }

    #[must_use]
    pub fn conf(&self) -> String {
        fs::read_to_string(self.folder.path().join("conf")).unwrap()
    }
}

/// How to connect: with which certificate, and what of TLS.
#[derive(Clone)]
pub struct Dial {
    config: Arc<ClientConfig>,
}

impl Dial {
    #[must_use]
    pub fn new(pair: Option<&Pair>) -> Dial {
        Dial::with(pair, &[&rustls::version::TLS12, &rustls::version::TLS13])
    }

    #[must_use]
    pub fn with(pair: Option<&Pair>, versions: &[&'static rustls::SupportedProtocolVersion]) -> Dial {
        Dial::exactly(pair, versions, ring::default_provider())
    }

    /// Only this suite.
    #[must_use]
    pub fn exactly(
        pair: Option<&Pair>,
        versions: &[&'static rustls::SupportedProtocolVersion],
        provider: CryptoProvider,
    ) -> Dial {
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody));
        let config = match pair {
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_file(&pair.cert).unwrap()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&pair.key).unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        Dial { config: Arc::new(config) }
    }

    pub fn to(&self, port: u16) -> io::Result<TlsConn> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(TlsConn { stream, decoder: ReplyDecoder::new() })
    }

    /// One command on a connection of its own.
    pub fn ask(&self, port: u16, args: &[&str]) -> Option<Reply> {
        let reply = self.to(port).and_then(|mut conn| conn.cmd(args)).ok()?;
        (!matches!(reply, Reply::Error(_))).then_some(reply)
    }
}

/// A connection that speaks TLS.
pub struct TlsConn {
    pub stream: StreamOwned<ClientConnection, TcpStream>,
    decoder: ReplyDecoder,
}

impl TlsConn {
    pub fn cmd(&mut self, args: &[&str]) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        request(&mut bytes, &args.iter().map(|arg| arg.as_bytes()).collect::<Vec<_>>());
        self.stream.write_all(&bytes)?;
        self.receive()
    }

    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut bytes = [0; 16 * 1024];
        loop {
            if let Some(reply) = self.decoder.next().map_err(|error| io::Error::other(error.to_string()))? {
                return Ok(reply);
            }
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.decoder.extend(&bytes[..count]),
            }
        }
    }

    /// The name that the server's certificate carries, of those that a test has issued.
    #[must_use]
    pub fn shows(&self, name: &str) -> bool {
        let certificate = &self.stream.conn.peer_certificates().unwrap()[0];
        certificate.windows(name.len()).any(|part| part == name.as_bytes())
    }
}

/// Believes everybody: what a server shows is not what these tests check.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
