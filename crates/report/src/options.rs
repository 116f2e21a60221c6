//! Options in texts. A text names an option as `⟨l2⟩`, or with a value as `⟨l2=1e-3⟩`; whoever shows it spells that as the reader's
//! interface has it. Documents are the same whoever asked: there an option stands in back ticks.

/// Writes every option of a text by a function of its name and value; what is no option stays as it is.
pub fn written(text: &str, write: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('⟨') {
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('⟩') else {
            out.push('⟨');
            rest = after;
            continue;
        };
        let (name, value) = match inside.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (inside, None),
        };
        if is_option(name) {
            out.push_str(&write(name, value));
            rest = tail;
        } else {
            // Somebody's text, which may hold an option further on.
            out.push('⟨');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Options in back ticks, as documents have them.
pub fn quoted(text: &str) -> String {
    written(text, |name, value| match value {
        Some(value) => format!("`{name} = {value}`"),
        None => format!("`{name}`"),
    })
}

fn is_option(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_quoted_and_other_texts_stay() {
        assert_eq!(quoted("use ⟨scale=bounds⟩ or ⟨l2⟩."), "use `scale = bounds` or `l2`.");
        for text in ["a ⟨ b", "⟨⟩", "⟨Not an option⟩", "x⟩⟨", "no marks"] {
            assert_eq!(quoted(text), text);
        }
        assert_eq!(quoted("⟨no ⟨l2⟩"), "⟨no `l2`");
    }
}
