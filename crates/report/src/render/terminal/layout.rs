//! Text that was written a paragraph a line, laid out for a terminal.

/// The columns of a line.
const WIDTH: usize = 80;
/// Behind a label this far in, the rest of a paragraph has too little room.
const FURTHEST: usize = WIDTH / 2;

/// `text` with every line that is longer than a terminal's broken between words, what follows indented under the words that it
/// belongs to: behind a label, or as the line itself was. Rows of tables, and what stands between back ticks (a name, a command to
/// copy), stay whole.
pub fn laid_out(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn line(text: &str) -> String {
    let gaps = gaps(text);
    if text.chars().count() <= WIDTH || gaps.len() > 1 {
        return text.to_owned();
    }
    let indented = text.chars().take_while(|c| *c == ' ').count();
    let hang = gaps.first().copied().filter(|at| *at <= FURTHEST).unwrap_or(indented);
    let mut out = String::new();
    let mut column = 0;
    for (i, (space, word)) in words(text).into_iter().enumerate() {
        let length = word.chars().count();
        if i > 0 && column + space + length > WIDTH {
            out.push_str(&format!("\n{}", " ".repeat(hang)));
            column = hang;
        } else {
            out.push_str(&" ".repeat(space));
            column += space;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// Where words go on behind two spaces and more, in characters.
fn gaps(text: &str) -> Vec<usize> {
    let (mut gaps, mut spaces, mut begun) = (vec![], 0, false);
    for (at, c) in text.chars().enumerate() {
        if c == ' ' {
            spaces += 1;
        } else {
            if begun && spaces > 1 {
                gaps.push(at);
            }
            (spaces, begun) = (0, true);
        }
    }
    gaps
}

/// The words of a line with the spaces before each; what stands between back ticks is one word with what touches it.
fn words(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut spaces, mut start, mut quoted) = (vec![], 0, None, false);
    let pairs = text.matches('`').count().is_multiple_of(2);
    for (at, c) in text.char_indices() {
        if c == ' ' && !quoted {
            if let Some(start) = start.take() {
                words.push((spaces, &text[start..at]));
                spaces = 0;
            }
            spaces += 1;
            continue;
        }
        start.get_or_insert(at);
        quoted ^= c == '`' && pairs;
    }
    words.extend(start.map(|start| (spaces, &text[start..])));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_go_on_under_their_words() {
        let text = format!("short\n{}\n", "word ".repeat(30).trim_end());
        let out = laid_out(&text);
        assert!(out.lines().all(|l| l.chars().count() <= WIDTH) && out.lines().count() == 3, "{out}");
        assert!(out.ends_with('\n') && out.lines().skip(1).all(|l| l.starts_with("word")), "{out}");
        let labelled = laid_out(&format!("{:>16}  {}", "verdict", "word ".repeat(30).trim_end()));
        let mut lines = labelled.lines();
        assert!(lines.next().is_some_and(|l| l.starts_with("         verdict  word")));
        assert!(lines.all(|l| l.starts_with(&format!("{}word", " ".repeat(18)))), "{labelled}");
    }

    #[test]
    fn rows_of_tables_and_commands_stay_whole() {
        let row = format!("  name  {:>40}  {:>40}", 1.5, "certified");
        assert_eq!(laid_out(&row), row);
        let command = format!("`leakscope audit {}`", "--drop a ".repeat(12).trim_end());
        let out = laid_out(&format!(
            "To look at it again with what was said above, run {command}, and then release."
        ));
        assert!(out.lines().any(|l| l.starts_with(&command)), "{out}");
        // A back tick that nothing closes quotes nothing.
        assert!(laid_out(&format!("` {}", "word ".repeat(40))).lines().count() > 2);
    }

    proptest! {
        #[test]
        fn no_word_is_lost(text in "[a-zé` ]{0,300}") {
            let out = laid_out(&text);
            let spoken = |t: &str| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(spoken(&out), spoken(&text));
        }
    }
}
