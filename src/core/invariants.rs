//! What must hold after every input, in tests and debug builds.

use super::Sentinel;
use super::ids::LinkId;
use super::model::Owner;
use std::collections::BTreeSet;

impl Sentinel {
    pub(super) fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.check_masters();
            self.check_links();
        }
    }

    fn check_masters(&self) {
        assert_eq!(self.names.len(), self.masters.len());
        for master in self.masters.values() {
            assert_eq!(self.names.get(master.name.as_bytes()), Some(&master.id));
            assert!(master.leader_epoch <= self.current_epoch, "a vote in an epoch that we do not know");
            assert!(master.config_epoch <= self.current_epoch, "a configuration of an epoch that we do not know");
            assert!(master.odown.is_none() || master.node.sdown.is_some(), "ODOWN without SDOWN");
            if let Some(failover) = &master.failover {
                assert!(failover.epoch <= self.current_epoch);
                // Larger when somebody else confirmed the same address under a newer epoch meanwhile.
                assert!(failover.in_force().is_none() || failover.epoch <= master.config_epoch);
                if let Some(promoted) = failover.promoted() {
                    assert!(master.replicas.contains_key(&promoted), "the promoted replica is gone");
                }
            }
            for replica in master.replicas.values() {
                assert!(!replica.node.addr.same(&master.node.addr), "a master is its own replica");
            }
            let ids: BTreeSet<_> = master.peers.values().map(|peer| peer.run_id).collect();
            assert_eq!(ids.len(), master.peers.len(), "one peer twice");
            assert!(!ids.contains(&self.identity.myid), "we are our own peer");
        }
    }

    fn check_links(&self) {
        let mut used: BTreeSet<LinkId> = BTreeSet::new();
        for master in self.masters.values() {
            assert_eq!(self.links[&master.node.link].owner, Owner::Master(master.id));
            used.insert(master.node.link);
            for replica in master.replicas.values() {
                let link = &self.links[&replica.node.link];
                assert_eq!(link.owner, Owner::Replica(master.id, replica.id));
                assert!(link.addr.same(&replica.node.addr));
                used.insert(replica.node.link);
            }
            for peer in master.peers.values() {
                let link = &self.links[&peer.link];
                assert!(matches!(&link.owner, Owner::Peer(run_id, masters)
                    if *run_id == peer.run_id && masters.contains(&master.id)));
                assert_eq!(self.peer_links.get(&peer.run_id), Some(&peer.link));
                used.insert(peer.link);
            }
        }
        assert_eq!(used.len(), self.links.len(), "a link that nobody uses");
        let from = self.links.values().filter(|link| link.local_ip.is_some()).count();
        assert_eq!(self.local_ips.values().sum::<usize>(), from, "an address of ours that no link has");
        for (conn, &(link, _)) in &self.conns {
            let link = self.links.get(&link).expect("a connection of a link that is gone");
            assert!(link.cmd.id() == Some(*conn) || link.pubsub.id() == Some(*conn));
        }
    }
}
