//! Types to JSON Schema (draft 2020-12): what a document that serde writes looks like, with the documentation of its fields.

use super::attributes::{Serde, documentation};
use super::source::{Definition, Id, Sources};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Field, Fields, GenericArgument, ItemEnum, ItemStruct, PathArguments, Type, Variant};

/// Schemas of the types that a document is made of.
pub(crate) struct Shapes<'a> {
    sources: &'a Sources,
    definitions: BTreeMap<Id, Value>,
}

/// The fields of an object, and which of them are always there.
#[derive(Debug, Clone, Default)]
struct Object {
    about: String,
    properties: Map<String, Value>,
    required: BTreeSet<String>,
    /// Fields that come together or not at all.
    together: Vec<BTreeSet<String>>,
}

impl Object {
    fn schema(self) -> Value {
        let mut schema = json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false,
        });
        if !self.together.is_empty() {
            let mut dependent = Map::new();
            for fields in &self.together {
                for field in fields {
                    let others: Vec<&String> = fields.iter().filter(|f| *f != field).collect();
                    dependent.insert(field.clone(), json!(others));
                }
            }
            schema["dependentRequired"] = dependent.into();
        }
        described(schema, &self.about)
    }

    /// With the fields of another; they may be absent, all at once, where it is optional.
    fn merged(mut self, other: Self, optional: bool) -> Self {
        self.properties.extend(other.properties);
        match optional {
            true => self.together.push(other.required),
            false => self.required.extend(other.required),
        }
        self.together.extend(other.together);
        if self.about.is_empty() {
            self.about = other.about;
        }
        self
    }
}

fn described(mut schema: Value, about: &str) -> Value {
    if !about.is_empty() {
        schema["description"] = about.into();
    }
    schema
}

/// A schema, or nothing.
fn nullable(mut schema: Value) -> Value {
    if let Some(Value::String(kind)) = schema.get("type") {
        schema["type"] = json!([kind, "null"]);
        return schema;
    }
    json!({ "anyOf": [schema, { "type": "null" }] })
}

fn is_serialised(attributes: &[syn::Attribute]) -> bool {
    let mut actual = false;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("derive")) {
        let _ = attribute.parse_nested_meta(|meta| {
            actual |= meta.path.segments.last().is_some_and(|s| s.ident == "Serialize");
            Ok(())
        });
    }
    actual
}

impl<'a> Shapes<'a> {
    /// The schema of a document of this type, with all that it is made of.
    pub(crate) fn document(sources: &'a Sources, module: &[&str], name: &str) -> Value {
        let module: Vec<String> = module.iter().map(|&m| m.to_owned()).collect();
        let id = sources.find(&module, &[name.to_owned()]).unwrap_or_else(|| panic!("no type {name}"));
        let mut shapes = Self { sources, definitions: BTreeMap::new() };
        let mut schema = shapes.definition(&id);
        let names = shapes.names();
        let mut definitions = Map::new();
        for (id, mut one) in shapes.definitions {
            name_references(&mut one, &names);
            definitions.insert(names[&reference(&id)].clone(), one);
        }
        name_references(&mut schema, &names);
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        schema
    }

    /// What each type is called: by its own name, with its module where there are two of that name.
    fn names(&self) -> BTreeMap<String, String> {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        self.definitions.keys().for_each(|id| *count.entry(&id.name).or_default() += 1);
        let name = |id: &Id| match count[id.name.as_str()] {
            1 => id.name.clone(),
            _ => format!("{}.{}", id.module.last().expect("a type is in a module"), id.name),
        };
        let names: BTreeMap<String, String> =
            self.definitions.keys().map(|id| (reference(id), name(id))).collect();
        let distinct: BTreeSet<&String> = names.values().collect();
        assert_eq!(distinct.len(), names.len(), "two types have one name: {names:?}");
        names
    }

    fn of(&mut self, ty: &Type, module: &[String]) -> Value {
        match ty {
            Type::Path(path) => self.of_path(&path.path, module),
            Type::Reference(r) => self.of(&r.elem, module),
            Type::Array(a) => {
                let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) = &a.len else {
                    panic!("an array whose length is no number")
                };
                let n: usize = n.base10_parse().unwrap();
                json!({ "type": "array", "items": self.of(&a.elem, module), "minItems": n, "maxItems": n })
            }
            Type::Tuple(t) => self.tuple(t.elems.iter(), module),
            _ => {
                panic!("a type in {module:?} that documents have not had: say in `schemas` how it is written")
            }
        }
    }

    fn tuple<'t>(&mut self, types: impl Iterator<Item = &'t Type>, module: &[String]) -> Value {
        let items: Vec<Value> = types.map(|t| self.of(t, module)).collect();
        let n = items.len();
        json!({ "type": "array", "prefixItems": items, "items": false, "minItems": n, "maxItems": n })
    }

    fn of_path(&mut self, path: &syn::Path, module: &[String]) -> Value {
        let last = path.segments.last().expect("a path has a name");
        let inner: Vec<&Type> = match &last.arguments {
            PathArguments::AngleBracketed(a) => {
                let types = a.args.iter().filter_map(|a| match a {
                    GenericArgument::Type(t) => Some(t),
                    _ => None,
                });
                types.collect()
            }
            _ => vec![],
        };
        match (last.ident.to_string().as_str(), inner.as_slice()) {
            ("bool", []) => json!({ "type": "boolean" }),
            ("f64" | "f32", []) => json!({ "type": "number" }),
            ("u8" | "u16" | "u32" | "u64" | "usize", []) => json!({ "type": "integer", "minimum": 0 }),
            ("i8" | "i16" | "i32" | "i64" | "isize", []) => json!({ "type": "integer" }),
            ("String" | "str" | "char" | "PathBuf", []) => json!({ "type": "string" }),
            ("Option", [one]) => nullable(self.of(one, module)),
            ("Box", [one]) => self.of(one, module),
            ("Range", [one]) => {
                let end = |about: &str, schema: Value| described(schema, about);
                let (start, end) =
                    (end("The first.", self.of(one, module)), end("After the last.", self.of(one, module)));
                json!({
                    "type": "object",
                    "properties": { "start": start, "end": end },
                    "required": ["end", "start"],
                    "additionalProperties": false,
                })
            }
            ("Vec" | "BTreeSet", [one]) => json!({ "type": "array", "items": self.of(one, module) }),
            ("BTreeMap", [_, value]) => {
                json!({ "type": "object", "additionalProperties": self.of(value, module) })
            }
            (_, []) => {
                let id = self.resolve(path, module);
                if let Definition::Alias(ty) = self.sources.definition(&id) {
                    return self.of(&ty.clone(), &id.module);
                }
                if !self.definitions.contains_key(&id) {
                    // Held open for types that hold themselves.
                    self.definitions.insert(id.clone(), Value::Null);
                    let schema = self.definition(&id);
                    self.definitions.insert(id.clone(), schema);
                }
                json!({ "$ref": reference(&id) })
            }
            (name, _) => panic!("no schema for {name}<…>"),
        }
    }

    fn resolve(&self, path: &syn::Path, module: &[String]) -> Id {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.sources.find(module, &names).unwrap_or_else(|| panic!("no type {names:?} in {module:?}"))
    }

    fn definition(&mut self, id: &Id) -> Value {
        match self.sources.definition(id) {
            Definition::Struct(s) => self.structure(s, &id.module),
            Definition::Enum(e) => self.choice(e, &id.module),
            Definition::Alias(ty) => self.of(ty, &id.module),
        }
    }

    fn structure(&mut self, item: &ItemStruct, module: &[String]) -> Value {
        let (serde, about) = (Serde::of(&item.attrs), documentation(&item.attrs));
        assert!(is_serialised(&item.attrs), "{} does not derive Serialize", item.ident);
        if let Some(into) = &serde.into {
            let ty: Type = syn::parse_str(into).unwrap();
            return described(self.inline(&ty, module), &about);
        }
        match &item.fields {
            Fields::Unnamed(f) if f.unnamed.len() == 1 => {
                described(self.of(&f.unnamed[0].ty, module), &about)
            }
            Fields::Unnamed(f) => described(self.tuple(f.unnamed.iter().map(|f| &f.ty), module), &about),
            Fields::Named(_) | Fields::Unit => {
                let mut objects = self.objects(&item.fields, serde.rename_all.as_deref(), module);
                objects.iter_mut().for_each(|o| o.about.clear());
                match objects.len() {
                    1 => described(objects.remove(0).schema(), &about),
                    _ => described(
                        json!({ "oneOf": objects.into_iter().map(Object::schema).collect::<Vec<_>>() }),
                        &about,
                    ),
                }
            }
        }
    }

    /// The schema of a type in place, without a name of its own.
    fn inline(&mut self, ty: &Type, module: &[String]) -> Value {
        match ty {
            Type::Path(path) => {
                let names: Vec<String> = path.path.segments.iter().map(|s| s.ident.to_string()).collect();
                match self.sources.find(module, &names) {
                    Some(id) => self.definition(&id),
                    // A type of the language, as a kind of model is written as text.
                    None => self.of(ty, module),
                }
            }
            other => self.of(other, module),
        }
    }

    /// The ways that named fields are written: one, or one for each variant of an enum that is written among them.
    fn objects(&mut self, fields: &Fields, rule: Option<&str>, module: &[String]) -> Vec<Object> {
        let mut ways = vec![Object::default()];
        for field in fields {
            let serde = Serde::of(&field.attrs);
            if serde.skip {
                continue;
            }
            if serde.flatten {
                let (inner, optional) = self.flattened(&field.ty, module);
                let join =
                    |way: Object| inner.clone().into_iter().map(move |i| way.clone().merged(i, optional));
                ways = ways.into_iter().flat_map(join).collect();
                continue;
            }
            let name = field.ident.as_ref().expect("a named field").to_string();
            let written = Serde::written(&name, &serde, rule);
            let schema = self.field(field, &serde, module);
            for way in &mut ways {
                way.properties.insert(written.clone(), schema.clone());
                if !serde.may_be_absent {
                    way.required.insert(written.clone());
                }
            }
        }
        ways
    }

    fn field(&mut self, field: &Field, serde: &Serde, module: &[String]) -> Value {
        let about = documentation(&field.attrs);
        let unbounded = |about: &str| format!("{about} `null`: without bound.");
        match serde.with.as_deref() {
            Some("crate::unbounded::number" | "super::number" | "crate::unbounded::plain_cramer_rao") => {
                described(json!({ "type": ["number", "null"] }), &unbounded(&about))
            }
            Some("crate::unbounded::claim") => {
                let written: Type = syn::parse_str("crate::unbounded::claim::Written").unwrap();
                described(self.of(&written, module), &unbounded(&about))
            }
            Some(other) => panic!("with = {other:?} is new: say in `schemas` how it writes"),
            None if serde.absent_for_none => {
                let inner = self.optional(&field.ty).expect("Option::is_none is asked of an Option").clone();
                described(self.of(&inner, module), &about)
            }
            None => described(self.of(&field.ty, module), &about),
        }
    }

    fn optional<'t>(&self, ty: &'t Type) -> Option<&'t Type> {
        let Type::Path(path) = ty else { return None };
        let last = path.path.segments.last()?;
        match (&last.arguments, last.ident == "Option") {
            (PathArguments::AngleBracketed(a), true) => match a.args.first()? {
                GenericArgument::Type(t) => Some(t),
                _ => None,
            },
            _ => None,
        }
    }

    /// Fields that are written among those of another object, and whether they may be absent.
    fn flattened(&mut self, ty: &Type, module: &[String]) -> (Vec<Object>, bool) {
        let inner = self.optional(ty);
        let Type::Path(path) = inner.unwrap_or(ty) else { panic!("only structs and enums are flattened") };
        let id = self.resolve(&path.path, module);
        let objects = match self.sources.definition(&id) {
            Definition::Struct(s) => {
                self.objects(&s.fields, Serde::of(&s.attrs).rename_all.as_deref(), &id.module)
            }
            Definition::Enum(e) => {
                let serde = Serde::of(&e.attrs);
                let tag = serde.tag.clone().expect("a flattened enum has a tag");
                e.variants.iter().flat_map(|v| self.tagged(v, &tag, &serde, &id.module)).collect()
            }
            Definition::Alias(_) => panic!("an alias is not flattened"),
        };
        (objects, inner.is_some())
    }

    fn choice(&mut self, item: &ItemEnum, module: &[String]) -> Value {
        let (serde, about) = (Serde::of(&item.attrs), documentation(&item.attrs));
        assert!(is_serialised(&item.attrs), "{} does not derive Serialize", item.ident);
        if let Some(into) = &serde.into {
            let ty: Type = syn::parse_str(into).unwrap();
            return described(self.inline(&ty, module), &about);
        }
        let mut ways = vec![];
        for variant in &item.variants {
            match (&serde.tag, serde.untagged) {
                (Some(tag), _) => {
                    let objects = self.tagged(variant, tag, &serde, module);
                    ways.extend(objects.into_iter().map(Object::schema));
                }
                (None, true) => ways.push(self.content(variant, module)),
                (None, false) => ways.push(self.named(variant, &serde, module)),
            }
        }
        let by = if serde.untagged { "anyOf" } else { "oneOf" };
        described(json!({ by: ways }), &about)
    }

    /// A variant with its name in a field beside its own fields.
    fn tagged(&mut self, variant: &Variant, tag: &str, of: &Serde, module: &[String]) -> Vec<Object> {
        let own = Serde::of(&variant.attrs);
        let name = Serde::written(&variant.ident.to_string(), &own, of.rename_all.as_deref());
        let inner = match &variant.fields {
            Fields::Unnamed(f) => self.flattened(&f.unnamed[0].ty, module).0,
            Fields::Named(_) | Fields::Unit => self.objects(&variant.fields, None, module),
        };
        let about = documentation(&variant.attrs);
        let mut head = Object { about, ..Object::default() };
        head.properties.insert(tag.to_owned(), json!({ "const": name }));
        head.required.insert(tag.to_owned());
        inner.into_iter().map(|i| head.clone().merged(i, false)).collect()
    }

    /// A variant as its name, or as an object with its name for a field.
    fn named(&mut self, variant: &Variant, of: &Serde, module: &[String]) -> Value {
        let own = Serde::of(&variant.attrs);
        let name = Serde::written(&variant.ident.to_string(), &own, of.rename_all.as_deref());
        let about = documentation(&variant.attrs);
        if matches!(variant.fields, Fields::Unit) {
            return described(json!({ "const": name }), &about);
        }
        let content = self.content(variant, module);
        let properties = Map::from_iter([(name.clone(), content)]);
        Object { about, properties, required: [name].into(), together: vec![] }.schema()
    }

    fn content(&mut self, variant: &Variant, module: &[String]) -> Value {
        let about = documentation(&variant.attrs);
        let schema = match &variant.fields {
            Fields::Unit => json!({ "type": "null" }),
            Fields::Unnamed(f) if f.unnamed.len() == 1 => self.of(&f.unnamed[0].ty, module),
            Fields::Unnamed(f) => self.tuple(f.unnamed.iter().map(|f| &f.ty), module),
            Fields::Named(_) => self.objects(&variant.fields, None, module).remove(0).schema(),
        };
        described(schema, &about)
    }
}

fn reference(id: &Id) -> String {
    format!("{}::{}", id.module.join("::"), id.name)
}

fn name_references(schema: &mut Value, names: &BTreeMap<String, String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "$ref" => {
                        *text = format!("#/$defs/{}", names[text.as_str()])
                    }
                    other => name_references(other, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_references(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
