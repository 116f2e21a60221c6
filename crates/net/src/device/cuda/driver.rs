//! What is called of NVIDIA's libraries, found at run time: the driver, the compiler of kernels (NVRTC) and matrix
//! products (cuBLAS). The same programme starts where none of them is.

use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::OnceLock,
};

/// An address on the device.
pub(super) type Address = u64;
/// A context, a stream, a module, a function or a handle: pointers that this programme never follows.
pub(super) type Handle = *mut c_void;

macro_rules! library {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $symbol:literal ($($kind:ty),*);)* }) => {
        $(#[$doc])*
        pub(super) struct $name {
            $(pub(super) $field: unsafe extern "C" fn($($kind),*) -> c_int,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl $name {
            fn new(library: Library) -> Result<Self, String> {
                // SAFETY: the signatures are those of the libraries' headers, which have not changed since the versions
                // named in `open`.
                unsafe {
                    $(let $field = *library
                        .get::<unsafe extern "C" fn($($kind),*) -> c_int>(concat!($symbol, "\0").as_bytes())
                        .map_err(|_| too_old(LibraryName::$name, $symbol))?;)*
                    Ok(Self { $($field,)* _library: library })
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

library! {
    /// The driver.
    Driver {
        init: "cuInit"(c_uint);
        count: "cuDeviceGetCount"(*mut c_int);
        device: "cuDeviceGet"(*mut c_int, c_int);
        name: "cuDeviceGetName"(*mut c_char, c_int, c_int);
        attribute: "cuDeviceGetAttribute"(*mut c_int, c_int, c_int);
        total: "cuDeviceTotalMem_v2"(*mut usize, c_int);
        retain: "cuDevicePrimaryCtxRetain"(*mut Handle, c_int);
        enter: "cuCtxSetCurrent"(Handle);
        free_memory: "cuMemGetInfo_v2"(*mut usize, *mut usize);
        alloc: "cuMemAlloc_v2"(*mut Address, usize);
        free: "cuMemFree_v2"(Address);
        upload: "cuMemcpyHtoDAsync_v2"(Address, *const c_void, usize, Handle);
        download: "cuMemcpyDtoHAsync_v2"(*mut c_void, Address, usize, Handle);
        copy: "cuMemcpyDtoDAsync_v2"(Address, Address, usize, Handle);
        clear: "cuMemsetD8Async"(Address, u8, usize, Handle);
        pinned: "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
        free_pinned: "cuMemFreeHost"(*mut c_void);
        stream: "cuStreamCreate"(*mut Handle, c_uint);
        stream_after: "cuStreamWaitEvent"(Handle, Handle, c_uint);
        wait: "cuStreamSynchronize"(Handle);
        module: "cuModuleLoadData"(*mut Handle, *const c_void);
        function: "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
        launch: "cuLaunchKernel"(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
        function_attribute: "cuFuncSetAttribute"(Handle, c_int, c_int);
        blocks_at_once: "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, Handle, c_int, usize);
        event: "cuEventCreate"(*mut Handle, c_uint);
        record: "cuEventRecord"(Handle, Handle);
        reached: "cuEventSynchronize"(Handle);
        drop_event: "cuEventDestroy_v2"(Handle);
        elapsed: "cuEventElapsedTime"(*mut f32, Handle, Handle);
        capture: "cuStreamBeginCapture_v2"(Handle, c_int);
        captured: "cuStreamEndCapture"(Handle, *mut Handle);
        graph: "cuGraphInstantiateWithFlags"(*mut Handle, Handle, u64);
        drop_capture: "cuGraphDestroy"(Handle);
        replay: "cuGraphLaunch"(Handle, Handle);
        drop_graph: "cuGraphExecDestroy"(Handle);
        error: "cuGetErrorString"(c_int, *mut *const c_char);
    }
}

library! {
    /// The compiler of kernels.
    Compiler {
        create: "nvrtcCreateProgram"(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        compile: "nvrtcCompileProgram"(Handle, c_int, *const *const c_char);
        size: "nvrtcGetCUBINSize"(Handle, *mut usize);
        binary: "nvrtcGetCUBIN"(Handle, *mut c_char);
        log_size: "nvrtcGetProgramLogSize"(Handle, *mut usize);
        log: "nvrtcGetProgramLog"(Handle, *mut c_char);
        destroy: "nvrtcDestroyProgram"(*mut Handle);
    }
}

library! {
    /// Matrix products.
    Blas {
        create: "cublasCreate_v2"(*mut Handle);
        on_stream: "cublasSetStream_v2"(Handle, Handle);
        math_mode: "cublasSetMathMode"(Handle, c_int);
        workspace: "cublasSetWorkspace_v2"(Handle, Address, usize);
        f32_product: "cublasSgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const f32, Address, c_int, i64, Address, c_int, i64, *const f32,
            Address, c_int, i64, c_int
        );
        f64_product: "cublasDgemmStridedBatched"(
            Handle, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, i64, Address, c_int, i64, *const f64,
            Address, c_int, i64, c_int
        );
    }
}

/// The three libraries, opened once.
#[derive(Debug)]
pub(super) struct Libraries {
    pub(super) driver: Driver,
    pub(super) compiler: Compiler,
    pub(super) blas: Blas,
}

/// Which of the libraries.
#[derive(Debug, Clone, Copy)]
enum LibraryName {
    Driver,
    Compiler,
    Blas,
}

fn too_old(library: LibraryName, symbol: &str) -> String {
    let (name, advice) = match library {
        LibraryName::Driver => ("NVIDIA's driver", "update the driver (CUDA 12 or newer)"),
        LibraryName::Compiler => ("CUDA's run-time compiler", "install that of CUDA 12 or newer"),
        LibraryName::Blas => ("cuBLAS", "install that of CUDA 12 or newer"),
    };
    format!(
        "{name} was found but is too old ({symbol} is missing in it): {advice}, or compute on the processor"
    )
}

/// What to do about a code of the driver.
fn advice(code: c_int) -> &'static str {
    match code {
        2 => ": close what else uses the GPU, take a smaller batch, or compute on the processor",
        34 => {
            ": what was found is a stub without a driver: install NVIDIA's driver, or compute on the processor"
        }
        46 => ": another programme has it for itself: end that, or take another GPU",
        100 | 101 => {
            ": no GPU can be seen: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or compute on the processor"
        }
        209 | 218 | 222 | 300..=303 | 801 | 803 | 804 => {
            ": driver and CUDA do not fit together: update NVIDIA's driver, restart the machine where it was just updated, or compute \
             on the processor"
        }
        214 | 219 | 220 | 700..=720 | 802 | 999 => {
            ": the GPU has failed, and this process cannot use it again: start again; a run goes on from its checkpoint, on the \
             processor too (nvidia-smi tells whether the GPU is well)"
        }
        _ => ": start again; a run goes on from its checkpoint, on the processor too",
    }
}

/// Folders besides those where the system looks.
fn folders() -> Vec<String> {
    let mut folders = Vec::new();
    if let Ok(list) = std::env::var("LEAKSCOPE_CUDA_LIBRARIES") {
        folders.extend(std::env::split_paths(&list).map(|p| p.display().to_string()));
    }
    for home in ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|v| std::env::var(v).ok()) {
        folders.push(format!("{home}/lib64"));
    }
    folders.extend(["/usr/local/cuda/lib64", "/opt/cuda/lib64"].map(str::to_owned));
    folders
}

fn open(title: &str, names: &[&str], advice: &str) -> Result<Library, String> {
    let plain = names.iter().map(|n| (*n).to_owned());
    let placed = folders().into_iter().flat_map(|f| names.iter().map(move |n| format!("{f}/{n}")));
    for name in plain.chain(placed) {
        // SAFETY: libraries of the vendor, whose initialisers have no conditions on their caller
        if let Ok(library) = unsafe { Library::new(&name) } {
            return Ok(library);
        }
    }
    Err(format!("{title} ({}) was not found: {advice}", names[0]))
}

/// The libraries, or why they cannot be used.
pub(super) fn libraries() -> Result<&'static Libraries, String> {
    static OPEN: OnceLock<Result<Libraries, String>> = OnceLock::new();
    let load = || {
        let advice = "install NVIDIA's driver, or compute on the processor";
        let driver =
            Driver::new(open("NVIDIA's driver", &["libcuda.so.1", "libcuda.so", "nvcuda.dll"], advice)?)?;
        let advice = "install the CUDA toolkit, or its NVRTC and cuBLAS packages, and name their folder in \
                      LEAKSCOPE_CUDA_LIBRARIES";
        let names =
            ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"];
        let compiler = Compiler::new(open("CUDA's run-time compiler", &names, advice)?)?;
        let names =
            ["libcublas.so.13", "libcublas.so.12", "libcublas.so", "cublas64_13.dll", "cublas64_12.dll"];
        let blas = Blas::new(open("cuBLAS", &names, advice)?)?;
        let libraries = Libraries { driver, compiler, blas };
        // SAFETY: the first call that the driver asks for
        libraries.driver.check("starting the driver", unsafe { (libraries.driver.init)(0) })?;
        Ok(libraries)
    };
    OPEN.get_or_init(load).as_ref().map_err(Clone::clone)
}

impl Driver {
    /// A failure of the driver in its own words.
    pub(super) fn check(&self, action: &str, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: the driver hands out a constant string, or nothing
        let reason = unsafe {
            (self.error)(code, &raw mut text);
            if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
        };
        Err(format!("{action} failed: {reason} (CUDA error {code}){}", advice(code)))
    }
}

/// A card as a user sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardInfo {
    /// Its number.
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// Its memory in bytes.
    pub memory: usize,
    /// Major and minor number of what it can do.
    pub capability: [i32; 2],
}

/// The cards of this machine, or why there is none to use.
pub fn cards() -> std::result::Result<Vec<CardInfo>, String> {
    let api = libraries()?;
    let mut count = 0;
    // SAFETY: the driver was started, the pointer is that of a number
    api.driver.check("counting the GPUs", unsafe { (api.driver.count)(&raw mut count) })?;
    (0..count).map(|i| card(api, i)).collect()
}

fn card(api: &Libraries, i: c_int) -> std::result::Result<CardInfo, String> {
    let driver = &api.driver;
    let (mut device, mut memory, mut name) = (0, 0usize, [0; 256]);
    // attributes 75 and 76: compute capability
    let mut capability = [0; 2];
    // SAFETY: pointers are those of live values of the sizes that the driver is told
    unsafe {
        driver.check("asking for a GPU", (driver.device)(&raw mut device, i))?;
        driver.check("asking for its name", (driver.name)(name.as_mut_ptr(), 256, device))?;
        driver.check("asking for its memory", (driver.total)(&raw mut memory, device))?;
        for (value, attribute) in capability.iter_mut().zip([75, 76]) {
            driver.check("asking what it can do", (driver.attribute)(value, attribute, device))?;
        }
        let name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
        Ok(CardInfo { ordinal: i as u32, name, memory, capability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_what_to_do() {
        assert!(too_old(LibraryName::Driver, "cuGraphLaunch").contains("update the driver"));
        assert!(too_old(LibraryName::Blas, "cublasSetWorkspace_v2").contains("cuBLAS"));
        for (code, words) in
            [(2, "smaller batch"), (803, "update"), (222, "update"), (700, "checkpoint"), (719, "checkpoint")]
        {
            assert!(advice(code).contains(words), "{code}");
        }
        // whatever it is, something can be done
        assert!((1..1000).all(|code| advice(code).len() > 10));
    }
}
