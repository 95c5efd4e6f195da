//! What one client can make us hold or do: every list and every word that it leaves with us has a bound, and so has the
//! work of one request. Whoever keeps within what clients do never meets one.

mod command_support;

use command_support::Bench;
use watchfire::base::limits;

fn request<'a>(words: &[&'a [u8]], more: &'a [Vec<u8>]) -> Vec<&'a [u8]> {
    words.iter().copied().chain(more.iter().map(Vec::as_slice)).collect()
}

fn names(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| format!("name{n}").into_bytes()).collect()
}

#[track_caller]
fn refused(bench: &mut Bench, argv: &[&[u8]], reason: &str) {
    let client = bench.client();
    let reply = bench.ask_bytes(client, argv);
    assert_eq!(String::from_utf8_lossy(&reply), format!("-ERR {reason}\r\n"));
}

#[test]
fn subscriptions_are_counted_and_their_names_measured() {
    let mut bench = Bench::new();
    let client = bench.client();
    let most = names(limits::SUBSCRIPTIONS);
    let half = most.len() / 2;
    bench.ask_bytes(client, &request(&[b"SUBSCRIBE"], &most[..half]));
    bench.ask_bytes(client, &request(&[b"PSUBSCRIBE"], &most[half..]));
    assert_eq!(bench.clients.get(client).unwrap().subscriptions(), limits::SUBSCRIPTIONS);
    let full = format!("-ERR A client may have {} channels and patterns\r\n", limits::SUBSCRIPTIONS);
    assert_eq!(bench.ask(client, "SUBSCRIBE one-more"), full);
    assert_eq!(bench.ask(client, "PSUBSCRIBE one-more"), full);
    assert!(bench.ask(client, "UNSUBSCRIBE name0").ends_with(":1023\r\n"));
    assert!(bench.ask(client, "SUBSCRIBE one-more").ends_with(":1024\r\n"));

    let long = vec![b'x'; limits::CLIENT_WORD + 1];
    for command in [b"SUBSCRIBE".as_slice(), b"PSUBSCRIBE"] {
        let reason = format!("A channel or pattern may have {} bytes", limits::CLIENT_WORD);
        refused(&mut bench, &[command, b"a", &long], &reason);
    }
    let other = bench.client();
    assert!(bench.ask_bytes(other, &[b"SUBSCRIBE", &long[1..]]).ends_with(b":1\r\n"));
}

#[test]
fn prefixes_are_counted_and_measured_before_they_are_compared() {
    let mut bench = Bench::new();
    let prefixes = |count: usize| -> Vec<Vec<u8>> {
        // None of them is the beginning of another.
        (0..count).flat_map(|n| [b"PREFIX".to_vec(), format!("{n:07}").into_bytes()]).collect()
    };
    let reason = format!("A client may have {} prefixes of {} bytes", limits::SUBSCRIPTIONS, limits::CLIENT_WORD);
    // Each is compared with all others: half a million would take a minute.
    let many = prefixes(500_000);
    refused(&mut bench, &request(&[b"CLIENT", b"TRACKING", b"ON", b"BCAST"], &many), &reason);
    let long = vec![b'x'; limits::CLIENT_WORD + 1];
    refused(&mut bench, &[b"CLIENT", b"TRACKING", b"ON", b"BCAST", b"PREFIX", &long], &reason);
    let client = bench.client();
    let most = prefixes(limits::SUBSCRIPTIONS);
    let (first, second) = most.split_at(most.len() / 2);
    for half in [first, second] {
        assert_eq!(bench.ask_bytes(client, &request(&[b"CLIENT", b"TRACKING", b"ON", b"BCAST"], half)), b"+OK\r\n");
    }
    assert_eq!(bench.ask(client, "CLIENT TRACKING ON BCAST PREFIX one-more"), format!("-ERR {reason}\r\n"));
}

#[test]
fn names_of_clients_are_short() {
    let mut bench = Bench::new();
    let long = vec![b'x'; limits::CLIENT_WORD + 1];
    let reason = "Client names cannot be that long.";
    refused(&mut bench, &[b"CLIENT", b"SETNAME", &long], reason);
    refused(&mut bench, &[b"HELLO", b"3", b"SETNAME", &long], reason);
    let reason = "LIB-NAME cannot contain spaces, newlines or special characters.";
    refused(&mut bench, &[b"CLIENT", b"SETINFO", b"LIB-NAME", &long], reason);
    let client = bench.client();
    assert_eq!(bench.ask_bytes(client, &[b"CLIENT", b"SETNAME", &long[1..]]), b"+OK\r\n");
}

#[test]
fn a_small_request_does_not_bring_about_a_reply_without_end() {
    let mut bench = Bench::new();
    let reason = |most: usize| format!("One request may ask for {most} at most");
    for (words, word, most) in [
        // Those with the longest answers.
        (&[b"COMMAND".as_slice(), b"INFO"], b"sentinel".as_slice(), limits::DESCRIBED),
        (&[b"COMMAND", b"DOCS"], b"sentinel", limits::DESCRIBED),
        (&[b"SENTINEL", b"INFO-CACHE"], b"mymaster", limits::ASKED),
    ] {
        let many = vec![word.to_vec(); most + 1];
        refused(&mut bench, &request(words, &many), &reason(most));
        let client = bench.client();
        let reply = bench.ask_bytes(client, &request(words, &many[1..]));
        assert_eq!(reply[..1], b"*"[..]);
        assert!(reply.len() < 16 * 1024 * 1024, "{} bytes", reply.len());
    }
    let reason = reason(limits::ASKED);
    let many = vec![b"announce-*".to_vec(); limits::ASKED + 1];
    refused(&mut bench, &request(&[b"SENTINEL", b"CONFIG", b"GET"], &many), &reason);
    let many = vec![b"1".to_vec(); limits::ASKED + 1];
    refused(&mut bench, &request(&[b"CLIENT", b"LIST", b"ID"], &many), &reason);
}

#[test]
fn words_that_reach_the_file_are_short_passwords_too() {
    let mut bench = Bench::new();
    let long = vec![b'x'; limits::SETTING + 1];
    let reason = |at: usize, command: &str| {
        format!("Invalid argument at index {at} for {command}: longer than {} bytes", limits::SETTING)
    };
    refused(&mut bench, &[b"SENTINEL", b"MONITOR", &long, b"127.0.0.1", b"1", b"1"], &reason(2, "SENTINEL MONITOR"));
    for option in [b"auth-pass".as_slice(), b"auth-user", b"client-reconfig-script"] {
        refused(&mut bench, &[b"SENTINEL", b"SET", b"mymaster", option, &long], &reason(4, "SENTINEL SET"));
    }
    refused(
        &mut bench,
        &[b"SENTINEL", b"SET", b"mymaster", b"rename-command", b"a", &long],
        &reason(5, "SENTINEL SET"),
    );
    for option in [b"sentinel-pass".as_slice(), b"announce-ip", b"sentinel-user"] {
        let argv: [&[u8]; 5] = [b"SENTINEL", b"CONFIG", b"SET", option, &long];
        refused(&mut bench, &argv, &reason(4, "SENTINEL CONFIG SET"));
    }
    let client = bench.client();
    let reply = bench.ask_bytes(client, &[b"SENTINEL", b"SET", b"mymaster", b"auth-pass", &long[1..]]);
    assert_eq!(reply, b"+OK\r\n");
    // A pattern is no such word; a long one just finds nothing.
    assert_eq!(bench.ask_bytes(client, &[b"SENTINEL", b"RESET", &vec![b'*'; limits::PATTERN + 1]]), b":0\r\n");
}

#[test]
fn our_own_password_is_one_that_whoever_owes_it_can_send() {
    let mut bench = Bench::new();
    let long = vec![b'x'; limits::UNAUTHENTICATED_BULK + 1];
    let most = limits::UNAUTHENTICATED_BULK;
    let own = |long: &[u8]| -> Vec<Vec<u8>> {
        ["SENTINEL", "CONFIG", "SET", "loglevel", "debug", "requirepass"]
            .map(|word| word.as_bytes().to_vec())
            .into_iter()
            .chain([long[..].to_vec()])
            .collect()
    };
    let reason = format!("Invalid argument at index 6 for SENTINEL CONFIG SET: longer than {most} bytes");
    refused(&mut bench, &request(&[], &own(&long[..=most])), &reason);
    assert!(bench.wishes.is_empty() && bench.acl.default_user().needs_no_password());
    let client = bench.client();
    assert_eq!(bench.ask_bytes(client, &request(&[], &own(&long[..most]))), b"+OK\r\n");
    assert!(bench.acl.authenticate(b"default", &long[..most]));
}
