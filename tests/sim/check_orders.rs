//! No server is ever told to replicate from itself, and none of priority 0 to be a master.

use super::net::Request;
use super::server::Server;

pub fn order_is_sane(server: &Server, request: &Request) -> Result<(), (&'static str, String)> {
    let [name, host, port] = &request[..] else { return Ok(()) };
    if !name.eq_ignore_ascii_case(b"SLAVEOF") {
        return Ok(());
    }
    if host.eq_ignore_ascii_case(b"no") && server.priority == 0 {
        return Err(("fit-to-promote", format!("{} is promoted, and its priority is 0", server.node())));
    }
    let (host, port) = (String::from_utf8_lossy(host), String::from_utf8_lossy(port));
    match port.parse() {
        Ok(port) if server.is_at(&host, port) => {
            Err(("no-self-replication", format!("{} is told to replicate from itself", server.node())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Node;
    use super::super::server::Role;
    use super::*;
    use watchfire::base::Millis;

    #[test]
    fn an_order_to_follow_oneself_is_seen() {
        let server = Server::new(1, Role::Master, Millis(0), false, false);
        let order = |node: Node| -> Request {
            vec![b"slaveof".into(), node.ip().to_string().into_bytes(), node.port().to_string().into_bytes()]
        };
        assert!(order_is_sane(&server, &order(Node::Server(1))).is_err());
        assert!(order_is_sane(&server, &order(Node::Server(0))).is_ok());
    }
}
