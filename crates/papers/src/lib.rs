//! Tables and figures of the papers: data in their original formats in, a [`Reproduction`] out.
//!
//! An experiment is a name and a function from a [`Context`] to its `Findings`; [`run`] adds the rest. Data come
//! from a folder (`data`) or, for a machine without any, from a generator that writes the same formats
//! (`synthetic`).

mod am207;
mod am207_images;
mod data;
mod edmunds;
pub mod fetch;
mod guo;
mod guo_canary;
mod hannun;
mod hannun_attacks;
mod hannun_deciles;
mod images;
mod mueller;
mod mueller_attack;
mod mueller_images;
pub mod patients;
pub mod regression;
mod synthetic;
mod toy;

pub use data::Set;

use leakscope::net::Device;
use leakscope::output::{Folder, PAGE, Pending};
use leakscope::{Failure, Result};
use leakscope_report::reproduction::{Claim, Figure, Row, SCHEMA};
use leakscope_report::{PageKind, Reproduction, ResultPage};
use leakscope_table::{Hooks, RecordsFormat};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where an experiment gets what it needs.
pub struct Context<'a> {
    /// Folder with the data.
    folder: PathBuf,
    /// Whether they were made up; never where an experiment needs none.
    synthetic: bool,
    /// Folder for intermediate files, gone afterwards.
    scratch: PathBuf,
    /// Noise vectors for every point of an attack.
    pub trials: usize,
    /// Training runs whose mean a row shows; absent: as many as the table takes of itself.
    runs: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether what takes hours is run at the published size.
    pub full: bool,
    /// Where networks compute.
    device: Device,
    /// Progress and interruption.
    pub hooks: &'a Hooks,
}

impl Context<'_> {
    fn check(&self) -> Result<()> {
        if self.hooks.interrupt.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        Ok(())
    }
}

/// What an experiment found.
#[derive(Default)]
struct Findings {
    data: Vec<String>,
    rows: Vec<Row>,
    claims: Vec<Claim>,
    method: Vec<String>,
    figures: Vec<Figure>,
}

/// One table or figure.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Paper and place in it.
    pub source: &'static str,
    /// Data sets that it needs.
    pub needs: &'static [data::Set],
    run: fn(&Context<'_>) -> Result<Findings>,
}

use data::Set::{Adult, Cifar, Mnist, Pneumonia, Stories, Warfarin};

const HANNUN: &str = "Hannun, Guo, van der Maaten, “Measuring data leakage in machine-learning models with Fisher \
                      information” (2021)";
const GUO: &str = "Guo, Sablayrolles, Sanjabi, “Analyzing privacy leakage in machine learning via multiple hypothesis \
                   testing: a lesson from Fano” (2022)";
const MUELLER: &str = "Mueller, Kolek, Jungmann, Ziller, Usynin, Knolle, Rueckert, Kaissis, “How do input attributes impact \
                       the privacy loss in differential privacy?” (2022)";
const EDMUNDS: &str = "Edmunds, “Fisher information for private training of machine learning models”, master’s thesis, \
                       Pennsylvania State University (2024)";
const AM207: &str = "Guo, Chen, Liu, Xiang, “AM207 final paper” (2021)";

/// All experiments, in the order of the papers.
pub fn experiments() -> &'static [Experiment] {
    &EXPERIMENTS
}

static EXPERIMENTS: [Experiment; 32] = [
    Experiment {
        name: "hannun-table1",
        title: "Information loss and accuracy before and after reweighting",
        source: HANNUN,
        needs: &[Mnist, Cifar],
        run: hannun::table1,
    },
    Experiment {
        name: "hannun-fig2",
        title: "Histograms of η by class",
        source: HANNUN,
        needs: &[Mnist, Cifar],
        run: hannun::fig2,
    },
    Experiment {
        name: "hannun-fig3",
        title: "Images with the smallest and largest η",
        source: HANNUN,
        needs: &[Mnist, Cifar],
        run: hannun::fig3,
    },
    Experiment {
        name: "hannun-fig4",
        title: "η against the loss and the norm of the gradient",
        source: HANNUN,
        needs: &[Mnist],
        run: hannun::fig4,
    },
    Experiment {
        name: "hannun-fig5",
        title: "Reweighting makes η equal within a few iterations",
        source: HANNUN,
        needs: &[Mnist, Cifar],
        run: hannun::fig5,
    },
    Experiment {
        name: "hannun-fig6",
        title: "Attribute inference against noise and penalty on warfarin doses",
        source: HANNUN,
        needs: &[Warfarin],
        run: hannun_attacks::fig6,
    },
    Experiment {
        name: "hannun-fig7",
        title: "Reweighting makes the success of attribute inference equal",
        source: HANNUN,
        needs: &[Warfarin, Adult],
        run: hannun_deciles::fig7,
    },
    Experiment {
        name: "am207-toy",
        title: "η of outliers in two toy data sets",
        source: AM207,
        needs: &[],
        run: am207::toy,
    },
    Experiment {
        name: "am207-digits",
        title: "Digits 0/1, 2/9 and 5/8: is a large η the sign of an unusual image?",
        source: AM207,
        needs: &[Mnist],
        run: am207_images::digits,
    },
    Experiment {
        name: "am207-reweighting",
        title: "Reweighting with and without the weights as a factor of η",
        source: AM207,
        needs: &[],
        run: am207::reweighting,
    },
    Experiment {
        name: "am207-ood",
        title: "Points out of the distribution: η against the posterior variance of a Bayesian model",
        source: AM207,
        needs: &[Mnist],
        run: am207_images::out_of_distribution,
    },
    Experiment {
        name: "am207-map",
        title: "η over the plane of a toy regression",
        source: AM207,
        needs: &[],
        run: am207::plane,
    },
    Experiment {
        name: "am207-overfitting",
        title: "Mean η and validation error over the degree of a polynomial",
        source: AM207,
        needs: &[],
        run: am207::overfitting,
    },
    Experiment {
        name: "am207-dataset",
        title: "η of a whole data set",
        source: AM207,
        needs: &[Mnist],
        run: am207_images::whole_data_set,
    },
    Experiment {
        name: "guo-fig2",
        title: "Advantage against ε for several numbers of possible values",
        source: GUO,
        needs: &[],
        run: guo::fig2,
    },
    Experiment {
        name: "guo-fig3",
        title: "Bounds and the optimal attack for randomised response and Gaussian noise",
        source: GUO,
        needs: &[],
        run: guo::fig3,
    },
    Experiment {
        name: "guo-fig4",
        title: "Attribute inference on warfarin doses: bound, attacks, error and ε against the noise",
        source: GUO,
        needs: &[Warfarin],
        run: guo::fig4,
    },
    Experiment {
        name: "guo-fig5",
        title: "A secret token in a text that a language model was fine-tuned on: bounds and attacks",
        source: GUO,
        needs: &[Stories],
        run: guo_canary::fig5,
    },
    Experiment {
        name: "mueller-fig1",
        title: "FIL and PLIS of the features of a private linear regression",
        source: MUELLER,
        needs: &[],
        run: mueller::fig1,
    },
    Experiment {
        name: "mueller-fig2",
        title: "Which pixels of a digit a network gives away, with and without DP",
        source: MUELLER,
        needs: &[Mnist, Pneumonia],
        run: mueller_images::fig2,
    },
    Experiment {
        name: "mueller-fig3",
        title: "Which pixels of a chest X-ray a network gives away (network part)",
        source: MUELLER,
        needs: &[Pneumonia],
        run: mueller_images::fig3,
    },
    Experiment {
        name: "mueller-table1",
        title: "Gradient inversion of chest X-rays of low and high PLIS",
        source: MUELLER,
        needs: &[Pneumonia],
        run: mueller_attack::table1,
    },
    Experiment {
        name: "edmunds-fig3.1",
        title: "Accuracy and dFIL against the share of public records",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::fig_3_1,
    },
    Experiment {
        name: "edmunds-fig3.2",
        title: "Accuracy and dFIL of perturbed training against λ",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::fig_3_2,
    },
    Experiment {
        name: "edmunds-fig3.4",
        title: "What the learned perturbation is: its cosine with the average public gradient",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::fig_3_4,
    },
    Experiment {
        name: "edmunds-table3.1",
        title: "A linear model of digits: accuracy and dFIL, pruned and perturbed",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::table_3_1,
    },
    Experiment {
        name: "edmunds-table3.2",
        title: "A convolutional network of digits: accuracy and dFIL, pruned and perturbed",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::table_3_2,
    },
    Experiment {
        name: "edmunds-table3.3",
        title: "A linear model of photographs: accuracy and dFIL, pruned and perturbed",
        source: EDMUNDS,
        needs: &[Cifar],
        run: edmunds::table_3_3,
    },
    Experiment {
        name: "edmunds-table3.4",
        title: "Digits 0 and 1 under the informed adversary: accuracy and dFIL of the models",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::table_3_4,
    },
    Experiment {
        name: "edmunds-table3.5",
        title: "Digits 0 and 1 under the informed adversary: what is reconstructed",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::table_3_5,
    },
    Experiment {
        name: "edmunds-tableA.1",
        title: "A perturbation with and without batch norm",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::table_a_1,
    },
    Experiment {
        name: "edmunds-appendix",
        title: "Figures A.1 to A.29: gradients before and after the perturbation, step by step",
        source: EDMUNDS,
        needs: &[Mnist],
        run: edmunds::appendix,
    },
];

/// The experiments that a name means: one of them, or all that start with it (`hannun`, `all`).
pub fn chosen(name: &str) -> Result<Vec<&'static Experiment>> {
    if let Some(one) = experiments().iter().find(|e| e.name == name) {
        return Ok(vec![one]);
    }
    let several: Vec<_> = experiments()
        .iter()
        .filter(|e| name == "all" || e.name.split_once('-').is_some_and(|(paper, _)| paper == name))
        .collect();
    if several.is_empty() {
        let known: Vec<&str> = experiments().iter().map(|e| e.name).collect();
        return Err(Failure::Message(format!(
            "there is no experiment `{name}`: choose one of {}; a paper ({}), or `all`",
            known.join(", "),
            papers().join(", ")
        )));
    }
    Ok(several)
}

fn papers() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        experiments().iter().filter_map(|e| e.name.split_once('-').map(|p| p.0)).collect();
    all.dedup();
    all
}

/// Where data come from.
pub enum Origin<'a> {
    /// A folder with the files as published.
    Folder(&'a Path),
    /// Made up, in the same formats.
    Synthetic,
    /// From nowhere: for experiments that need none.
    Nowhere,
}

/// Noise vectors for every point of an attack, on published and on made-up data.
pub const TRIALS: [usize; 2] = [100, 10];

/// How much of an experiment is run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Noise vectors for every point of an attack; absent: [`TRIALS`].
    pub trials: Option<usize>,
    /// Training runs whose mean a row shows; absent: as many as the table takes of itself.
    pub runs: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether what takes hours is run at the published size.
    pub full: bool,
}

/// Runs an experiment, networks on the device that is named.
pub fn run(
    experiment: &Experiment,
    origin: &Origin<'_>,
    Size { trials, runs, seed, full }: Size,
    device: Device,
    hooks: &Hooks,
) -> Result<Reproduction> {
    let clock = Instant::now();
    let scratch = tempfile::tempdir()
        .map_err(|e| Failure::Message(format!("cannot make a folder for intermediate files: {e}")))?;
    let synthetic = matches!(origin, Origin::Synthetic) && !experiment.needs.is_empty();
    if synthetic {
        synthetic::write(scratch.path(), experiment.needs, seed)?;
    }
    let folder = match origin {
        Origin::Folder(path) => path.to_path_buf(),
        Origin::Synthetic | Origin::Nowhere => scratch.path().to_path_buf(),
    };
    let context = Context {
        folder,
        synthetic,
        scratch: scratch.path().to_path_buf(),
        trials: trials.unwrap_or(TRIALS[usize::from(synthetic)]),
        runs,
        seed,
        full,
        device,
        hooks,
    };
    let Findings { data, mut rows, claims, method, figures } = (experiment.run)(&context)?;
    // A quotient of nothing (a slope over one point) is no number, and no row.
    rows.retain(|r| !r.ours.is_nan());
    let made = Reproduction {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: leakscope::clock::now(),
        name: experiment.name.into(),
        title: experiment.title.into(),
        source: experiment.source.into(),
        synthetic: false,
        data,
        rows,
        claims,
        method,
        figures,
        seed,
        seconds: clock.elapsed().as_secs_f64(),
    };
    Ok(if context.synthetic { made.on_made_up_data() } else { made })
}

/// Writes the page, the numbers, and every panel as a drawing and as numbers.
pub fn write(r: &Reproduction, folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut pending = Pending::default();
    folder.page(&mut pending, PageKind::Reproduction, &leakscope_report::reproduction_page(r))?;
    folder.text(&mut pending, "reproduce.json", &leakscope_report::document(r))?;
    for figure in &r.figures {
        for (k, panel) in figure.panels.iter().enumerate() {
            let stem = figure.stem(k);
            folder.text(&mut pending, &format!("{stem}.svg"), &leakscope_report::panel_svg(panel))?;
            folder.text(&mut pending, &format!("{stem}.csv"), &panel.csv())?;
            if let Some(pixels) = panel.pixels_csv() {
                folder.text(&mut pending, &format!("{stem}-pixels.csv"), &pixels)?;
            }
        }
    }
    folder.publish(pending)
}

/// Writes the page that lists the reproductions in the folders of `out`.
///
/// # Errors
/// A folder that cannot be written to.
pub fn write_index(out: &Path) -> Result<Vec<PathBuf>> {
    let page = |experiment: &Experiment| {
        let file = format!("{}/{PAGE}", experiment.name);
        let text = std::fs::read_to_string(out.join(&file)).ok()?;
        // All are reproductions: what tells them apart is which.
        ResultPage::read(&file, &text).map(|page| page.named(experiment.name))
    };
    let pages: Vec<ResultPage> = experiments().iter().filter_map(page).collect();
    let folder = Folder::open(out, RecordsFormat::Csv)?;
    let mut pending = Pending::default();
    folder.text(&mut pending, "index.html", &leakscope_report::folder_page(&pages))?;
    folder.publish(pending)
}

/// A screenful of text.
pub fn summary(r: &Reproduction) -> String {
    use leakscope_report::format::number;
    let mut out = format!("{}: {}\n{}\n", r.name, r.title, r.source);
    if r.synthetic {
        out.push_str("on made-up data: published numbers are for orientation only\n");
    }
    if !r.rows.is_empty() {
        let width = r.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        out.push_str(&format!("\n{:width$}  {:>10}  {:>10}\n", "", "paper", "ours"));
        for row in &r.rows {
            let paper = row.paper.map_or_else(|| "–".into(), number);
            let mark = match row.judged() {
                Some(word) if row.to_the_digit == Some(false) => format!("  {word}"),
                _ => String::new(),
            };
            let pad = " ".repeat(width - row.name.chars().count());
            out.push_str(&format!("{}{pad}  {paper:>10}  {:>10}{mark}\n", row.name, number(row.ours)));
        }
    }
    if !r.claims.is_empty() {
        out.push('\n');
    }
    for claim in &r.claims {
        let verdict = if claim.holds { "holds" } else { "does not hold" };
        out.push_str(&format!("{verdict}: {}\n  {}\n", claim.claim, claim.finding));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_papers_choose_theirs() {
        let mut names: Vec<&str> = experiments().iter().map(|e| e.name).collect();
        assert_eq!(chosen("all").unwrap().len(), names.len());
        assert_eq!(papers().iter().map(|p| chosen(p).unwrap().len()).sum::<usize>(), names.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), experiments().len());
        let message = chosen("hanun").err().unwrap().to_string();
        assert!(message.contains("hannun-table1") && message.contains("`hanun`"), "{message}");
    }
}
