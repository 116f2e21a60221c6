//! A GPU of NVIDIA's: its memory, its kernels, its matrix products. Layers never see it; the methods of
//! [`Device`](super::Device) call it in place of the loops for the processor.
//!
//! | file | what |
//! |---|---|
//! | `driver` | NVIDIA's libraries, found at run time; the cards there are |
//! | `kernels.cu` and the files beside it, `compile` | the kernels, and how they are compiled for a card |
//! | `convolution.cu`, `convolution` | convolutions without patches, compiled for each shape |
//! | `gram.cu`, `gram` | their gradients by Gram matrices, where there are few positions |
//! | `pooling.cu`, `pooling` | an activation and the pool behind it, compiled for each shape |
//! | `times` | how long the kernels take, where somebody asks |
//! | `memory` | pieces of memory, used again; copies |
//! | `graph` | work that is repeated, started as a whole |
//! | `stream` | records that do not stay on the card, copied ahead of their use |
//! | `product`, `sums` | matrix products, sums over rows and dot products |
//! | `divide` | division by a number that is prepared |
//!
//! Work is queued in one stream and waits for nothing but downloads. What fails in between is kept, later work is passed
//! over, and the next download says it.

mod compile;
mod convolution;
mod divide;
mod driver;
mod gram;
mod graph;
mod memory;
mod pooling;
mod product;
mod stream;
mod sums;
mod times;

use convolution::Launch;
pub(crate) use convolution::{Convolution, Step};
pub(crate) use divide::magic;
pub(crate) use graph::Graph;
pub(crate) use memory::Memory;
use pooling::Pooled;
pub(crate) use stream::{Mark, Staging};
pub(crate) use sums::{ColumnSums, Dots};

pub use driver::{CardInfo, cards};

use crate::{
    Real,
    error::{Error, Result},
    shape::Window,
};
use driver::{Address, Handle, Libraries, libraries};
use std::{
    collections::HashMap,
    ffi::{CString, c_int, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};
use times::Times;

/// Threads of a block where every thread has values of its own.
const THREADS: u32 = 256;
/// Blocks of such a kernel; its threads go round where there is more to do.
const BLOCKS: usize = 132 * 16;
/// Values that a buffer may hold: kernels count and divide in 32 bits.
pub(crate) const MOST_VALUES: usize = i32::MAX as usize;

/// A GPU and what was made on it; one of each card for the whole programme.
pub(crate) struct Gpu {
    ordinal: u32,
    name: String,
    api: &'static Libraries,
    context: Pointer,
    stream: Pointer,
    /// Where records are copied that do not stay on the card.
    copies: Mutex<Option<Pointer>>,
    blas: Mutex<Blas>,
    /// Where work is captured.
    side: Mutex<Option<graph::Side>>,
    /// Whether any is: LEAKSCOPE_CUDA_GRAPHS=0 says no.
    captures: bool,
    /// What it can do: major and minor number.
    capability: [c_int; 2],
    /// Shared memory that a block may have, in bytes.
    shared: usize,
    multiprocessors: usize,
    /// In bytes.
    memory: usize,
    modules: Mutex<HashMap<Unit, Pointer>>,
    functions: Mutex<HashMap<(&'static str, Unit), Pointer>>,
    /// What the kernels took, where somebody asks.
    times: Option<Mutex<Times>>,
    /// Memory to use again, by size.
    free: Mutex<HashMap<usize, Vec<Address>>>,
    failure: Mutex<Option<String>>,
}

/// What is compiled at once, for a precision (the bytes of a number).
type Unit = (usize, Shaped);

/// Kernels for all shapes, or those of one.
#[allow(clippy::large_enum_variant)] // a key, of which there are few
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shaped {
    Any,
    Convolution(Convolution),
    Pooling(Pooled),
}

/// cuBLAS on this card.
#[derive(Debug, Clone)]
struct Blas {
    handle: Pointer,
    /// Whether it shortens operands to tf32 as it is set now.
    shortened: bool,
}

/// A pointer that is never followed here, only handed back to the libraries, which may be called from any thread.
#[derive(Debug, Clone, Copy)]
struct Pointer(Handle);
// SAFETY: see above; contexts, streams, modules and functions are not bound to a thread. The handle of cuBLAS is used
// behind a lock.
unsafe impl Send for Pointer {}
// SAFETY: as above
unsafe impl Sync for Pointer {}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cuda:{} ({})", self.ordinal, self.name)
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    /// The GPU of a number, opened once.
    pub(crate) fn open(ordinal: u32) -> Result<&'static Self> {
        static OPEN: Mutex<Vec<&'static Gpu>> = Mutex::new(Vec::new());
        let mut open = lock(&OPEN);
        if let Some(gpu) = open.iter().find(|g| g.ordinal == ordinal) {
            return Ok(gpu);
        }
        let gpu = Self::new(ordinal).map_err(|reason| Error::Device { ordinal, reason })?;
        let gpu: &'static Self = Box::leak(Box::new(gpu));
        open.push(gpu);
        Ok(gpu)
    }

    fn new(ordinal: u32) -> std::result::Result<Self, String> {
        let api = libraries()?;
        let all = cards()?;
        let Some(card) = all.get(ordinal as usize) else {
            let there = match all.len() {
                0 => "there is none".to_owned(),
                n => format!("there are {n}, counted from 0"),
            };
            return Err(format!("no such GPU: {there}"));
        };
        let [major, minor] = card.capability;
        if major < 7 {
            return Err(format!(
                "{} is of compute capability {major}.{minor}: 7.0 or newer is needed",
                card.name
            ));
        }
        let (mut device, mut context, mut stream) = (0, std::ptr::null_mut(), std::ptr::null_mut());
        let (mut blas, mut shared, mut multiprocessors) = (std::ptr::null_mut(), 0, 0);
        let driver = &api.driver;
        // SAFETY: pointers are those of live handles; the context is retained before anything is made in it
        unsafe {
            driver.check("asking for the GPU", (driver.device)(&raw mut device, ordinal as c_int))?;
            // 97: shared memory of a block, where it asks for more than usual
            driver.check("asking for the GPU", (driver.attribute)(&raw mut shared, 97, device))?;
            // 16: how many multiprocessors
            driver.check("asking for the GPU", (driver.attribute)(&raw mut multiprocessors, 16, device))?;
            driver.check("opening the GPU", (driver.retain)(&raw mut context, device))?;
            driver.check("opening the GPU", (driver.enter)(context))?;
            driver.check("making a stream", (driver.stream)(&raw mut stream, 0))?;
            let made = (api.blas.create)(&raw mut blas);
            let set = if made == 0 { (api.blas.on_stream)(blas, stream) } else { made };
            // 0: products of f32 in f32, no shorter numbers
            let set = if set == 0 { (api.blas.math_mode)(blas, 0) } else { set };
            if set != 0 {
                return Err(format!(
                    "cuBLAS does not start (status {set}): its version must suit the driver's"
                ));
            }
        }
        Ok(Self {
            ordinal,
            name: card.name.clone(),
            api,
            context: Pointer(context),
            stream: Pointer(stream),
            copies: Mutex::new(None),
            blas: Mutex::new(Blas { handle: Pointer(blas), shortened: false }),
            side: Mutex::new(None),
            captures: std::env::var_os("LEAKSCOPE_CUDA_GRAPHS").is_none_or(|v| v != "0"),
            capability: card.capability,
            shared: shared.max(0) as usize,
            multiprocessors: multiprocessors.max(1) as usize,
            memory: card.memory,
            modules: Mutex::new(HashMap::new()),
            functions: Mutex::new(HashMap::new()),
            times: Times::from_environment(),
            free: Mutex::new(HashMap::new()),
            failure: Mutex::new(None),
        })
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    pub(crate) fn total_memory(&self) -> usize {
        self.memory
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has products in tf32.
    pub(crate) fn shortens(&self) -> bool {
        self.capability[0] >= 8
    }

    /// Makes the context that of this thread.
    fn enter(&self) {
        // SAFETY: the context lives as long as the programme
        let code = unsafe { (self.api.driver.enter)(self.context.0) };
        self.note("entering the GPU", code);
    }

    /// Keeps the first failure.
    fn note(&self, action: &str, code: c_int) {
        if code != 0
            && let Err(reason) = self.api.driver.check(action, code)
        {
            lock(&self.failure).get_or_insert(reason);
        }
    }

    fn failed(&self) -> bool {
        lock(&self.failure).is_some()
    }

    /// What has failed since the last time somebody asked.
    fn verdict(&self) -> Result<()> {
        match lock(&self.failure).take() {
            None => Ok(()),
            Some(reason) => Err(Error::Device { ordinal: self.ordinal, reason }),
        }
    }

    /// Runs a kernel in which every thread has values of its own, `n` in all.
    pub(crate) fn each<T: Real>(&self, kernel: &'static str, n: usize, arguments: &[u64]) {
        let blocks = n.div_ceil(THREADS as usize).min(BLOCKS) as u32;
        self.launch::<T>(kernel, [blocks, 1, 1], [THREADS, 1], arguments);
    }

    /// Runs a kernel in which every block has a row of so many values.
    pub(crate) fn rows<T: Real>(&self, kernel: &'static str, rows: usize, width: usize, arguments: &[u64]) {
        let threads = match width {
            0..=128 => 32,
            129..=1024 => 128,
            _ => 256,
        };
        self.launch::<T>(kernel, [rows as u32, 1, 1], [threads, 1], arguments);
    }

    fn launch<T: Real>(&self, kernel: &'static str, grid: [u32; 3], block: [u32; 2], arguments: &[u64]) {
        self.start(kernel, (T::BYTES, Shaped::Any), (grid, block, 0), arguments);
    }

    /// The kernels of a convolution; absent where it is better made of patches.
    pub(crate) fn convolution<T: Real>(&self, window: &Window, outputs: usize) -> Option<Convolution> {
        Convolution::new(window, outputs, T::BYTES, self.shared)
    }

    /// Runs a kernel of a convolution over so many records.
    pub(crate) fn convolve<T: Real>(&self, conv: &Convolution, step: Step, n: usize, arguments: &[u64]) {
        let (launch, unit) = (conv.launch(step), (T::BYTES, Shaped::Convolution(*conv)));
        let blocks = self.convolution_blocks::<T>(conv, step, n);
        let shape = ([blocks as u32, 1, 1], [launch.threads as u32, 1], launch.shared as u32);
        self.start(step.kernel(), unit, shape, arguments);
    }

    /// Blocks that such a kernel has.
    pub(crate) fn convolution_blocks<T: Real>(&self, conv: &Convolution, step: Step, n: usize) -> usize {
        let (launch, unit) = (conv.launch(step), (T::BYTES, Shaped::Convolution(*conv)));
        let groups = n.div_ceil(launch.records);
        match step {
            // as many as there is room for: each loads the weights once, or keeps what it has from record to record
            Step::Forward
            | Step::Backward
            | Step::Gram
            | Step::GramForward
            | Step::GramBackward
            | Step::Sum => self.at_once(step.kernel(), unit, launch).min(groups),
            Step::ForwardOwn | Step::BackwardOwn | Step::Gradient => groups.min(BLOCKS),
        }
    }

    /// Blocks that the card runs at once.
    fn at_once(&self, kernel: &'static str, unit: Unit, launch: Launch) -> usize {
        let Some(function) = self.function(kernel, unit) else { return 1 };
        let mut blocks = 0;
        // SAFETY: the function lives as long as the programme
        let code = unsafe {
            (self.api.driver.blocks_at_once)(
                &raw mut blocks,
                function.0,
                launch.threads as c_int,
                launch.shared,
            )
        };
        self.note(kernel, code);
        blocks.max(1) as usize * self.multiprocessors
    }

    /// Puts a kernel into the queue: its grid, its block and the shared memory of a block.
    fn start(
        &self,
        kernel: &'static str,
        unit: Unit,
        (grid, block, shared): ([u32; 3], [u32; 2], u32),
        arguments: &[u64],
    ) {
        if grid[0] == 0 || self.failed() {
            return;
        }
        let Some(function) = self.function(kernel, unit) else { return };
        self.enter();
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|a| (&raw const *a).cast_mut().cast::<c_void>()).collect();
        let queue = self.queue();
        // SAFETY: the arguments are as many as the kernel has, eight bytes each; what they point to is held by callers, who
        // pass its length
        let call = || unsafe {
            (self.api.driver.launch)(
                function.0,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                1,
                shared,
                queue.0,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        let name = || match unit.1 {
            Shaped::Any => kernel.to_owned(),
            Shaped::Convolution(conv) => format!("{kernel} {}", conv.label()),
            Shaped::Pooling(pool) => format!("{kernel} {}", pool.label()),
        };
        let code = self.timed(name, call);
        self.note(kernel, code);
    }

    fn function(&self, kernel: &'static str, unit: Unit) -> Option<Pointer> {
        let key = (kernel, unit);
        if let Some(function) = lock(&self.functions).get(&key) {
            return Some(*function);
        }
        let made = self.module(unit).and_then(|module| {
            let name = CString::new(kernel).map_err(|e| e.to_string())?;
            let mut function = std::ptr::null_mut();
            let driver = &self.api.driver;
            self.enter();
            // SAFETY: module and name live during the call
            let code = unsafe { (driver.function)(&raw mut function, module.0, name.as_ptr()) };
            driver.check(kernel, code)?;
            if matches!(unit.1, Shaped::Convolution(_)) {
                // 8: how much shared memory a block may ask for
                // SAFETY: the function was just made
                let code = unsafe { (driver.function_attribute)(function, 8, self.shared as c_int) };
                driver.check(kernel, code)?;
            }
            Ok(Pointer(function))
        });
        match made {
            Ok(function) => {
                lock(&self.functions).insert(key, function);
                Some(function)
            }
            Err(reason) => {
                lock(&self.failure).get_or_insert(reason);
                None
            }
        }
    }

    /// Kernels compiled when they are first needed.
    fn module(&self, unit: Unit) -> std::result::Result<Pointer, String> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&unit) {
            return Ok(*module);
        }
        let (bytes, shape) = unit;
        let mut definitions = vec![format!("-DREAL={}", if bytes == 8 { "double" } else { "float" })];
        let source = match shape {
            Shaped::Any => compile::KERNELS,
            Shaped::Convolution(conv) => {
                definitions.extend(conv.definitions());
                compile::CONVOLUTION
            }
            Shaped::Pooling(pool) => {
                definitions.extend(pool.definitions());
                compile::POOLING
            }
        };
        let binary = self.compile(source, &definitions)?;
        let mut module = std::ptr::null_mut();
        self.enter();
        // SAFETY: the binary is one of the compiler's and lives during the call
        let code = unsafe { (self.api.driver.module)(&raw mut module, binary.as_ptr().cast::<c_void>()) };
        self.api.driver.check("loading the kernels", code)?;
        modules.insert(unit, Pointer(module));
        Ok(Pointer(module))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Backend, device::Device};
    use std::process::Command;

    /// In the place of an address: nothing is there.
    const NOWHERE: u64 = 1 << 50;
    const CHILD: &str = "LEAKSCOPE_TEST_LOSES_A_GPU";

    /// A GPU that fails is an error that says what to do, and so is every question after it; no panic, no end of the process. In a
    /// process of its own, which has lost its GPU then.
    #[test]
    fn a_gpu_that_fails_is_an_error_that_says_what_to_do() {
        if std::env::var_os(CHILD).is_some() {
            return lose();
        }
        if Backend::cuda(0).is_err() {
            eprintln!("SKIPPED on a GPU: there is none");
            return;
        }
        let name = "device::cuda::tests::a_gpu_that_fails_is_an_error_that_says_what_to_do";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    }

    fn lose() {
        let mut dev: Device<f64> = Backend::cuda(0).unwrap().device();
        let one = dev.upload(&[1.0]);
        assert_eq!(dev.download(&one).unwrap(), [1.0]);
        if let Some(gpu) = dev.gpu {
            gpu.each::<f64>("shift", 64, &[NOWHERE, 1.0_f64.to_bits(), 64]);
        }
        for _ in 0..2 {
            let error = dev.download(&one).unwrap_err().to_string();
            assert!(error.contains("cuda:0") && error.contains("goes on from its checkpoint"), "{error}");
        }
        let another = dev.upload(&[2.0]);
        assert!(dev.download(&another).is_err());
    }
}
