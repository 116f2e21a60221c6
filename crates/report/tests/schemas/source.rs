//! The types of the workspace as their sources define them, and what a path means in a module.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{ItemEnum, ItemStruct, Type, UseTree};

/// A type by its module and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) module: Vec<String>,
    pub(crate) name: String,
}

/// What a name stands for.
pub(crate) enum Definition {
    Struct(ItemStruct),
    Enum(ItemEnum),
    Alias(Type),
}

#[derive(Default)]
struct Module {
    definitions: BTreeMap<String, Definition>,
    /// Names that `use` brings in, with the path each stands for.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths of `use path::*`.
    globs: Vec<Vec<String>>,
    /// Constant texts.
    texts: BTreeMap<String, String>,
}

/// All modules of the crates that define documents.
#[derive(Default)]
pub(crate) struct Sources(BTreeMap<Vec<String>, Module>);

/// Imports that lead to imports: more than this is a circle.
const DEEPEST: usize = 24;

impl Sources {
    /// Reads folders of crates, each with the name of its crate.
    pub(crate) fn read(root: &Path, crates: &[(&str, &str)]) -> Self {
        let mut sources = Self::default();
        for (folder, name) in crates {
            sources.folder(&root.join(folder).join("src"), vec![(*name).to_owned()]);
        }
        sources
    }

    fn folder(&mut self, folder: &Path, module: Vec<String>) {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("a crate has sources").map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let inner: Vec<String> = module.iter().cloned().chain([stem.clone()]).collect();
            if path.is_dir() {
                self.folder(&path, inner);
            } else if path.extension().is_some_and(|e| e == "rs") && stem != "main" {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let is_front = stem == "lib" || stem == "mod";
                self.items(if is_front { module.clone() } else { inner }, file.items);
            }
        }
    }

    fn items(&mut self, path: Vec<String>, items: Vec<syn::Item>) {
        self.0.entry(path.clone()).or_default();
        for item in items {
            let module = self.0.get_mut(&path).expect("it was made above");
            match item {
                syn::Item::Struct(s) => {
                    module.definitions.insert(s.ident.to_string(), Definition::Struct(s));
                }
                syn::Item::Enum(e) => {
                    module.definitions.insert(e.ident.to_string(), Definition::Enum(e));
                }
                syn::Item::Type(t) => {
                    module.definitions.insert(t.ident.to_string(), Definition::Alias(*t.ty));
                }
                syn::Item::Const(c) => {
                    if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = *c.expr {
                        module.texts.insert(c.ident.to_string(), text.value());
                    }
                }
                syn::Item::Use(u) => module.import(&mut vec![], &u.tree),
                syn::Item::Mod(m) => {
                    let inner: Vec<String> = path.iter().cloned().chain([m.ident.to_string()]).collect();
                    if let (Some((_, items)), false) = (m.content, m.ident == "tests") {
                        self.items(inner, items);
                    }
                }
                // Functions and implementations define no type.
                _ => {}
            }
        }
    }

    pub(crate) fn definition(&self, id: &Id) -> &Definition {
        &self.0[&id.module].definitions[&id.name]
    }

    /// A constant text of a module.
    pub(crate) fn text(&self, module: &[String], name: &str) -> &str {
        self.0
            .get(module)
            .and_then(|m| m.texts.get(name))
            .unwrap_or_else(|| panic!("no {name} in {module:?}"))
    }

    /// What a path means in a module.
    pub(crate) fn find(&self, module: &[String], path: &[String]) -> Option<Id> {
        self.follow(module, path, DEEPEST)
    }

    fn follow(&self, module: &[String], path: &[String], left: usize) -> Option<Id> {
        let (head, rest) = path.split_first()?;
        let left = left.checked_sub(1)?;
        match head.as_str() {
            "crate" => return self.follow(&module[..1], rest, left),
            "self" => return self.follow(module, rest, left),
            "super" => return self.follow(&module[..module.len() - 1], rest, left),
            _ => {}
        }
        let here = self.0.get(module)?;
        if rest.is_empty() && here.definitions.contains_key(head) {
            return Some(Id { module: module.to_vec(), name: head.clone() });
        }
        if let Some(import) = here.imports.get(head) {
            let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
            // `pub use a::a` names the module `a` again.
            if whole.first() != Some(head) {
                return self.follow(module, &whole, left);
            }
        }
        let child: Vec<String> = module.iter().chain([head]).cloned().collect();
        if self.0.contains_key(&child) {
            return self.follow(&child, rest, left);
        }
        if self.0.contains_key(std::slice::from_ref(head)) {
            return self.follow(std::slice::from_ref(head), rest, left);
        }
        here.globs.iter().find_map(|glob| {
            let whole: Vec<String> = glob.iter().chain(path).cloned().collect();
            self.follow(module, &whole, left)
        })
    }
}

impl Module {
    fn import(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(p) => {
                before.push(p.ident.to_string());
                self.import(before, &p.tree);
                before.pop();
            }
            UseTree::Name(n) if n.ident == "self" => {
                if let Some(last) = before.last() {
                    self.imports.insert(last.clone(), before.clone());
                }
            }
            UseTree::Name(n) => self.name(before, n.ident.to_string(), n.ident.to_string()),
            UseTree::Rename(r) => self.name(before, r.ident.to_string(), r.rename.to_string()),
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(g) => g.items.iter().for_each(|tree| self.import(before, tree)),
        }
    }

    fn name(&mut self, before: &[String], name: String, called: String) {
        let path = before.iter().cloned().chain([name]).collect();
        self.imports.insert(called, path);
    }
}
