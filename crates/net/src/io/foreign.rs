//! Files and folders of other programmes that are often handed over: told by their names and first bytes.

use std::io::Read;
use std::path::Path;

/// What to do with a file or folder that is of a kind that nothing here reads; absent where it may be read.
pub fn advice(path: &Path) -> Option<String> {
    if path.is_dir() {
        return folder(path);
    }
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    let mut first = [0; 8];
    let length = std::fs::File::open(path).and_then(|mut f| f.read(&mut first)).unwrap_or(0);
    let first = &first[..length];
    let keep = "save the weights as safetensors, under the names of the network's file (layers.0.weight, …)";
    let text = match extension.as_str() {
        "onnx" => format!(
            "an ONNX model, which holds a graph of its own: describe the network as JSON (see `net train --help`) and \
             {keep}; or measure it where it lives, in PyTorch, by leakscope.torch.audit"
        ),
        // PyTorch's files are zip files or pickles, and a pickle may run anything
        "pt" | "pth" | "ckpt" | "bin" | "pkl" | "pickle" => format!(
            "a pickled model or state of PyTorch, which may run anything when it is read: in Python, {keep}, by \
             safetensors.torch.save_file; or measure the model in PyTorch by leakscope.torch.audit"
        ),
        "h5" | "hdf5" | "keras" => format!("a file of Keras: in Python, {keep}, by safetensors.numpy.save_file"),
        _ if first.starts_with(b"\x89HDF\r\n") => {
            format!("an HDF5 file: in Python, {keep}, or records by numpy.savez(path, x=x, y=y)")
        }
        "mat" => "a file of MATLAB: in Python, numpy.savez(path, x=x, y=y) of scipy.io.loadmat".to_owned(),
        "png" | "jpg" | "jpeg" | "tif" | "tiff" | "gif" => {
            "one picture: put all records into one array, numpy.savez(path, x=x, y=y), x of shape (records, height, \
             width, channels)"
                .to_owned()
        }
        _ => return None,
    };
    Some(text)
}

fn folder(path: &Path) -> Option<String> {
    let has = |name: &str| path.join(name).is_file();
    if has("dataset_info.json") || has("dataset_dict.json") || has("state.json") {
        return Some(
            "a data set of Hugging Face: in Python, numpy.savez(path, x=x, y=y) of its columns as arrays, x of shape \
             (records, height, width, channels)"
                .to_owned(),
        );
    }
    if has("config.json")
        && (has("model.safetensors") || has("pytorch_model.bin") || has("model.safetensors.index.json"))
    {
        let config = std::fs::read_to_string(path.join("config.json")).unwrap_or_default();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap_or_default();
        return Some(match config["model_type"].as_str() {
            Some("gpt2" | "llama") => {
                "a language model of Hugging Face: measure it by `text audit` and `text canary`".to_owned()
            }
            Some(_) | None => {
                "a model of Hugging Face, whose layers are not ours: measure it where it lives, in PyTorch, by \
                 leakscope.torch.audit"
                    .to_owned()
            }
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_told_and_advised() {
        let dir = std::env::temp_dir().join(format!("leakscope-foreign-{}", std::process::id()));
        let model = dir.join("bert");
        let data = dir.join("mnist");
        std::fs::create_dir_all(&model).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::write(model.join(file), "{}").unwrap();
        }
        std::fs::write(data.join("dataset_info.json"), "{}").unwrap();
        assert!(advice(&model).unwrap().contains("leakscope.torch.audit"));
        std::fs::write(model.join("config.json"), r#"{"model_type": "gpt2"}"#).unwrap();
        assert!(advice(&model).unwrap().contains("text audit"));
        assert!(advice(&data).unwrap().contains("numpy.savez"));
        assert_eq!(advice(&dir), None);
        for (name, bytes, says) in [
            ("model.onnx", &b"\x08\x07"[..], "ONNX"),
            ("model.pt", b"PK\x03\x04", "safetensors.torch.save_file"),
            ("model.weights", b"\x89HDF\r\n\x1a\n", "HDF5"),
            ("face.png", b"\x89PNG", "one array"),
        ] {
            let path = dir.join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = crate::io::read_tensors(&path).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(name), "{error}");
        }
        assert_eq!(advice(&dir.join("records.npz")), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
