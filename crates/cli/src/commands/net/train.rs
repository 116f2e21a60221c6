//! `leakscope net train`: a network, in private where there is noise.

use super::super::table_args::{ColumnArgs, TableArgs, name_and_text};
use super::super::training_args::TrainingArgs;
use super::normalize;
use leakscope::net::public::{OptimizerKind, PerturbTraining, PublicTraining};
use leakscope::net::table::TableRequest;
use leakscope::net::train::{Sampling, TrainRequest, run as train};
use leakscope::{Failure, Result};
use leakscope_net::Loss;
use leakscope_net::leak::Label;
use leakscope_net::perturb::PerturbationKind;
use leakscope_table::TextEncoding;
use std::path::PathBuf;
use std::process::ExitCode;

/// Train a network, with DP-SGD where there is noise.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// A folder (MNIST's idx files, train.safetensors or train.npz), two idx files (images, labels), a safetensors file
    /// with x and y, an npz file with train_images and train_labels (or x_train and y_train, or x and y); with --target a
    /// table: CSV, JSON lines, Parquet or Feather files
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Column of a table to predict: a number by squared error, two classes by cross-entropy
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Encoding of text files of a table
    #[arg(long, value_enum, default_value_t = TextEncoding::Utf8)]
    text_encoding: TextEncoding,
    /// Unit of an attribute of a table for the page, such as age=years; may be repeated
    #[arg(long, value_name = "COLUMN=UNIT")]
    unit: Vec<String>,
    /// Measure accuracy on this share of the rows of a table, which are not trained on
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    holdout: Option<f64>,
    /// Measure accuracy on these [default: the test records of the --data folder or npz file, else training records]
    #[arg(long, num_args = 1.., value_name = "PATH")]
    test: Vec<PathBuf>,
    /// A preset (linear, mlp, mlp-attack, cnn-mnist, cnn-cifar) or a network file in JSON
    #[arg(long, value_name = "NAME|FILE")]
    network: String,
    /// Outputs of a preset (a network file says its own) [default: one more than the largest class; 1 is one output for
    /// two classes]
    #[arg(long, value_name = "K")]
    outputs: Option<usize>,
    /// Loss of a preset (a network file says its own) [default: softmax-cross-entropy for classes, binary-cross-entropy for
    /// one output or for labels of which several hold at once]
    #[arg(long, value_enum, value_name = "LOSS")]
    loss: Option<Loss>,
    /// Records in a batch; with Poisson sampling the expected number
    #[arg(long, value_name = "N", default_value_t = 256.0, allow_negative_numbers = true)]
    batch: f64,
    /// How batches are drawn
    #[arg(long, value_enum, default_value_t = Sampling::Poisson)]
    sampling: Sampling,
    /// Layers whose parameters stay as they are, by number: the N of layers.N in model.safetensors, which counts all
    /// layers from 0, a residual block before those inside it; the number of a block freezes all of it
    #[arg(long, value_name = "LAYER,…", value_delimiter = ',')]
    freeze: Vec<usize>,
    /// Train only the largest of the given weights: this share of them, the smallest in size, stays as it is
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    freeze_smallest: Option<f64>,
    /// The same by the share that is trained: the others, the smallest in size after --pretrain and --public-epochs, stay at
    /// their public values
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    density: Option<f64>,
    /// Start from these weights, taken to be public (safetensors)
    #[arg(long, value_name = "FILE")]
    pretrain: Option<PathBuf>,
    /// Public records, as --data: batch norms take their mean and variance from them, since those of private records would
    /// give these away; with --public-epochs the network is trained on them first. They are not counted
    #[arg(long, num_args = 1.., value_name = "PATH")]
    public: Vec<PathBuf>,
    /// Train on the --public records first, without noise: so many passes over them. Layers of --freeze take part
    #[arg(long, value_name = "N", conflicts_with = "public_steps", allow_negative_numbers = true)]
    public_epochs: Option<f64>,
    /// The same in steps
    #[arg(long, value_name = "N")]
    public_steps: Option<u64>,
    /// Public records in a batch [default: --batch, at most all]
    #[arg(long, value_name = "N")]
    public_batch: Option<usize>,
    /// Learning rate on public records [default: --lr]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    public_lr: Option<f64>,
    /// Optimiser on public records [default: that of the run]
    #[arg(long, value_enum, value_name = "RULE")]
    public_optimizer: Option<OptimizerKind>,
    /// Weight decay on public records
    #[arg(long, value_name = "W", default_value_t = 0.0, allow_negative_numbers = true)]
    public_weight_decay: f64,
    /// Add to every gradient, before the clip, what the --public records show to make it give less away; learned again before
    /// each step
    #[arg(long, value_enum, value_name = "HOW")]
    perturb: Option<PerturbationKind>,
    /// λ of --perturb: what the leak of a gradient weighs against the size of the perturbation [default: 1000]
    #[arg(long, value_name = "LAMBDA", allow_negative_numbers = true)]
    perturb_lambda: Option<f64>,
    /// Passes over the --public records by which --perturb is learned before the first step; later ones start from it with
    /// fewer [default: 200, then 150, 100, 50, 20]
    #[arg(long, value_name = "N")]
    perturb_epochs: Option<u64>,
    /// Public records in a batch of that [default: 512, at most all]
    #[arg(long, value_name = "N")]
    perturb_batch: Option<usize>,
    /// Learning rate of that [default: 0.01]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    perturb_lr: Option<f64>,
    /// Weight decay of that [default: 0.1]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    perturb_weight_decay: Option<f64>,
    /// Whether the label is part of the secret that --track keeps account of
    #[arg(long, value_enum, default_value_t = Label::Public)]
    label: Label,
    /// The same by record: a file with one number a line, in the order of the records, or a column of the table
    #[arg(long, value_name = "FILE|COLUMN", conflicts_with = "filter_epsilon")]
    filter_budgets: Option<PathBuf>,
    /// Use only the first records
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Scale values to (x − mean)/sd; bytes are divided by 255 first. MNIST: 0.1307,0.3081
    #[arg(long, value_name = "MEAN,SD", allow_hyphen_values = true)]
    normalize: Option<String>,
    #[command(flatten)]
    training: TrainingArgs,
}

impl Args {
    fn request(&self) -> Result<TrainRequest> {
        Ok(TrainRequest {
            data: self.data.clone(),
            table: self.table()?,
            test: self.test.clone(),
            network: self.network.clone(),
            outputs: self.outputs,
            loss: self.loss,
            batch: self.batch,
            sampling: self.sampling,
            freeze: self.freeze.clone(),
            freeze_smallest: self.freeze_smallest,
            density: self.density,
            pretrain: self.pretrain.clone(),
            public: self.public.clone(),
            public_training: PublicTraining {
                epochs: self.public_epochs,
                steps: self.public_steps,
                batch: self.public_batch,
                lr: self.public_lr,
                optimizer: self.public_optimizer,
                weight_decay: self.public_weight_decay,
            },
            perturb: self.perturb,
            perturb_training: PerturbTraining {
                lambda: self.perturb_lambda,
                epochs: self.perturb_epochs,
                batch: self.perturb_batch,
                lr: self.perturb_lr,
                weight_decay: self.perturb_weight_decay,
            },
            label: self.label,
            filter_budgets: self.filter_budgets.clone(),
            budgets: vec![],
            limit: self.limit,
            normalize: normalize(self.normalize.as_deref())?,
            run: self.training.request(),
        })
    }

    /// What the columns are for, where --target names one.
    fn table(&self) -> Result<Option<TableRequest>> {
        let c = &self.columns;
        let Some(target) = &self.target else {
            let stray = c.stray().or(self.holdout.map(|_| "holdout"));
            return match stray.or((!self.unit.is_empty()).then_some("unit")) {
                Some(flag) => {
                    Err(Failure::option(flag, "it belongs to a table: say what to predict with ⟨target⟩"))
                }
                None => Ok(None),
            };
        };
        let table = TableArgs {
            files: vec![],
            target: target.clone(),
            encoding: self.text_encoding,
            columns: c.clone(),
        };
        Ok(Some(TableRequest {
            read: table.read_options(&[])?,
            roles: table.roles(),
            one_hot: c.one_hot,
            scale: c.scale,
            pca: c.pca,
            missing: c.missing,
            positive: c.positive.clone(),
            public: c.public.public()?,
            min_level_count: c.public.min_level_count,
            holdout: self.holdout,
            test: None,
            units: self.unit.iter().map(|text| name_and_text("unit", text)).collect::<Result<_>>()?,
        }))
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    args.training.run.start()?;
    let request = args.request()?;
    args.training.train(|out, listener| train(&request, out, listener))
}
