//! The shape of the noise: the same options for every command that adds some.

use super::table_args::{TableArgs, name_and_number};
use leakscope::Result;
use leakscope::noise::NoiseOptions;
use leakscope::request::Noise;
use leakscope_core::fisher::noise::Shape;
use leakscope_table::ReadOptions;
use std::path::PathBuf;

/// Shape of the noise, and what it protects. Targets are options of the commands themselves.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Shape of the noise")]
pub(crate) struct ShapeArgs {
    /// Shape of the noise: the same on every coefficient, the closed form that costs less, or the cheapest there is; the last
    /// two need a target
    #[arg(long, value_enum, default_value_t = Shape::Isotropic)]
    pub(crate) noise_shape: Shape,
    /// Attributes that --target-eta is for [default: whole records]
    #[arg(long, value_name = "ATTRIBUTE,…", value_delimiter = ',')]
    pub(crate) protect: Vec<String>,
    /// Largest share of η² that the shape itself may give away: beyond, the shape is taken from public bounds, or the noise is
    /// isotropic
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, allow_negative_numbers = true)]
    pub(crate) shape_budget: f64,
    /// Take the shape from this public table of the same columns: then it says nothing about the records
    #[arg(long, value_name = "FILE")]
    pub(crate) shape_from: Vec<PathBuf>,
    /// How close to the cheapest an optimal shape must be
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, allow_negative_numbers = true)]
    pub(crate) gap: f64,
}

impl ShapeArgs {
    /// The options, with the targets of a command; a public table is read as the private one is.
    pub(crate) fn options(
        &self,
        table: &TableArgs,
        target_eta: Option<f64>,
        target_sd: &[String],
    ) -> Result<NoiseOptions> {
        self.options_like(&table.read_options(&[])?, target_eta, target_sd)
    }

    /// The same where the private table is read so.
    pub(crate) fn options_like(
        &self,
        read: &ReadOptions,
        target_eta: Option<f64>,
        target_sd: &[String],
    ) -> Result<NoiseOptions> {
        let shape_from = (!self.shape_from.is_empty())
            .then(|| ReadOptions { paths: self.shape_from.clone(), ..read.clone() });
        Ok(NoiseOptions {
            shape: self.noise_shape,
            protect: self.protect.clone(),
            target_eta,
            target_sd: target_sd
                .iter()
                .map(|text| name_and_number("target_sd", text))
                .collect::<Result<_>>()?,
            shape_budget: self.shape_budget,
            shape_from,
            gap: self.gap,
        })
    }

    /// The noise of a command that looks at many scales of isotropic noise, unless it is made for targets.
    pub(crate) fn noise(
        &self,
        table: &TableArgs,
        target_eta: Option<f64>,
        target_sd: &[String],
    ) -> Result<Noise> {
        let targets = target_eta.is_some() || !target_sd.is_empty();
        match self.is_needed(target_eta, target_sd) || targets {
            true => Ok(Noise::Shaped(Box::new(self.options(table, target_eta, target_sd)?))),
            false => Ok(Noise::Default),
        }
    }

    /// Whether noise of the usual kind would not do: it has a shape, or protects attributes, or there are several targets.
    pub(crate) fn is_needed(&self, target_eta: Option<f64>, target_sd: &[String]) -> bool {
        let targets = usize::from(target_eta.is_some()) + target_sd.len();
        self.noise_shape != Shape::Isotropic
            || !self.protect.is_empty()
            || targets > 1
            || !self.shape_from.is_empty()
    }
}
