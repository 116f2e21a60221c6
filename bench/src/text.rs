//! Language models: per-sample clipped gradients of GPT-2 small's shape against the plain gradient of the same batch, in f32.
//! Goals: less than twice the time, less than 1.3 times the memory. Beside them PyTorch with and without Opacus's ghost clipping.
//!
//! Each runs in a process of its own, since a peak of memory is that of a whole process; they take turns, since the machine may be
//! shared.

use crate::{best, peak_memory};
use leakscope_net::{
    Clip, Data, Network,
    engine::{BatchGradient, clipped_gradient, gradient},
    random::{Generator, Purpose},
    text::Gpt2,
};
use std::io::Write;
use std::process::{Command, Stdio};

const TIMES: usize = 3;
const ROUNDS: usize = 2;

type Any<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is measured.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    model: Gpt2,
    length: usize,
    batch: usize,
}

impl Sizes {
    /// Of `name=value` words; what is not said is GPT-2 small's.
    fn read<'a>(words: impl Iterator<Item = &'a str>) -> Any<Self> {
        let mut sizes = Self { model: Gpt2::SMALL, length: 128, batch: 8 };
        for word in words {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("`{word}`: expected name=value"))?;
            let value: usize = value.parse().map_err(|e| format!("`{word}`: {e}"))?;
            let place = match name {
                "blocks" => &mut sizes.model.blocks,
                "width" => &mut sizes.model.width,
                "heads" => &mut sizes.model.heads,
                "vocabulary" => &mut sizes.model.vocabulary,
                "length" => &mut sizes.length,
                "batch" => &mut sizes.batch,
                _ => {
                    return Err(format!(
                        "`{name}`: expected blocks, width, heads, vocabulary, length or batch"
                    )
                    .into());
                }
            };
            *place = value;
        }
        sizes.model.context = sizes.model.context.max(sizes.length);
        Ok(sizes)
    }

    fn words(self) -> Vec<String> {
        let Gpt2 { vocabulary, width, blocks, heads, .. } = self.model;
        let all = [
            ("blocks", blocks),
            ("width", width),
            ("heads", heads),
            ("vocabulary", vocabulary),
            ("length", self.length),
            ("batch", self.batch),
        ];
        all.map(|(name, value)| format!("{name}={value}")).to_vec()
    }
}

/// Seconds of a batch and peak memory in MB.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    memory: f64,
}

impl Cost {
    /// The best of two measurements.
    fn least(self, other: Self) -> Self {
        Self { seconds: self.seconds.min(other.seconds), memory: self.memory.min(other.memory) }
    }

    fn print(self, name: &str) {
        println!("{name:34} {:9.2} s {:9.0} MB", self.seconds, self.memory);
    }

    /// Beside what it is measured against.
    fn against(self, plain: Self, name: &str) {
        let (time, memory) = (self.seconds / plain.seconds, self.memory / plain.memory);
        println!("{name:34} {time:9.2} x {memory:9.2} x");
    }
}

/// Ours, then PyTorch run by the Python that is named.
pub(crate) fn run(arguments: &[String]) -> Any<()> {
    let (sizes, python): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|a| a.contains('='));
    let sizes = Sizes::read(sizes.into_iter().map(String::as_str))?;
    let net = Network::<f32>::new(sizes.model.network(), 1)?;
    println!(
        "{} parameters ({:.0} MB), {} texts of {} tokens, {} threads",
        net.parameter_count(),
        4.0 * net.parameter_count() as f64 / f64::from(1 << 20),
        sizes.batch,
        sizes.length,
        rayon::current_num_threads()
    );
    drop(net);
    let [mut plain, mut clipped] = [measured("plain", sizes)?, measured("clipped", sizes)?];
    for _ in 1..ROUNDS {
        plain = plain.least(measured("plain", sizes)?);
        clipped = clipped.least(measured("clipped", sizes)?);
    }
    plain.print("plain gradient of the batch");
    clipped.print("clipped gradients, by text");
    clipped.against(plain, "clipped over plain");
    println!("{:34} {:>9} x {:>9} x", "goal below", "2.00", "1.30");
    let Some(python) = python.first() else {
        println!("no Python with torch was named: nothing to compare with");
        return Ok(());
    };
    let [plain, ghost] = [torch(python, "plain", sizes)?, torch(python, "ghost", sizes)?];
    plain.print("PyTorch: plain gradient");
    ghost.print("Opacus: ghost clipping");
    ghost.against(plain, "Opacus over PyTorch");
    clipped.against(ghost, "ours over Opacus");
    Ok(())
}

/// One kind of gradient, measured in this process: seconds and MB on one line.
pub(crate) fn part(arguments: &[String]) -> Any<()> {
    let (kind, sizes) = arguments.split_first().ok_or("which part?")?;
    let sizes = Sizes::read(sizes.iter().map(String::as_str))?;
    let net = Network::<f32>::new(sizes.model.network(), 1)?;
    let mut rng = Generator::new(1, Purpose::Other, 0);
    let tokens = sizes.batch * sizes.length;
    let mut draw = || (rng.uniform() * sizes.model.vocabulary as f64) as u32;
    let (x, y): (Vec<u32>, Vec<u32>) = (0..tokens).map(|_| (draw(), draw())).unzip();
    let data = Data::<f32>::tokens(sizes.length, x, sizes.model.vocabulary, &y)?;
    let batch: Vec<usize> = (0..sizes.batch).collect();
    // of every run no more than a number is kept: a gradient would count in the memory of the next
    let square = |g: &BatchGradient<f32>| g.sum.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
    let (seconds, done) = match kind.as_str() {
        "plain" => best(TIMES, || gradient(&net, &data, &batch).map(|g| square(&g))),
        "clipped" => best(TIMES, || {
            clipped_gradient(&net, &data, &batch, Clip::Hard { bound: 1.0 }).map(|g| square(&g))
        }),
        other => return Err(format!("there is no part `{other}`").into()),
    };
    let norm = done?;
    if norm.is_nan() || norm <= 0.0 {
        return Err("the gradient is zero".into());
    }
    println!("{seconds}\t{}", peak_memory());
    Ok(())
}

fn measured(kind: &str, sizes: Sizes) -> Any<Cost> {
    let out =
        Command::new(std::env::current_exe()?).args(["text-part", kind]).args(sizes.words()).output()?;
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
    }
    cost(&out.stdout)
}

/// The same by `text_torch.py`.
fn torch(python: &str, kind: &str, sizes: Sizes) -> Any<Cost> {
    let threads = rayon::current_num_threads().to_string();
    let mut child = Command::new(python)
        .args(["-", kind, &threads])
        .args(sizes.words())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run {python}: {e}"))?;
    let script = include_str!("../text_torch.py");
    child.stdin.take().ok_or("no standard input")?.write_all(script.as_bytes())?;
    let out = child.wait_with_output()?;
    if !out.status.success() {
        return Err(
            format!("{python} failed: does it have torch and opacus? (pip install torch opacus)").into()
        );
    }
    cost(&out.stdout)
}

/// The last line: seconds and MB.
fn cost(out: &[u8]) -> Any<Cost> {
    let text = String::from_utf8_lossy(out);
    let line = text.lines().last().unwrap_or_default();
    let (seconds, memory) =
        line.split_once('\t').ok_or_else(|| format!("`{line}`: expected seconds and MB"))?;
    Ok(Cost { seconds: seconds.trim().parse()?, memory: memory.trim().parse()? })
}
