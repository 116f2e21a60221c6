//! Options in messages: the library names them, the edge spells them.
//!
//! A message holds an option as `⟨l2⟩`, or with a value as `⟨l2=1e-3⟩`. [`spell`] writes it as the reader's interface has
//! it, so that no message speaks of `--l2` to somebody who calls a function, or of `l2=` to somebody at a terminal.

use leakscope_report::options::written;
use std::fmt;
use std::sync::OnceLock;

/// How an interface writes its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `--target-eta 0.5`.
    CommandLine,
    /// `target_eta=0.5`.
    Python,
    /// `target_eta = 0.5`, the field of a request.
    Rust,
}

impl Spelling {
    /// An option by itself, as the subject of a message.
    pub fn option(self, name: &str) -> String {
        match self {
            Self::CommandLine => format!("--{}", name.replace('_', "-")),
            Self::Python if name == "intercept" => "fit_intercept".into(),
            Self::Python if name == "no_header" => "header=False".into(),
            Self::Python | Self::Rust => name.into(),
        }
    }

    /// An option with what is wrong about it, or about its value: `--sigma: -1: expected …`, `sigma=-1: expected …`.
    pub fn complaint(self, name: &str, value: Option<&Value>, message: &str) -> String {
        let (option, message) = (self.option(name), spell(message, self));
        match (self, value) {
            (Self::Python, Some(Value::Number(number))) => format!("{option}={number}: {message}"),
            (Self::Python, Some(Value::Text(text))) => format!("{option}='{text}': {message}"),
            (Self::CommandLine | Self::Rust, Some(value)) => format!("{option}: {value}: {message}"),
            (Self::CommandLine | Self::Python | Self::Rust, None) => format!("{option}: {message}"),
        }
    }

    fn with(self, name: &str, value: &str) -> String {
        match (self, name, value) {
            // A switch on the command line, a truth value elsewhere.
            (Self::CommandLine, "intercept", "false") => "--no-intercept".into(),
            (Self::Python, "intercept", "false") => "fit_intercept=False".into(),
            (Self::CommandLine, ..) => {
                format!("--{} {}", name.replace('_', "-"), leakscope_report::quoted(value))
            }
            (Self::Python, ..) => match value.parse::<f64>() {
                Ok(_) => format!("{name}={value}"),
                Err(_) => format!("{name}={value:?}"),
            },
            (Self::Rust, ..) => format!("{name} = {value}"),
        }
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, as it is shown.
    Number(String),
    /// A text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(number),
            Self::Text(text) => write!(f, "`{text}`"),
        }
    }
}

/// Writes the options of a message as an interface has them.
pub fn spell(message: &str, spelling: Spelling) -> String {
    written(message, |name, value| match value {
        Some(value) => spelling.with(name, value),
        None => spelling.option(name),
    })
}

/// The interface of this process: what it writes for people, it spells so.
static READER: OnceLock<Spelling> = OnceLock::new();

/// Says once whose interface this process is.
pub fn speak(spelling: Spelling) {
    // Who said so first has the interface.
    let _ = READER.set(spelling);
}

/// A text for people as the interface of this process spells options.
pub fn for_reader(text: &str) -> String {
    spell(text, READER.get().copied().unwrap_or(Spelling::Rust))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn every_interface_has_its_own_spelling() {
        let text = "add a penalty, for example ⟨l2=1e-3⟩, or use ⟨one_hot=drop-last⟩; see ⟨target_eta⟩";
        assert_eq!(
            spell(text, Spelling::CommandLine),
            "add a penalty, for example --l2 1e-3, or use --one-hot drop-last; see --target-eta"
        );
        assert_eq!(
            spell(text, Spelling::Python),
            "add a penalty, for example l2=1e-3, or use one_hot=\"drop-last\"; see target_eta"
        );
        let column = "leave it out with ⟨drop=weight (kg)⟩";
        assert_eq!(spell(column, Spelling::CommandLine), "leave it out with --drop 'weight (kg)'");
        let column = "leave it out with ⟨drop=the \"mg\"⟩";
        assert_eq!(spell(column, Spelling::Python), r#"leave it out with drop="the \"mg\"""#);
        assert_eq!(spell("⟨intercept=false⟩", Spelling::CommandLine), "--no-intercept");
        assert_eq!(spell("⟨intercept=false⟩", Spelling::Python), "fit_intercept=False");
    }

    #[test]
    fn a_value_is_joined_to_its_option_as_the_interface_writes_it() {
        let wrong = Failure::number("target_eta", -1, "expected a positive number");
        assert_eq!(wrong.spelled(Spelling::CommandLine), "--target-eta: -1: expected a positive number");
        assert_eq!(wrong.spelled(Spelling::Python), "target_eta=-1: expected a positive number");
        let text = Failure::text("target_eta", "big", "no `x` here");
        assert_eq!(text.spelled(Spelling::CommandLine), "--target-eta: `big`: no `x` here");
        assert_eq!(text.spelled(Spelling::Python), "target_eta='big': no `x` here");
        let python = |name, message| Failure::option(name, message).spelled(Spelling::Python);
        assert_eq!(python("target_eta", "`a` and `b`: choose"), "target_eta: `a` and `b`: choose");
        assert_eq!(
            python("target_eta", "leave ⟨sigma⟩ out: use one"),
            "target_eta: leave sigma out: use one"
        );
        assert_eq!(python("intercept", "no"), "fit_intercept: no");
    }

    #[test]
    fn what_is_no_option_stays_as_it_is() {
        for text in ["a ⟨ b", "⟨⟩", "⟨Not an option⟩", "x⟩⟨", "no marks"] {
            assert_eq!(spell(text, Spelling::CommandLine), text);
        }
    }
}
