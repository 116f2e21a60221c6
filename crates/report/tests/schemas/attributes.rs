//! What serde and the documentation say about a type, a field or a variant.

use syn::{Attribute, Expr, Lit, LitStr, Meta};

/// Serde's attributes, as far as documents use them; any other stops the generator.
#[derive(Debug, Default)]
pub(crate) struct Serde {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) untagged: bool,
    pub(crate) flatten: bool,
    pub(crate) skip: bool,
    /// Whether the writer leaves the field out at times.
    pub(crate) may_be_absent: bool,
    /// The same, and that is where it is `None`: it is never `null`.
    pub(crate) absent_for_none: bool,
    pub(crate) with: Option<String>,
    pub(crate) into: Option<String>,
}

impl Serde {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let mut serde = Self::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("serde")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let value = if meta.input.peek(syn::Token![=]) {
                    Some(meta.value()?.parse::<LitStr>()?.value())
                } else {
                    None
                };
                match name.as_str() {
                    "rename" => serde.rename = value,
                    "rename_all" => serde.rename_all = value,
                    "tag" => serde.tag = value,
                    "untagged" => serde.untagged = true,
                    "flatten" => serde.flatten = true,
                    "skip" => serde.skip = true,
                    "skip_serializing_if" => {
                        serde.may_be_absent = true;
                        serde.absent_for_none = value.as_deref() == Some("Option::is_none");
                    }
                    "with" => serde.with = value,
                    "into" => serde.into = value,
                    // What matters to readers alone.
                    "default" | "from" | "try_from" | "deny_unknown_fields" => {}
                    other => panic!("serde({other}) is new: say in `schemas` what it does to a document"),
                }
                Ok(())
            });
            parsed.unwrap_or_else(|e| panic!("{e}"));
        }
        serde
    }

    /// A name as it is written.
    pub(crate) fn written(name: &str, own: &Self, rule: Option<&str>) -> String {
        if let Some(name) = &own.rename {
            return name.clone();
        }
        let name = name.strip_prefix("r#").unwrap_or(name);
        match rule {
            None => name.to_owned(),
            Some("lowercase") => name.to_lowercase(),
            Some("snake_case") => parted(name, '_'),
            Some("kebab-case") => parted(name, '-'),
            Some(other) => panic!("rename_all = {other:?} is new: say in `schemas` what it does"),
        }
    }
}

/// `AtLeast` and `at_least` in small letters with a mark between the words.
fn parted(name: &str, mark: char) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push(mark);
        }
        out.extend(if c == '_' { vec![mark] } else { c.to_lowercase().collect() });
    }
    out
}

/// The documentation of an item as one text, without its links.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let line = |a: &Attribute| match &a.meta {
        Meta::NameValue(nv) if nv.path.is_ident("doc") => match &nv.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    let paragraphs: Vec<String> =
        lines.split(|l| l.is_empty()).map(|p| p.join(" ")).filter(|p| !p.is_empty()).collect();
    without_links(&paragraphs.join("\n\n"))
}

/// `` [`super::net::Record::label`] `` as `` `Record::label` ``.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        out.push_str(before);
        let Some((link, tail)) = after.split_once("`]") else {
            out.push_str("[`");
            rest = after;
            continue;
        };
        let is_module = |part: &&str| part.starts_with(|c: char| c.is_lowercase());
        let parts: Vec<&str> = link.split("::").collect();
        let modules = parts[..parts.len() - 1].iter().take_while(|p| is_module(p)).count();
        out.push_str(&format!("`{}`", parts[modules..].join("::")));
        rest = tail;
    }
    out + rest
}

#[test]
fn names_and_documentation_are_as_written() {
    assert_eq!((parted("AtLeast", '-'), parted("at_least", '-')), ("at-least".into(), "at-least".into()));
    assert_eq!(
        without_links("see [`super::net::Record::label`], [`A`] and [b]"),
        "see `Record::label`, `A` and [b]"
    );
}
