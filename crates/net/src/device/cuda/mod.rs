//! A GPU of NVIDIA's: its memory, its kernels, its matrix products. Layers never see it; the methods of
//! [`Device`](super::Device) call it in place of the loops for the processor.
//!
//! Work is queued in one stream and waits for nothing but downloads. What fails in between is kept, later work is passed
//! over, and the next download says it.

mod driver;

use crate::{
    Real,
    error::{Error, Result},
};
use driver::{Address, Handle, Libraries, libraries};
use std::{
    collections::HashMap,
    ffi::{CStr, CString, c_int, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The kernels, compiled for the card at hand when it is first used.
const SOURCE: &str = include_str!("kernels.cu");
/// Threads of a block where every thread has values of its own.
const THREADS: u32 = 256;
/// Blocks of such a kernel; its threads go round where there is more to do.
const BLOCKS: usize = 132 * 16;
/// Values that a buffer may hold: kernels count and divide in 32 bits.
pub(crate) const MOST_VALUES: usize = i32::MAX as usize;

/// What a kernel divides by a number with: a multiplier and, above it, a shift. For whole numbers below 2³¹,
/// `⌊n/d⌋ = ⌊n m/2³²⌋ >> s` with `m = ⌈2^(32+s)/d⌉`, `s = ⌈log₂ d⌉ − 1` (Granlund and Montgomery).
pub(crate) fn magic(d: usize) -> u64 {
    if d <= 1 {
        return 0;
    }
    let shift = usize::BITS - (d - 1).leading_zeros() - 1;
    let multiplier = (1u128 << (32 + shift)).div_ceil(d as u128) as u64;
    multiplier | u64::from(shift) << 32
}
/// Rows that one block of a column sum adds up, at least; and how many such sums are added up in turn, at most.
const SLAB: usize = 512;
const SLABS: usize = 256;

/// A GPU and what was made on it; one of each card for the whole programme.
pub(crate) struct Gpu {
    ordinal: u32,
    name: String,
    api: &'static Libraries,
    context: Pointer,
    stream: Pointer,
    blas: Mutex<Pointer>,
    /// The card as the compiler names it.
    architecture: String,
    /// Modules for `f32` and `f64`.
    modules: Mutex<[Option<Pointer>; 2]>,
    functions: Mutex<HashMap<(&'static str, usize), Pointer>>,
    /// Memory to use again, by size.
    free: Mutex<HashMap<usize, Vec<Address>>>,
    failure: Mutex<Option<String>>,
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

/// Memory of a GPU, given back to its pool when it is dropped.
pub(crate) struct Memory {
    address: Address,
    /// Size of the piece in the pool.
    size: usize,
    bytes: usize,
    len: usize,
    gpu: &'static Gpu,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values on {:?}", self.len, self.gpu)
    }
}

impl Memory {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Whether it is memory of a card.
    pub(crate) fn is_on(&self, gpu: &Gpu) -> bool {
        self.gpu.ordinal == gpu.ordinal
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let copy = self.gpu.bytes(self.bytes, self.len);
        self.gpu.copy(self.address, self.bytes, &copy);
        copy
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            lock(&self.gpu.free).entry(self.size).or_default().push(self.address);
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut blas = std::ptr::null_mut();
        let driver = &api.driver;
        // SAFETY: pointers are those of live handles; the context is retained before anything is made in it
        unsafe {
            driver.check("asking for the GPU", (driver.device)(&raw mut device, ordinal as c_int))?;
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
            blas: Mutex::new(Pointer(blas)),
            architecture: format!("--gpu-architecture=sm_{major}{minor}"),
            modules: Mutex::new([None; 2]),
            functions: Mutex::new(HashMap::new()),
            free: Mutex::new(HashMap::new()),
            failure: Mutex::new(None),
        })
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
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

    /// Memory that is free, in bytes; what is in the pool counts as free.
    pub(crate) fn free_memory(&self) -> usize {
        self.enter();
        let (mut free, mut total) = (0, 0);
        // SAFETY: pointers of live numbers
        let code = unsafe { (self.api.driver.free_memory)(&raw mut free, &raw mut total) };
        self.note("asking for free memory", code);
        free + lock(&self.free).iter().map(|(size, list)| size * list.len()).sum::<usize>()
    }

    /// Memory for so many values with unspecified contents.
    pub(crate) fn take<V>(&'static self, len: usize) -> Memory {
        self.bytes(len * size_of::<V>(), len)
    }

    fn bytes(&'static self, bytes: usize, len: usize) -> Memory {
        // eighths of a power of two: pieces are found again, and little is wasted
        let step = (bytes.max(1).next_power_of_two() / 8).max(512);
        let size = bytes.max(1).next_multiple_of(step);
        if len > MOST_VALUES {
            let reason = format!(
                "a buffer of {len} values is needed, more than kernels can count: take a smaller batch"
            );
            lock(&self.failure).get_or_insert(reason);
            return Memory { address: 0, size, bytes, len, gpu: self };
        }
        let pooled = lock(&self.free).get_mut(&size).and_then(Vec::pop);
        let address = pooled.unwrap_or_else(|| self.allocate(size));
        Memory { address, size, bytes, len, gpu: self }
    }

    fn allocate(&self, size: usize) -> Address {
        self.enter();
        let mut address = 0;
        // SAFETY: the pointer is that of a live number
        let ask = |address: &mut Address| unsafe { (self.api.driver.alloc)(address, size) };
        // 2: out of memory
        if ask(&mut address) == 2 {
            self.shrink();
            address = 0;
            if ask(&mut address) == 2 {
                let reason = format!(
                    "out of memory: {} MB more were needed. Take a smaller batch or fewer probes at a time, close what \
                     else uses the GPU, or compute on the processor",
                    size >> 20
                );
                lock(&self.failure).get_or_insert(reason);
                return 0;
            }
        }
        if address == 0 {
            lock(&self.failure).get_or_insert_with(|| "memory could not be allocated".to_owned());
        }
        address
    }

    /// Gives the pool back to the driver.
    fn shrink(&self) {
        let pieces = std::mem::take(&mut *lock(&self.free));
        // SAFETY: nobody holds what is in the pool, and all work on it was queued before
        unsafe {
            (self.api.driver.wait)(self.stream.0);
            pieces.into_values().flatten().for_each(|a| {
                (self.api.driver.free)(a);
            });
        }
    }

    pub(crate) fn clear(&self, memory: &Memory) {
        if self.failed() {
            return;
        }
        self.enter();
        // SAFETY: the memory is held by the caller and has so many bytes
        let code = unsafe { (self.api.driver.clear)(memory.address, 0, memory.bytes, self.stream.0) };
        self.note("clearing memory", code);
    }

    pub(crate) fn upload<V: Copy>(&'static self, values: &[V]) -> Memory {
        let memory = self.take::<V>(values.len());
        self.write(&memory, values);
        memory
    }

    /// Replaces the first values of a piece.
    pub(crate) fn write<V: Copy>(&self, memory: &Memory, values: &[V]) {
        let bytes = size_of_val(values);
        if bytes == 0 || self.failed() {
            return;
        }
        assert!(bytes <= memory.bytes, "what is uploaded fits");
        self.enter();
        // SAFETY: both sides have so many bytes; from memory of the host that is not pinned, the copy is made before the call
        // returns
        let code = unsafe {
            (self.api.driver.upload)(memory.address, values.as_ptr().cast::<c_void>(), bytes, self.stream.0)
        };
        self.note("copying to the GPU", code);
    }

    pub(crate) fn download<V: Copy + Default>(&self, memory: &Memory) -> Result<Vec<V>> {
        let mut values = vec![V::default(); memory.len];
        let bytes = size_of_val(&values[..]);
        if bytes > 0 && !self.failed() {
            assert!(bytes <= memory.bytes, "what is downloaded is there");
            self.enter();
            // SAFETY: both sides have so many bytes, any bits are a value, and the vector is not touched before the wait
            unsafe {
                let driver = &self.api.driver;
                let target = values.as_mut_ptr().cast::<c_void>();
                self.note(
                    "copying from the GPU",
                    (driver.download)(target, memory.address, bytes, self.stream.0),
                );
                self.note("work on the GPU", (driver.wait)(self.stream.0));
            }
        }
        self.verdict()?;
        Ok(values)
    }

    /// Copies bytes from an address to the start of a piece.
    pub(crate) fn copy(&self, from: Address, bytes: usize, to: &Memory) {
        if bytes == 0 || self.failed() {
            return;
        }
        assert!(bytes <= to.bytes, "what is copied fits");
        self.enter();
        // SAFETY: the caller holds both sides, of at least so many bytes
        let code = unsafe { (self.api.driver.copy)(to.address, from, bytes, self.stream.0) };
        self.note("copying on the GPU", code);
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
        if grid[0] == 0 || self.failed() {
            return;
        }
        let Some(function) = self.function::<T>(kernel) else { return };
        self.enter();
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|a| (&raw const *a).cast_mut().cast::<c_void>()).collect();
        // SAFETY: the arguments are as many as the kernel has, eight bytes each; what they point to is held by callers, who
        // pass its length
        let code = unsafe {
            (self.api.driver.launch)(
                function.0,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                1,
                0,
                self.stream.0,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.note(kernel, code);
    }

    fn function<T: Real>(&self, kernel: &'static str) -> Option<Pointer> {
        let key = (kernel, T::BYTES);
        if let Some(function) = lock(&self.functions).get(&key) {
            return Some(*function);
        }
        let made = self.module::<T>().and_then(|module| {
            let name = CString::new(kernel).map_err(|e| e.to_string())?;
            let mut function = std::ptr::null_mut();
            self.enter();
            // SAFETY: module and name live during the call
            let code = unsafe { (self.api.driver.function)(&raw mut function, module.0, name.as_ptr()) };
            self.api.driver.check(kernel, code)?;
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

    /// The kernels of a precision, compiled when they are first needed.
    fn module<T: Real>(&self) -> std::result::Result<Pointer, String> {
        let mut modules = lock(&self.modules);
        let slot = usize::from(T::BYTES == 8);
        if let Some(module) = modules[slot] {
            return Ok(module);
        }
        let binary = self.compile(if T::BYTES == 8 { "-DREAL=double" } else { "-DREAL=float" })?;
        let mut module = std::ptr::null_mut();
        self.enter();
        // SAFETY: the binary is one of the compiler's and lives during the call
        let code = unsafe { (self.api.driver.module)(&raw mut module, binary.as_ptr().cast::<c_void>()) };
        self.api.driver.check("loading the kernels", code)?;
        modules[slot] = Some(Pointer(module));
        Ok(Pointer(module))
    }

    fn compile(&self, precision: &str) -> std::result::Result<Vec<u8>, String> {
        let text = |s: &str| CString::new(s).map_err(|e| e.to_string());
        let (source, name) = (text(SOURCE)?, text("kernels.cu")?);
        let options = [text(&self.architecture)?, text(precision)?, text("--std=c++17")?];
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

    /// Products `C = op(A) op(B)`, row-major, of `count` matrices at given distances.
    pub(crate) fn product<T: Real>(
        &self,
        g: super::Gemm,
        at: [Address; 3],
        distance: [usize; 3],
        count: usize,
    ) {
        if self.failed() || g.m == 0 || g.n == 0 || count == 0 {
            return;
        }
        self.enter();
        let blas = lock(&self.blas);
        // row-major C = A B is column-major Cᵀ = Bᵀ Aᵀ
        let (ta, tb) = (c_int::from(g.a_transposed), c_int::from(g.b_transposed));
        let lda = if g.a_transposed { g.m } else { g.k }.max(1) as c_int;
        let ldb = if g.b_transposed { g.k } else { g.n }.max(1) as c_int;
        let (m, n, k) = (g.n as c_int, g.m as c_int, g.k as c_int);
        let [sa, sb, sc] = distance.map(|d| d as i64);
        let [a, b, c] = at;
        let (ldc, count) = (g.n as c_int, count as c_int);
        let beta = if g.add { 1.0 } else { 0.0 };
        // SAFETY: callers have checked that the operands have the sizes of the product
        let status = unsafe {
            let api = &self.api.blas;
            if T::BYTES == 8 {
                let (one, beta) = (1.0, beta);
                (api.f64_product)(
                    blas.0,
                    tb,
                    ta,
                    m,
                    n,
                    k,
                    &raw const one,
                    b,
                    ldb,
                    sb,
                    a,
                    lda,
                    sa,
                    &raw const beta,
                    c,
                    ldc,
                    sc,
                    count,
                )
            } else {
                let (one, beta) = (1.0, beta as f32);
                (api.f32_product)(
                    blas.0,
                    tb,
                    ta,
                    m,
                    n,
                    k,
                    &raw const one,
                    b,
                    ldb,
                    sb,
                    a,
                    lda,
                    sa,
                    &raw const beta,
                    c,
                    ldc,
                    sc,
                    count,
                )
            }
        };
        if status != 0 {
            let reason = format!("a matrix product failed (cuBLAS status {status})");
            lock(&self.failure).get_or_insert(reason);
        }
    }

    /// `out[offset..] (+)= Σ over rows` of `x`, or of `x ⊙ y`, with a weight for each row, for each of `groups` groups.
    pub(crate) fn column_sums<T: Real>(&'static self, sums: &ColumnSums) {
        let ColumnSums { x, y, weights, rows, width, groups, out, adding } = *sums;
        if width == 0 || groups == 0 {
            return;
        }
        let slab = rows.div_ceil(SLABS).max(SLAB);
        let slabs = rows.div_ceil(slab).max(1);
        let part = self.take::<f64>(groups * slabs * width);
        // groups may be more than a grid has layers
        for from in (0..groups).step_by(65_535) {
            let here = (groups - from).min(65_535);
            let arguments = [
                part.address,
                x.0,
                y.map_or(0, |y| y.0),
                weights,
                rows as u64,
                width as u64,
                slab as u64,
                x.1 as u64,
                y.map_or(1, |y| y.1) as u64,
                from as u64,
            ];
            let grid = [width.div_ceil(32) as u32, slabs as u32, here as u32];
            self.launch::<T>("sum_slabs", grid, [32, 8], &arguments);
        }
        let n = groups * width;
        let arguments = [out, part.address, n as u64, width as u64, slabs as u64, u64::from(adding)];
        self.each::<T>("add_slabs", n, &arguments);
    }

    /// Dot products of consecutive blocks of `len` values.
    pub(crate) fn dots<T: Real>(
        &self,
        n: usize,
        len: usize,
        x: (Address, usize),
        y: (Address, usize),
        out: Dots,
    ) {
        let arguments = [
            out.at,
            x.0,
            y.0,
            n as u64,
            len as u64,
            x.1 as u64,
            y.1 as u64,
            out.factor.to_bits(),
            u64::from(out.adding),
        ];
        if len <= 1024 {
            self.launch::<T>("dots_short", [n.div_ceil(8) as u32, 1, 1], [THREADS, 1], &arguments);
        } else {
            self.launch::<T>("dots_long", [n as u32, 1, 1], [THREADS, 1], &arguments);
        }
    }
}

/// Where dot products go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dots {
    pub(crate) at: Address,
    pub(crate) factor: f64,
    pub(crate) adding: bool,
}

/// A sum over rows: operands as address and number of values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSums {
    pub(crate) x: (Address, usize),
    pub(crate) y: Option<(Address, usize)>,
    /// Weights of the rows, or 0.
    pub(crate) weights: Address,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) groups: usize,
    pub(crate) out: Address,
    pub(crate) adding: bool,
}

impl ColumnSums {
    /// Of an operand, into an address.
    pub(crate) fn of(x: (Address, usize), out: Address) -> Self {
        Self { x, y: None, weights: 0, rows: 0, width: 0, groups: 0, out, adding: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplier_divides() {
        let of = |n: u64, d: usize| {
            let m = magic(d);
            if d == 1 { n } else { (n * (m & 0xffff_ffff)) >> 32 >> (m >> 32) }
        };
        for d in (1..2000).chain([4095, 4096, 4097, 65_535, 1 << 20, (1 << 31) - 1, 1_000_003]) {
            assert!(magic(d) & 0xffff_ffff == magic(d) % (1 << 32));
            let near = |n: u64| [n.saturating_sub(1), n, n + 1];
            let some = (0..50)
                .flat_map(|i| near(i * d as u64))
                .chain(near((1 << 31) - 2))
                .chain((0..31).map(|b| 1 << b));
            for n in some.filter(|n| *n < 1 << 31) {
                assert_eq!(of(n, d), n / d as u64, "{n} / {d}");
            }
        }
    }
}
