//! `leakscope net audit`: what one gradient step of a trained network gives away about every record.

use super::assemble;
use super::data::{Part, Reading, Source, one_array};
use super::measuring::{Asked, Scored, What, comparable, found, skip};
use super::model::{Model, trained_precision};
use super::watch::Watch;
use super::{Precision, ReleaseArgs, normalize, print, random_seed, records_format, use_threads};
use crate::commands::audit::{FormatArg, LabelArg};
use crate::output::{Folder, Pending};
use crate::{Failure, Result};
use leakscope_net::io::Array;
use leakscope_net::{
    Clip, Loss, Network, Real, Shape,
    leak::{Label, Measure, Plis, Probe, Spectral, Trace, grid, measure},
    random::{Generator, Purpose},
};
use leakscope_report::net::{self as page, PrivacyFacts};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measure what one gradient step of a trained network gives away about every record.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// A folder that `net train` left: network.json, model.safetensors and, where there is one, training.json
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// The training records: a folder, two idx files (images, labels), or a safetensors file with x and y
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Use only the first records of --data
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How many records to measure, drawn by the seed, or `all`
    #[arg(long, value_name = "N|all", default_value = "1000")]
    records: String,
    /// The trace of the information: `exact`, `elements` (exact, and what each value of a record adds to it), a number of
    /// random probes, or `skip`
    #[arg(long, value_name = "exact|elements|PROBES|skip", default_value = "10")]
    trace: String,
    /// Measure η and JacSens too (Lanczos: the most costly part)
    #[arg(long)]
    eta: bool,
    /// Measure PLIS too, and draw its maps
    #[arg(long)]
    pub(super) plis: bool,
    /// Draw PLIS over squares of so many pixels instead of every pixel
    #[arg(long, value_name = "PIXELS", requires = "plis")]
    pub(super) grid: Option<usize>,
    /// Draw PLIS over regions: an idx file (or an npz file with one array) of height × width region numbers
    #[arg(long, value_name = "FILE", requires = "plis", conflicts_with = "grid")]
    superpixels: Option<PathBuf>,
    /// Whether the label is part of the secret [default: as in training, else public]
    #[arg(long, value_enum)]
    label: Option<LabelArg>,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Another model (for example one trained in the open): its PLIS maps beside this one's
    #[arg(long, value_name = "DIR", requires = "plis")]
    compare: Option<PathBuf>,
    /// Points that were not trained on: are they out of distribution?
    #[arg(long, num_args = 1.., value_name = "PATH")]
    score: Vec<PathBuf>,
    /// Scale values to (x − mean)/sd [default: as in training, else not]
    #[arg(long, value_name = "MEAN,SD", allow_hyphen_values = true)]
    normalize: Option<String>,
    /// No pictures of records on the page
    #[arg(long)]
    pub(super) no_pictures: bool,
    /// Seed of probes and of the choice of records [default: drawn from the system, and printed]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Folder for audit.json, records.parquet and report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Format of the table of records
    #[arg(long, value_enum, default_value_t = FormatArg::Parquet)]
    format: FormatArg,
    /// Print audit.json to stdout, and nothing else there
    #[arg(long)]
    json: bool,
    /// No remarks and no progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Numbers that the network computes with [default: as in training, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    use_threads(args.threads)?;
    match args.precision.unwrap_or_else(|| trained_precision(&args.model)) {
        Precision::F32 => run_in::<f32>(args),
        Precision::F64 => run_in::<f64>(args),
    }
}

fn run_in<T: Real>(args: &Args) -> Result<ExitCode> {
    let model = Model::<T>::open(&args.model, "--model")?;
    let other = args.compare.as_deref().map(|dir| Model::open(dir, "--compare")).transpose()?;
    let seed = args.seed.unwrap_or_else(random_seed);
    let what = what(args, &model, seed)?;
    let regions = args.superpixels.as_deref().map(read_regions).transpose()?;
    let groups = map_groups(args, &model.net, regions.as_ref().map(|(name, array)| (&**name, array)))?;
    let folder = args.out.as_deref().map(|dir| Folder::open(dir, records_format(args.format))).transpose()?;
    if let Some(folder) = &folder {
        let read = args.data.iter().chain(&args.score).chain(&args.superpixels).map(PathBuf::as_path);
        let tables: &[&str] = if args.score.is_empty() { &["records"] } else { &["records", "scores"] };
        folder.spare(&read.collect::<Vec<_>>(), &["audit.json", "report.html"], tables)?;
    }
    let trained_on = model.training.as_ref().map(|t| t.data.normalize);
    let scale = normalize(args.normalize.as_deref())?.or(trained_on).unwrap_or([0.0, 1.0]);
    if args.limit == Some(0) {
        return Err(Failure::flag("--limit", "0: expected at least 1"));
    }
    let reading = Reading { flag: "--data", part: Part::Train, normalize: scale, limit: args.limit };
    let mut source = Source::<T>::read(&args.data, reading)?;
    let data = source.take_data(&model.net)?;
    if let Some(other) = &other {
        comparable(&data, &model.net, &other.net)?;
    }
    let ids = choose(&args.records, data.len(), seed)?;
    let points = match args.score.is_empty() {
        true => None,
        false => {
            let reading = Reading { flag: "--score", part: Part::Test, normalize: scale, limit: None };
            Some(points(Source::read(&args.score, reading)?, &model.net)?)
        }
    };
    let point_ids = points.as_ref().map_or(Ok(Vec::new()), |p| choose(&args.records, p.data.len(), seed))?;

    if args.seed.is_none() && !args.quiet && !args.json {
        eprintln!("seed {seed} (drawn; give it with --seed to repeat this audit)");
    }
    let (files, range) = (source.files, source.range);
    let asked = Asked { model, other, data, files, range, ids, points, point_ids, what, groups, scale, seed };
    let watch = Watch::start(args.quiet || args.json, asked.passes(), " records")?;
    let tick = |done: u64| match watch.stopped() {
        true => Err(Failure::Interrupted),
        false => {
            watch.at(done, String::new);
            Ok(())
        }
    };
    let found = found(asked, &tick)?;
    drop(watch);

    let mut audit = assemble::audit(&found);
    let mut written = Vec::new();
    if let Some(folder) = &folder {
        let pictures = match args.no_pictures {
            true => page::Pictures::default(),
            false => assemble::pictures(&found, &audit)?,
        };
        let mut pending = Pending::default();
        pending.tables(assemble::tables(&found, folder)?);
        audit.tables = pending.table_names();
        texts(folder, &mut pending, &audit, &pictures)?;
        written = folder.publish(pending)?;
    }
    print(&if args.json { page::to_json(&audit) } else { page::summary(&audit) });
    if !args.quiet && !args.json {
        written.iter().for_each(|p| eprintln!("wrote {}", p.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The audit and its page.
pub(super) fn texts(
    folder: &Folder,
    pending: &mut Pending,
    audit: &page::NetAudit,
    pictures: &page::Pictures,
) -> Result<()> {
    folder.text(pending, "audit.json", &page::to_json(audit))?;
    folder.text(pending, "report.html", &page::page(audit, pictures))
}

/// What the words ask for, of a model.
pub(super) fn what<T: Real>(args: &Args, model: &Model<T>, seed: u64) -> Result<What> {
    let trained = model.training.as_ref().and_then(|t| t.privacy.as_ref());
    let (clip, sigma) = (args.release.clip()?, args.release.sigma()?);
    let chosen = sigma.is_some() || trained.is_some();
    let clip = clip.or_else(|| trained.map(trained_clip)).unwrap_or(Clip::None);
    let sigma = sigma.or(trained.map(|p| p.sigma)).unwrap_or(1.0);
    let trace = match args.trace.as_str() {
        "exact" => Trace::Exact,
        "elements" => Trace::Elements,
        "skip" => Trace::Skip,
        text => match text.parse::<usize>() {
            Ok(probes) if probes >= 2 => Trace::Estimate { probes, probe: Probe::Rademacher },
            _ => {
                let message =
                    format!("`{text}`: expected exact, elements, skip, or a number of probes from 2");
                return Err(Failure::flag("--trace", message));
            }
        },
    };
    let label = match (args.label, &model.training) {
        (Some(LabelArg::Secret), _) => Label::Secret,
        (Some(LabelArg::Public), _) => Label::Public,
        (None, Some(t)) if t.label_secret => Label::Secret,
        (None, _) => Label::Public,
    };
    let eta = args.eta.then(Spectral::default);
    let plis = if args.plis { Plis::Record } else { Plis::Skip };
    let released = Measure { label, trace, eta, plis: plis.clone(), ..Measure::new(clip, sigma, seed) };
    let plain = (args.eta || args.plis).then(|| Measure {
        clip: Clip::None,
        sigma: released.noise(),
        trace: Trace::Skip,
        plis: match (args.plis, trace) {
            (true, Trace::Elements) => Plis::Elements,
            _ => plis,
        },
        ..released.clone()
    });
    Ok(What { released, plain, chosen, factor: 1.0, maps: false })
}

fn trained_clip(p: &PrivacyFacts) -> Clip {
    match p.clip_kind.as_str() {
        "gelu" => Clip::Gelu { bound: p.clip },
        "none" => Clip::None,
        _ => Clip::Hard { bound: p.clip },
    }
}

/// The records to measure, ascending.
fn choose(records: &str, n: usize, seed: u64) -> Result<Vec<usize>> {
    let wanted = match records {
        "all" => n,
        text => match text.parse::<usize>() {
            Ok(k) if k > 0 => k.min(n),
            _ => {
                return Err(Failure::flag(
                    "--records",
                    format!("`{text}`: expected a number from 1, or all"),
                ));
            }
        },
    };
    let mut ids = match wanted == n {
        true => (0..n).collect(),
        false => Generator::new(seed, Purpose::Sampling, 0).permutation(n),
    };
    ids.truncate(wanted);
    ids.sort_unstable();
    Ok(ids)
}

/// Groups of pixels of the maps; every pixel on its own without --grid, and none where records are no images.
pub(super) fn map_groups<T: Real>(
    args: &Args,
    net: &Network<T>,
    superpixels: Option<(&str, &Array<f64>)>,
) -> Result<Option<Vec<u32>>> {
    match (args.plis, net.input(), args.grid, superpixels) {
        (true, Shape::Image(shape), _, Some((name, array))) => Ok(Some(regions(name, array, shape)?)),
        (true, Shape::Image(_), size, None) => {
            Ok(Some(grid(net.input(), size.unwrap_or(1)).map_err(|e| Failure::flag("--grid", e))?))
        }
        (true, Shape::Vector(_), Some(_), _) => {
            Err(Failure::flag("--grid", "records are no images: leave it out"))
        }
        (true, Shape::Vector(_), _, Some(_)) => {
            Err(Failure::flag("--superpixels", "records are no images: leave it out"))
        }
        _ => Ok(None),
    }
}

fn read_regions(file: &Path) -> Result<(String, Array<f64>)> {
    let array = one_array(file).map_err(|e| Failure::flag("--superpixels", e))?;
    Ok((file.display().to_string(), array))
}

/// The region of every value of an image, all channels of a pixel together.
fn regions(name: &str, array: &Array<f64>, [height, width, channels]: [usize; 3]) -> Result<Vec<u32>> {
    let bad = |reason: String| Failure::flag("--superpixels", format!("{name}: {reason}"));
    if array.shape != [height, width] {
        return Err(bad(format!("it has shape {:?}, expected [{height}, {width}]", array.shape)));
    }
    let most = height * width * channels;
    if let Some(v) = array.values.iter().find(|v| !(v.fract() == 0.0 && (0.0..most as f64).contains(*v))) {
        return Err(bad(format!("a region is {v}: expected whole numbers from 0, below {most}")));
    }
    Ok(array.values.iter().flat_map(|&v| std::iter::repeat_n(v as u32, channels)).collect())
}

/// Points to score; without labels the network's own answers stand in.
pub(super) fn points<T: Real>(mut source: Source<T>, net: &Network<T>) -> Result<Scored<T>> {
    let labelled = source.labelled();
    let data = match (labelled, net.loss()) {
        (true, _) => source.take_data(net)?,
        (false, Loss::SquaredError) => {
            return Err(Failure::flag("--score", "the network predicts values: give their targets as y"));
        }
        (false, Loss::SoftmaxCrossEntropy | Loss::BinaryCrossEntropy) => {
            let all: Vec<usize> = (0..source.len()).collect();
            let cheap = skip(&Measure::new(Clip::None, 1.0, 0));
            let mut answers = vec![0; source.len()];
            for class in 0..net.outputs().max(2) as u32 {
                let data = source.as_class(net, class)?;
                let right = measure(net, &data, &all, &cheap)?;
                right.iter().filter(|r| r.right).for_each(|r| answers[r.record] = class);
            }
            source.with_classes(net, &answers)?
        }
    };
    Ok(Scored { files: source.files, range: source.range, labelled, data })
}
