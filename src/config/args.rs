//! The command line as configuration: `--port 1` is the line `port "1"` behind the file.

use crate::base::{Alike, quote};

/// Turns the arguments behind the file name into configuration lines, one per `--directive`.
///
/// The word behind a directive is its value even when it begins with `--` (a password may); only `--sentinel` and
/// `--save` may stand alone. Every further word up to the next `--` is a value as well. A directive and its values
/// may also be one argument, `"--port 1"`. The caller has taken away what is no directive: the file, `-`, `--version`.
#[must_use]
pub fn from_args(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut lines = Vec::new();
    let value = |lines: &mut Vec<u8>, word: &[u8]| {
        lines.push(b' ');
        lines.extend_from_slice(quote::quoted(word).as_bytes());
    };
    let mut args = args.iter().map(AsRef::as_ref).peekable();
    while let Some(word) = args.next() {
        let Some(directive) = word.strip_prefix(b"--") else {
            value(&mut lines, word);
            continue;
        };
        if !lines.is_empty() {
            lines.push(b'\n');
        }
        lines.extend_from_slice(directive);
        if directive.iter().any(u8::is_ascii_whitespace) {
            continue; // its values came along
        }
        let is_save = directive.alike(b"save");
        let may_stand_alone = is_save || directive.alike(b"sentinel");
        if may_stand_alone && args.peek().is_none_or(|next| next.starts_with(b"--")) {
            if is_save {
                value(&mut lines, b"");
            }
        } else if let Some(word) = args.next() {
            value(&mut lines, word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::from_args;

    fn lines(args: &[&str]) -> String {
        String::from_utf8(from_args(args)).unwrap()
    }

    #[test]
    fn r90_every_upstream_form_of_the_command_line_becomes_lines() {
        assert_eq!(lines(&[]), "");
        assert_eq!(lines(&["--port", "1", "--loglevel", "verbose"]), "port \"1\"\nloglevel \"verbose\"");
        assert_eq!(lines(&["--port 1", "--loglevel", "verbose"]), "port 1\nloglevel \"verbose\"");
        assert_eq!(lines(&["--sentinel"]), "sentinel");
        assert_eq!(lines(&["--sentinel", "--bind", "::1", "127.0.0.1"]), "sentinel\nbind \"::1\" \"127.0.0.1\"");
        assert_eq!(
            lines(&["--port", "1", "--sentinel", "monitor", "m", "127.0.0.1", "6379", "2"]),
            "port \"1\"\nsentinel \"monitor\" \"m\" \"127.0.0.1\" \"6379\" \"2\""
        );
        assert_eq!(lines(&["--save", "--port", "1"]), "save \"\"\nport \"1\"");
        assert_eq!(lines(&["loglevel", "verbose"]), " \"loglevel\" \"verbose\"");
    }

    #[test]
    fn a_value_may_begin_with_dashes_and_hold_anything() {
        assert_eq!(lines(&["--requirepass", "--abc", "--port", "1"]), "requirepass \"--abc\"\nport \"1\"");
        assert_eq!(lines(&["--requirepass", "a\nb \"c\""]), "requirepass \"a\\nb \\\"c\\\"\"");
    }
}
