//! A model with its tokeniser, read once.

use crate::{Failure, Result};
use leakscope_net::text::{LanguageModel, Tokenizer, Tuned};
use leakscope_net::{Backend, Real};
use leakscope_report::text::Model;
use std::path::{Path, PathBuf};

/// Reads the tokeniser: the one that was named, or that of the model's folder.
pub(crate) fn tokenizer(model: &Path, named: Option<&Path>) -> Result<Tokenizer> {
    if let Some(path) = named {
        return Tokenizer::read(path).map_err(|e| Failure::option("tokenizer", e));
    }
    if model.is_dir() {
        return Tokenizer::read(model).map_err(|e| Failure::option("tokenizer", e));
    }
    let beside = model.with_file_name("tokenizer.bin");
    if beside.is_file() {
        return Tokenizer::read(&beside).map_err(|e| Failure::option("tokenizer", e));
    }
    Err(Failure::option(
        "tokenizer",
        format!("{} has no tokeniser beside it: name its tokenizer.bin or tokenizer.json", model.display()),
    ))
}

/// Reads a model; a path that is none is the option's fault.
pub(crate) fn language_model<T: Real>(
    path: &Path,
    tuned: impl Into<Tuned>,
    backend: Backend,
) -> Result<LanguageModel<T>> {
    if path.as_os_str().is_empty() {
        return Err(Failure::option("model", "name a folder of transformers or a llama2.c checkpoint"));
    }
    if !path.exists() {
        return Err(Failure::option("model", format!("{} does not exist", path.display())));
    }
    let model = LanguageModel::read(path, tuned).map_err(|e| Failure::option("model", e))?;
    Ok(model.on(backend)?)
}

/// What a model is called: its folder or file, without what stands before it.
pub(crate) fn name_of(path: &Path) -> String {
    let name: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    name.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// The model as documents name it.
pub(crate) fn described<T: Real>(path: &Path, model: &LanguageModel<T>) -> Model {
    Model {
        name: name_of(path),
        parameters: model.network().parameter_count() as u64,
        vocabulary: model.vocabulary() as u64,
        context: model.context() as u64,
        width: model.width() as u64,
    }
}
