//! What follows a command's name: one description of it, shown in two ways, by HELP as a line for people and by
//! `COMMAND DOCS` as a tree for programs.

use crate::resp::Writer;

/// One argument, or a group of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Told apart by it from the others of the same command.
    pub name: &'static str,
    pub kind: Kind,
    /// How it is shown where that differs from the name; empty where it does not.
    pub shown: &'static str,
    /// The word that stands before it, or for a [`Kind::Word`] the word itself; empty where there is none.
    pub token: &'static str,
    /// The first version of Redis that takes it; empty for what was there from the start.
    pub since: &'static str,
    pub deprecated: &'static str,
    pub optional: bool,
    pub multiple: bool,
    /// Of several, each has the token before it.
    pub multiple_token: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    /// A glob.
    Pattern,
    /// A fixed word.
    Word,
    OneOf(&'static [Arg]),
    /// All of them, in this order.
    Block(&'static [Arg]),
}

impl Kind {
    /// The word of the wire.
    fn word(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::Number => "integer",
            Kind::Pattern => "pattern",
            Kind::Word => "pure-token",
            Kind::OneOf(_) => "oneof",
            Kind::Block(_) => "block",
        }
    }
}

const fn new(name: &'static str, kind: Kind) -> Arg {
    Arg {
        name,
        kind,
        shown: "",
        token: "",
        since: "",
        deprecated: "",
        optional: false,
        multiple: false,
        multiple_token: false,
    }
}

pub const fn text(name: &'static str) -> Arg {
    new(name, Kind::Text)
}

pub const fn number(name: &'static str) -> Arg {
    new(name, Kind::Number)
}

pub const fn pattern(name: &'static str) -> Arg {
    new(name, Kind::Pattern)
}

pub const fn word(name: &'static str, token: &'static str) -> Arg {
    new(name, Kind::Word).after(token)
}

pub const fn one_of(name: &'static str, choices: &'static [Arg]) -> Arg {
    new(name, Kind::OneOf(choices))
}

pub const fn block(name: &'static str, parts: &'static [Arg]) -> Arg {
    new(name, Kind::Block(parts))
}

impl Arg {
    pub const fn optional(self) -> Arg {
        Arg { optional: true, ..self }
    }

    pub const fn multiple(self) -> Arg {
        Arg { multiple: true, ..self }
    }

    pub const fn multiple_token(self) -> Arg {
        Arg { multiple_token: true, ..self }
    }

    pub const fn after(self, token: &'static str) -> Arg {
        Arg { token, ..self }
    }

    pub const fn since(self, version: &'static str) -> Arg {
        Arg { since: version, ..self }
    }

    pub const fn deprecated(self, version: &'static str) -> Arg {
        Arg { deprecated: version, ..self }
    }

    pub const fn shown(self, text: &'static str) -> Arg {
        Arg { shown: text, ..self }
    }

    fn display(&self) -> &'static str {
        if self.shown.is_empty() { self.name } else { self.shown }
    }

    /// `[TYPE NORMAL|PUBSUB]`, `<channel> [<channel> ...]`
    fn usage(&self) -> String {
        let itself = match self.kind {
            Kind::OneOf(choices) if self.multiple && choices.iter().all(Arg::is_option) => {
                // Each of them once, in any order.
                return usage(&choices.iter().map(|arg| arg.optional()).collect::<Vec<_>>());
            }
            Kind::OneOf(choices) => choices.iter().map(Arg::usage).collect::<Vec<_>>().join("|"),
            Kind::Block(parts) => usage(parts),
            Kind::Word if self.token.is_empty() => self.display().to_ascii_uppercase(),
            Kind::Word => self.token.to_owned(),
            Kind::Text | Kind::Number | Kind::Pattern => format!("<{}>", self.display()),
        };
        let once = match self.kind {
            Kind::Word => itself.clone(),
            _ if self.token.is_empty() => itself.clone(),
            _ => format!("{} {itself}", self.token),
        };
        let again = if self.multiple_token { &once } else { &itself };
        let all = if self.multiple { format!("{once} [{again} ...]") } else { once };
        if self.optional { format!("[{all}]") } else { all }
    }

    fn is_option(&self) -> bool {
        self.optional || self.kind == Kind::Word
    }

    /// One entry of `arguments` in `COMMAND DOCS`.
    fn document(&self, reply: &mut Writer<'_>) {
        let parts = match self.kind {
            Kind::OneOf(parts) | Kind::Block(parts) => parts,
            _ => &[],
        };
        let display = if parts.is_empty() { self.display() } else { "" };
        let texts = [
            ("name", self.name),
            ("type", self.kind.word()),
            ("display_text", display),
            ("token", self.token),
            ("since", self.since),
            ("deprecated_since", self.deprecated),
        ];
        let flags = [(self.optional, "optional"), (self.multiple, "multiple"), (self.multiple_token, "multiple_token")];
        let texts = || texts.iter().filter(|(_, text)| !text.is_empty());
        let flags = || flags.iter().filter(|(is_set, _)| *is_set);
        reply.map(texts().count() + usize::from(flags().count() > 0) + usize::from(!parts.is_empty()));
        for (key, text) in texts() {
            reply.bulk(key);
            reply.bulk(text);
        }
        if flags().count() > 0 {
            reply.bulk("flags");
            reply.set(flags().count());
            flags().for_each(|(_, flag)| reply.simple(flag));
        }
        if !parts.is_empty() {
            reply.bulk("arguments");
            document(reply, parts);
        }
    }
}

/// All of them in one line, as HELP shows it.
pub fn usage(args: &[Arg]) -> String {
    args.iter().map(Arg::usage).collect::<Vec<_>>().join(" ")
}

/// The value of `arguments` in `COMMAND DOCS`.
pub fn document(reply: &mut Writer<'_>, args: &[Arg]) {
    reply.array(args.len());
    args.iter().for_each(|arg| arg.document(reply));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Proto;

    #[test]
    fn one_description_makes_the_line_of_help() {
        const KINDS: &[Arg] = &[word("normal", "NORMAL"), word("pubsub", "PUBSUB")];
        const PAIR: &[Arg] = &[text("option"), text("value")];
        const FILTERS: &[Arg] = &[number("id").after("ID").optional(), one_of("type", KINDS).after("TYPE").optional()];
        const FORMS: &[Arg] = &[text("old").shown("ip:port"), one_of("new", FILTERS).multiple()];
        let cases = [
            (text("channel").multiple(), "<channel> [<channel> ...]"),
            (text("section").optional().multiple(), "[<section> [<section> ...]]"),
            (block("data", PAIR).after("SET").multiple(), "SET <option> <value> [<option> <value> ...]"),
            (
                text("prefix").after("PREFIX").optional().multiple().multiple_token(),
                "[PREFIX <prefix> [PREFIX <prefix> ...]]",
            ),
            (one_of("kind", KINDS).optional(), "[NORMAL|PUBSUB]"),
            (one_of("kind", KINDS).optional().multiple(), "[NORMAL] [PUBSUB]"),
            (one_of("filter", FORMS), "<ip:port>|[ID <id>] [TYPE NORMAL|PUBSUB]"),
            (word("help", ""), "HELP"),
        ];
        for (arg, line) in cases {
            assert_eq!(usage(&[arg]), line);
        }
        assert_eq!(usage(PAIR), "<option> <value>");
    }

    #[test]
    fn the_same_description_makes_the_tree_of_command_docs() {
        const KINDS: &[Arg] = &[word("on", "ON")];
        let args = [text("old").shown("ip:port").deprecated("2.8.12"), one_of("kind", KINDS).since("6.2.0").optional()];
        let mut out = Vec::new();
        document(&mut Writer::new(&mut out, Proto::Resp3), &args);
        let words = String::from_utf8(out).unwrap();
        let shown: Vec<&str> = words.split("\r\n").filter(|word| !word.starts_with('$')).collect();
        assert_eq!(
            shown.join(" ").trim_end(),
            "*2 %4 name old type string display_text ip:port deprecated_since 2.8.12 \
             %5 name kind type oneof since 6.2.0 flags ~1 +optional \
             arguments *1 %4 name on type pure-token display_text on token ON"
        );
    }
}
