//! No server is ever told to replicate from itself.

use super::net::Request;
use super::server::Server;

pub fn order_is_sane(server: &Server, request: &Request) -> Result<(), String> {
    let [name, host, port] = &request[..] else { return Ok(()) };
    if !name.eq_ignore_ascii_case(b"SLAVEOF") {
        return Ok(());
    }
    let (host, port) = (String::from_utf8_lossy(host), String::from_utf8_lossy(port));
    match port.parse() {
        Ok(port) if server.is_at(&host, port) => Err(format!("{} is told to replicate from itself", server.node())),
        _ => Ok(()),
    }
}
