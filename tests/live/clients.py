"""redis-py as an application uses it, through a failover; started by tests/live_clients.rs.

    clients.py PROTOCOL MASTER_PID MASTER_PORT REPLICA_PORT[,…] SENTINEL_PORT[,…]

Looks the group up, writes through it, kills the master (that process and no other), and goes on until a write of the
same client arrives at another master. Prints the port of that one.
"""

import os
import signal
import sys
import time

import redis
from redis.sentinel import MasterNotFoundError, Sentinel, SlaveNotFoundError

NAME = "mymaster"
LIMIT = 60.0


def until(what, attempt):
    """Tries again until it gives something, and takes the errors of a failover for what they are."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            found = attempt()
            if found:
                return found
            last = "nothing"
        except (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError, MasterNotFoundError, SlaveNotFoundError) as error:
            last = repr(error)
        if time.monotonic() > end:
            sys.exit(f"waited {LIMIT} s in vain for {what}: {last}")
        time.sleep(0.02)


def main():
    protocol, pid, master = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    replicas, sentinels = ([int(port) for port in ports.split(",")] for ports in sys.argv[4:6])
    options = {"protocol": protocol, "socket_timeout": 1.0}
    group = Sentinel(
        [("127.0.0.1", port) for port in sentinels],
        min_other_sentinels=len(sentinels) - 1,
        sentinel_kwargs=dict(options),
        **options,
    )

    assert group.discover_master(NAME) == ("127.0.0.1", master), group.discover_master(NAME)
    assert sorted(group.discover_slaves(NAME)) == [("127.0.0.1", port) for port in sorted(replicas)]
    one = group.sentinels[0]
    state = one.sentinel_masters()[NAME]
    assert (state["ip"], state["port"], state["quorum"]) == ("127.0.0.1", master, 2), state
    assert state["is_master"] and not state["is_sdown"] and not state["is_odown"], state
    assert (state["num-slaves"], state["num-other-sentinels"]) == (len(replicas), len(sentinels) - 1), state
    assert one.sentinel_master(NAME)["port"] == master
    assert sorted(replica["port"] for replica in one.sentinel_slaves(NAME)) == sorted(replicas)
    assert sorted(peer["port"] for peer in one.sentinel_sentinels(NAME)) == sorted(sentinels[1:])
    address = one.sentinel_get_master_addr_by_name(NAME)
    assert int(address[1]) == master, address
    one.sentinel_ckquorum(NAME)  # raises without a quorum; redis-py takes "OK 3 usable …" for False
    try:
        group.discover_master("nobody")
        sys.exit("a master of that name was found")
    except MasterNotFoundError:
        pass

    client = group.master_for(NAME)
    reader = group.slave_for(NAME)
    key = f"protocol-{protocol}"
    assert client.set(key, "before")
    assert client.execute_command("WAIT", len(replicas), 20000) == len(replicas)
    assert reader.get(key) == b"before"

    messages = one.pubsub()
    messages.subscribe("+switch-master")
    os.kill(pid, signal.SIGKILL)
    until("a write at another master", lambda: client.set(key, "after"))
    new = client.connection_pool.get_master_address()
    assert new[1] in replicas, new
    switch = until(
        "the message of the switch",
        lambda: next((m["data"] for m in iter(lambda: messages.get_message(timeout=0.2), None) if m["type"] == "message"), None),
    )
    assert switch == f"{NAME} 127.0.0.1 {master} 127.0.0.1 {new[1]}".encode(), switch
    rest = [("127.0.0.1", port) for port in replicas if port != new[1]]
    # redis-py leaves out those that are down, as the old master is.
    until("the replicas that are left", lambda: group.discover_slaves(NAME) == rest)
    until("the write at a replica", lambda: reader.get(key) == b"after")
    print(new[1])


main()
