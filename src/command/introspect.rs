//! `COMMAND …` and `… HELP`: all of it read off the table.

use super::arguments;
use super::call::Call;
use super::commands::COMMANDS;
use super::table::{Command, Found};
use crate::base::{Alike, glob, limits};
use crate::resp::Writer;

/// All rows, each container before its subcommands.
pub(super) fn all() -> impl Iterator<Item = &'static Command> {
    COMMANDS.rows.iter().flat_map(|row| std::iter::once(row).chain(row.subcommands()))
}

/// `COMMAND` and `COMMAND INFO`.
pub(super) fn info(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let names = &call.world.facts.names;
    let mut reply = Writer::new(call.out, call.proto);
    if argv.len() <= 2 {
        reply.array(names.rows().count());
        names.rows().for_each(|row| describe(&mut reply, row));
        return;
    }
    if argv.len() - 2 > limits::DESCRIBED {
        return call.too_many(limits::DESCRIBED);
    }
    reply.array(argv.len() - 2);
    for name in argv.iter().skip(2) {
        match names.find_full(name) {
            Some(row) => describe(&mut reply, row),
            None => reply.nil(),
        }
    }
}

/// The ten fields of `COMMAND INFO`.
fn describe(reply: &mut Writer<'_>, row: &Command) {
    reply.array(10);
    reply.bulk(row.full);
    reply.integer(i64::from(row.arity));
    reply.set(row.flag_words().count());
    row.flag_words().for_each(|word| reply.simple(word));
    // First key, last key, step: nothing here has keys.
    (0..3).for_each(|_| reply.integer(0));
    reply.set(row.categories().count());
    row.categories().for_each(|word| reply.simple(&format!("@{word}")));
    reply.set(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip));
    reply.set(0);
    if row.subcommands().is_empty() {
        reply.set(0);
    } else {
        reply.array(row.subcommands().len());
        row.subcommands().iter().for_each(|sub| describe(reply, sub));
    }
}

pub(super) fn count(call: &mut Call<'_, '_>) {
    let count = call.world.facts.names.rows().count();
    call.reply().integer(i64::try_from(count).unwrap_or(i64::MAX));
}

pub(super) fn list(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    let all = || call.world.facts.names.all();
    let names: Vec<&str> = match (argv.len(), argv.get(2), argv.get(3), argv.get(4)) {
        (2, ..) => all().map(|row| row.full).collect(),
        (5, Some(filter), Some(by), Some(value)) if filter.alike(b"FILTERBY") => {
            let wanted = |row: &&Command| match () {
                () if by.alike(b"ACLCAT") => row.categories().any(|word| word.as_bytes().alike(value)),
                () if by.alike(b"PATTERN") => glob::matches(value, row.full.as_bytes(), true),
                () => false,
            };
            // There are no modules, so that filter finds nothing.
            let known: [&[u8]; 3] = [b"ACLCAT", b"PATTERN", b"MODULE"];
            if !known.iter().any(|word| by.alike(word)) {
                return call.syntax_error();
            }
            all().filter(wanted).map(|row| row.full).collect()
        }
        _ => return call.syntax_error(),
    };
    let mut reply = call.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
}

pub(super) fn docs(call: &mut Call<'_, '_>) {
    let argv = call.argv;
    if argv.len() - 2 > limits::DESCRIBED {
        return call.too_many(limits::DESCRIBED);
    }
    let names = &call.world.facts.names;
    let rows: Vec<&Command> = if argv.len() == 2 {
        names.rows().collect()
    } else {
        argv.iter().skip(2).filter_map(|name| names.find_full(name)).collect()
    };
    let mut reply = call.reply();
    reply.map(rows.len());
    rows.into_iter().for_each(|row| document(&mut reply, row));
}

fn document(reply: &mut Writer<'_>, row: &Command) {
    let texts = [("summary", row.summary), ("since", row.since), ("group", row.group), ("complexity", row.complexity)];
    let texts = || texts.iter().filter(|(_, text)| !text.is_empty());
    let subs = row.subcommands();
    let lists = [!row.history.is_empty(), !row.args.is_empty(), !subs.is_empty()];
    let deprecation = if row.replaced.is_some() { 3 } else { 0 };
    reply.bulk(row.full);
    reply.map(texts().count() + deprecation + lists.iter().filter(|there| **there).count());
    for (key, text) in texts() {
        reply.bulk(key);
        reply.bulk(text);
    }
    if let Some((since, by)) = row.replaced {
        reply.bulk("doc_flags");
        reply.set(1);
        reply.simple("deprecated");
        reply.bulk("deprecated_since");
        reply.bulk(since);
        reply.bulk("replaced_by");
        reply.bulk(format!("`{by}`"));
    }
    if !row.history.is_empty() {
        reply.bulk("history");
        reply.set(row.history.len());
        for (version, text) in row.history {
            reply.array(2);
            reply.bulk(version);
            reply.bulk(text);
        }
    }
    if !row.args.is_empty() {
        reply.bulk("arguments");
        arguments::document(reply, row.args);
    }
    if !subs.is_empty() {
        reply.bulk("subcommands");
        reply.map(subs.len());
        subs.iter().for_each(|sub| document(reply, sub));
    }
}

/// `COMMAND GETKEYS` and `COMMAND GETKEYSANDFLAGS`: no command of a Sentinel takes keys.
pub(super) fn getkeys(call: &mut Call<'_, '_>) {
    match call.world.facts.names.find(call.argv, 2) {
        Found::Command(_) => call.error("ERR The command has no key arguments"),
        Found::Nothing | Found::NoSub(_) => call.error("ERR Invalid command specified"),
    }
}

/// `<container> HELP`: one line for each subcommand and what it does.
pub(super) fn help(call: &mut Call<'_, '_>) {
    let container = call.command.full.split('|').next().and_then(|name| COMMANDS.find(name.as_bytes()));
    let Some(container) = container else { return call.syntax_error() };
    // As the client calls it.
    let name = String::from_utf8_lossy(&call.argv[0]).to_ascii_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    if container.name == "command" {
        lines.push("(no subcommand)".to_owned());
        lines.push(format!("    {}", container.summary));
    }
    // HELP itself comes last.
    let (help, others): (Vec<&Command>, Vec<&Command>) =
        container.subcommands().iter().partition(|sub| sub.name == "help");
    for sub in others.into_iter().chain(help) {
        let title = sub.name.to_ascii_uppercase();
        lines.push(if sub.args.is_empty() { title } else { format!("{title} {}", arguments::usage(sub.args)) });
        lines.push(format!("    {}", sub.summary));
    }
    let mut reply = call.reply();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
