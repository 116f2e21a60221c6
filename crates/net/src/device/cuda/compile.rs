//! The kernels, compiled for the card at hand when it is first used.

use super::{Gpu, driver::Handle};
use std::ffi::{CString, c_int};

/// A file of kernels: its name and text.
pub(super) type Source = (&'static str, &'static str);
pub(super) const KERNELS: Source = (
    "kernels.cu",
    concat!(
        include_str!("head.cu"),
        include_str!("kernels.cu"),
        include_str!("windows.cu"),
        include_str!("sequences.cu"),
        include_str!("losses.cu"),
        include_str!("lanczos.cu"),
        include_str!("accounts.cu"),
        include_str!("perturb.cu"),
        include_str!("step.cu"),
    ),
);
pub(super) const CONVOLUTION: Source =
    ("convolution.cu", concat!(include_str!("convolution.cu"), include_str!("gram.cu")));
pub(super) const POOLING: Source =
    ("pooling.cu", concat!(include_str!("head.cu"), include_str!("pooling.cu")));

impl Gpu {
    /// A file of kernels for a precision (`-DREAL=…`) and other definitions, as the driver loads it.
    pub(super) fn compile(
        &self,
        (name, source): Source,
        definitions: &[String],
    ) -> std::result::Result<Vec<u8>, String> {
        let text = |s: &str| CString::new(s).map_err(|e| e.to_string());
        let (source, name) = (text(source)?, text(name)?);
        let [major, minor] = self.capability;
        let architecture = format!("--gpu-architecture=sm_{major}{minor}");
        let fixed = [architecture.as_str(), "--std=c++17"];
        let options = fixed.into_iter().chain(definitions.iter().map(String::as_str));
        let options = options.map(text).collect::<std::result::Result<Vec<_>, _>>()?;
        let pointers: Vec<_> = options.iter().map(|o| o.as_ptr()).collect();
        let compiler = &self.api.compiler;
        let mut programme: Handle = std::ptr::null_mut();
        // SAFETY: all strings end in zero and live during the calls; the buffers have the sizes that the compiler named
        unsafe {
            let none = std::ptr::null();
            let code = (compiler.create)(&raw mut programme, source.as_ptr(), name.as_ptr(), 0, none, none);
            if code != 0 {
                return Err(format!("the compiler of kernels does not start (status {code})"));
            }
            let code = (compiler.compile)(programme, pointers.len() as c_int, pointers.as_ptr());
            let mut out = Vec::new();
            let mut size = 0usize;
            if code == 0 {
                (compiler.size)(programme, &raw mut size);
                out.resize(size, 0u8);
                (compiler.binary)(programme, out.as_mut_ptr().cast());
            } else {
                (compiler.log_size)(programme, &raw mut size);
                out.resize(size, 0u8);
                (compiler.log)(programme, out.as_mut_ptr().cast());
            }
            (compiler.destroy)(&raw mut programme);
            if code == 0 {
                return Ok(out);
            }
            let log = String::from_utf8_lossy(&out).trim_end_matches('\0').to_owned();
            Err(format!(
                "the kernels do not compile for this GPU (status {code}): a newer CUDA may help. {log}"
            ))
        }
    }
}
