//! The folder of a fine-tuned model: weights in the layout they came from, and the tokeniser beside them, so that whatever reads
//! the first model reads this one.

use crate::net::account::Stored;
use crate::output::Folder;
use crate::{Failure, Result};
use leakscope_net::text::Layout;
use leakscope_net::{Network, Real};
use std::path::{Path, PathBuf};

/// The folder of the model, inside that of the run: the part that may leave the house.
pub(super) const MODEL: &str = "model";

/// What belongs to a tokeniser, in the folder of a model.
const TOKENIZER: [&str; 7] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.bin",
];

/// Files of the tokeniser, and what each is called beside the trained model.
fn of_tokenizer(model: &Path, named: Option<&Path>) -> Vec<(PathBuf, String)> {
    let within = |folder: &Path| -> Vec<(PathBuf, String)> {
        let all = TOKENIZER.iter().map(|name| (folder.join(name), (*name).to_owned()));
        all.filter(|(path, _)| path.is_file()).collect()
    };
    match named {
        Some(folder) if folder.is_dir() => within(folder),
        Some(file) => {
            let scored = file.extension().is_some_and(|e| e == "bin");
            let name = if scored { "tokenizer.bin" } else { "tokenizer.json" };
            vec![(file.to_path_buf(), name.to_owned())]
        }
        None if model.is_dir() => within(model),
        None => vec![(model.with_file_name("tokenizer.bin"), "tokenizer.bin".to_owned())],
    }
}

/// A folder that stays where it holds something when this is dropped.
pub(super) struct UnlessEmpty(PathBuf);

impl Drop for UnlessEmpty {
    fn drop(&mut self) {
        // Refused where it holds anything.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Where the trained model goes.
pub(super) struct Destination {
    layout: Layout,
    tokenizer: Vec<(PathBuf, String)>,
}

impl Destination {
    pub(super) fn new(layout: Layout, model: &Path, tokenizer: Option<&Path>) -> Self {
        Self { layout, tokenizer: of_tokenizer(model, tokenizer) }
    }

    /// What is read of the first model and its tokeniser.
    pub(super) fn read(&self, model: &Path) -> Vec<PathBuf> {
        let weights = match model.is_dir() {
            true => self.layout.names().iter().map(|name| model.join(name)).collect(),
            false => vec![model.to_path_buf()],
        };
        weights.into_iter().chain(self.tokenizer.iter().map(|(path, _)| path.clone())).collect()
    }

    /// Names of the files that will be written, in the folder of the run.
    pub(super) fn file_names(&self) -> Vec<String> {
        let tokenizer = self.tokenizer.iter().map(|(_, name)| name.clone());
        self.layout.names().into_iter().chain(tokenizer).map(|name| format!("{MODEL}/{name}")).collect()
    }

    /// Refuses a folder with weights that would stay beside the new ones, and makes the folder of the model, which goes again
    /// where nothing is put into it.
    pub(super) fn prepare(&self, folder: &Folder) -> Result<UnlessEmpty> {
        let (path, written) = (folder.path().join(MODEL), self.file_names());
        std::fs::create_dir_all(&path)
            .map_err(|e| Failure::Message(format!("cannot make {}: {e}", path.display())))?;
        let listed = std::fs::read_dir(&path)
            .map_err(|e| Failure::Message(format!("cannot read {}: {e}", path.display())))?;
        for entry in listed.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let weights =
                [".safetensors", ".safetensors.index.json", ".bin"].iter().any(|e| name.ends_with(e));
            if weights && !written.contains(&format!("{MODEL}/{name}")) {
                let message = format!(
                    "{} is of another model and would stay beside the new weights: choose another folder",
                    entry.path().display()
                );
                return Err(Failure::option("out", message));
            }
        }
        Ok(UnlessEmpty(path))
    }

    /// All files of the trained model.
    pub(super) fn files<T: Real>(&self, network: &Network<T>) -> Result<Vec<Stored>> {
        let within = |name: &str| format!("{MODEL}/{name}");
        let mut out: Vec<Stored> =
            self.layout.files(network)?.into_iter().map(|file| (within(&file.name), file.bytes)).collect();
        for (path, name) in &self.tokenizer {
            let bytes = std::fs::read(path).map_err(|e| {
                Failure::option("tokenizer", format!("{}: cannot read it: {e}", path.display()))
            })?;
            out.push((within(name), bytes));
        }
        Ok(out)
    }
}
