//! `COMMAND …`, `… HELP` and `ACL CAT`: the table shown.

mod command_support;

use command_support::Bench;

fn expect(cases: &[(&str, &str)]) {
    let mut bench = Bench::new();
    let client = bench.client();
    for (line, reply) in cases {
        assert_eq!(bench.ask(client, line), *reply, "{line}");
    }
}

const PING: &str = "*10\r\n$4\r\nping\r\n:-1\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*2\r\n+@fast\r\n+@connection\r\n*2\r\n\
                    $25\r\nrequest_policy:all_shards\r\n$29\r\nresponse_policy:all_succeeded\r\n*0\r\n*0\r\n";

#[test]
fn r71_commands_are_counted_listed_and_described_as_the_reference_does() {
    expect(&[
        ("COMMAND COUNT", ":15\r\n"),
        ("COMMAND COUNT x", "-ERR wrong number of arguments for 'command|count' command\r\n"),
        ("COMMAND foo", "-ERR unknown subcommand 'foo'. Try COMMAND HELP.\r\n"),
        ("COMMAND INFO ping", &format!("*1\r\n{PING}")),
        ("COMMAND INFO ping nope SENTINEL|nope", &format!("*3\r\n{PING}$-1\r\n$-1\r\n")),
        (
            "COMMAND INFO sentinel|masters",
            "*1\r\n*10\r\n$16\r\nsentinel|masters\r\n:2\r\n*1\r\n+admin\r\n:0\r\n:0\r\n:0\r\n*3\r\n+@admin\r\n+@slow\r\n\
             +@dangerous\r\n*0\r\n*0\r\n*0\r\n",
        ),
        (
            "COMMAND INFO auth",
            "*1\r\n*10\r\n$4\r\nauth\r\n:-2\r\n*6\r\n+noscript\r\n+loading\r\n+stale\r\n+fast\r\n+no_auth\r\n+allow_busy\r\n\
             :0\r\n:0\r\n:0\r\n*2\r\n+@fast\r\n+@connection\r\n*0\r\n*0\r\n*0\r\n",
        ),
        (
            "COMMAND INFO role",
            "*1\r\n*10\r\n$4\r\nrole\r\n:1\r\n*4\r\n+noscript\r\n+loading\r\n+stale\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*3\r\n\
             +@admin\r\n+@fast\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n",
        ),
        (
            "COMMAND INFO shutdown",
            "*1\r\n*10\r\n$8\r\nshutdown\r\n:-1\r\n*6\r\n+admin\r\n+noscript\r\n+loading\r\n+stale\r\n+no_multi\r\n\
             +allow_busy\r\n:0\r\n:0\r\n:0\r\n*3\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n",
        ),
        (
            "COMMAND INFO client|kill",
            "*1\r\n*10\r\n$11\r\nclient|kill\r\n:-3\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n\
             *4\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n+@connection\r\n*0\r\n*0\r\n*0\r\n",
        ),
        (
            "COMMAND LIST FILTERBY ACLCAT pubsub",
            "*5\r\n$7\r\npublish\r\n$9\r\nsubscribe\r\n$10\r\npsubscribe\r\n$11\r\nunsubscribe\r\n$12\r\npunsubscribe\r\n",
        ),
        ("COMMAND LIST FILTERBY ACLCAT nope", "*0\r\n"),
        ("COMMAND LIST FILTERBY MODULE x", "*0\r\n"),
        ("COMMAND LIST FILTERBY PATTERN client|*name", "*2\r\n$14\r\nclient|getname\r\n$14\r\nclient|setname\r\n"),
        ("COMMAND LIST FILTERBY foo bar", "-ERR syntax error\r\n"),
        ("COMMAND LIST FOO", "-ERR syntax error\r\n"),
        ("COMMAND DOCS nope", "*0\r\n"),
        ("COMMAND GETKEYS get a", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS sentinel foo", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS ping a b", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYSANDFLAGS nope x", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS", "-ERR wrong number of arguments for 'command|getkeys' command\r\n"),
    ]);
}

#[test]
fn resp3_shows_flags_as_sets_and_docs_as_maps() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.ask(client, "HELLO 3");
    assert_eq!(
        bench.ask(client, "COMMAND INFO ping"),
        format!("*1\r\n{}", PING.replace("*1\r\n", "~1\r\n").replace("*2\r\n", "~2\r\n").replace("*0\r\n", "~0\r\n"))
    );
    assert_eq!(bench.ask(client, "COMMAND INFO nope"), "*1\r\n_\r\n");
    assert_eq!(bench.ask(client, "COMMAND DOCS nope"), "%0\r\n");
    let docs = bench.ask(client, "COMMAND DOCS sentinel|myid");
    assert!(docs.starts_with("%1\r\n$13\r\nsentinel|myid\r\n%4\r\n$7\r\nsummary\r\n"), "{docs}");
    let docs = bench.ask(client, "COMMAND DOCS acl");
    assert!(docs.contains("$11\r\nsubcommands\r\n%13\r\n$7\r\nacl|cat\r\n%5\r\n"), "{docs}");
    let docs = bench.ask(client, "COMMAND DOCS sentinel|slaves");
    assert!(docs.starts_with("%1\r\n$15\r\nsentinel|slaves\r\n%8\r\n$7\r\nsummary\r\n"), "{docs}");
    let end = "$9\r\ndoc_flags\r\n~1\r\n+deprecated\r\n$16\r\ndeprecated_since\r\n$5\r\n5.0.0\r\n\
               $11\r\nreplaced_by\r\n$19\r\n`SENTINEL REPLICAS`\r\n\
               $9\r\narguments\r\n*1\r\n%3\r\n$4\r\nname\r\n$11\r\nmaster-name\r\n$4\r\ntype\r\n$6\r\nstring\r\n\
               $12\r\ndisplay_text\r\n$11\r\nmaster-name\r\n";
    assert!(docs.ends_with(end), "{docs}");
    let docs = bench.ask(client, "COMMAND DOCS auth");
    assert!(docs.contains("$7\r\nhistory\r\n~1\r\n*2\r\n$5\r\n6.0.0\r\n$18\r\nTakes a user name.\r\n"), "{docs}");
}

#[test]
fn r75_the_whole_list_holds_old_and_new_names() {
    let mut bench = Bench::new();
    let client = bench.client();
    let list = bench.ask(client, "COMMAND LIST");
    for name in [
        "sentinel|slaves",
        "sentinel|replicas",
        "sentinel|get-master-addr-by-name",
        "sentinel|primaries",
        "client|setinfo",
        "acl|whoami",
    ] {
        assert!(list.contains(&format!("\r\n{name}\r\n")), "{name}");
    }
    // The bare command describes the containers with all that is in them.
    let all = bench.ask(client, "COMMAND");
    assert!(all.starts_with("*15\r\n*10\r\n"));
    assert_eq!(all, bench.ask(client, "COMMAND INFO"));
    for name in list.split("\r\n").skip(2).step_by(2) {
        assert!(all.contains(&format!("\r\n{name}\r\n")), "{name}");
    }
}

#[test]
fn help_names_every_subcommand_and_ends_with_itself() {
    let mut bench = Bench::new();
    let client = bench.client();
    for container in ["CLIENT", "COMMAND", "ACL", "SENTINEL"] {
        let help = bench.ask(client, &format!("{container} help"));
        let lines: Vec<&str> = help.trim_end().split("\r\n").collect();
        assert_eq!(lines[0], format!("*{}", lines.len() - 1));
        assert_eq!(lines[1], format!("+{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        assert!(lines[1..].iter().all(|line| line.starts_with('+')), "simple strings");
        assert_eq!(lines[lines.len() - 2], "+HELP");
        assert_eq!(
            bench.ask(client, &format!("{container} HELP x")),
            format!("-ERR wrong number of arguments for '{}|help' command\r\n", container.to_lowercase())
        );
    }
}

#[test]
fn acl_categories_are_the_references() {
    let mut bench = Bench::new();
    let client = bench.client();
    let all = bench.ask(client, "ACL CAT");
    assert!(all.starts_with("*21\r\n$8\r\nkeyspace\r\n$4\r\nread\r\n") && all.ends_with("$9\r\nscripting\r\n"));
    assert_eq!(bench.ask(client, "ACL CAT foo"), "-ERR Unknown category 'foo'\r\n");
    assert_eq!(
        bench.ask(client, "ACL CAT a b"),
        "-ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.\r\n"
    );
    assert_eq!(bench.ask(client, "ACL CAT geo"), "*0\r\n");
    assert!(bench.ask(client, "ACL CAT DANGEROUS").contains("sentinel|failover"));
}

/// As redis-sentinel 7.0.15 answers with the same lines in its file.
#[test]
fn renamed_commands_are_called_by_their_new_names_and_told_of_by_the_old() {
    let mut bench = Bench::new();
    let client = bench.client();
    for (old, new) in [("SHUTDOWN", ""), ("client", "Kunde"), ("PING", "pang")] {
        bench.facts.names.rename(old.as_bytes(), new.as_bytes()).unwrap();
    }
    for (line, reply) in [
        ("SHUTDOWN NOSAVE", "-ERR unknown command 'SHUTDOWN', with args beginning with: 'NOSAVE' \r\n"),
        ("CLIENT ID", "-ERR unknown command 'CLIENT', with args beginning with: 'ID' \r\n"),
        ("PING", "-ERR unknown command 'PING', with args beginning with: \r\n"),
        ("PANG", "+PONG\r\n"),
        ("kunde foo", "-ERR unknown subcommand 'foo'. Try KUNDE HELP.\r\n"),
        ("kunde id x", "-ERR wrong number of arguments for 'client|id' command\r\n"),
        ("COMMAND COUNT", ":14\r\n"),
        ("COMMAND INFO ping shutdown", "*2\r\n$-1\r\n$-1\r\n"),
        ("COMMAND INFO pang", &format!("*1\r\n{PING}")),
        ("COMMAND DOCS client|id", "*0\r\n"),
        ("COMMAND LIST FILTERBY PATTERN client|*name", "*2\r\n$14\r\nclient|getname\r\n$14\r\nclient|setname\r\n"),
        ("COMMAND LIST FILTERBY PATTERN shutdown", "*0\r\n"),
        ("COMMAND GETKEYS client id", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS kunde id", "-ERR The command has no key arguments\r\n"),
        ("ACL DRYRUN default client id", "-ERR Command 'client' not found\r\n"),
        ("ACL DRYRUN default kunde id", "+OK\r\n"),
        ("ACL SETUSER x +shutdown +client|list", "+OK\r\n"),
    ] {
        assert_eq!(bench.ask(client, line), reply, "{line}");
    }
    assert!(bench.ask(client, "kunde help").contains("+KUNDE <subcommand>"));
    assert!(bench.ask(client, "kunde list").contains(" cmd=client|list "));
}
