//! How much does a trained model give away about the records it was trained on? Leakscope as a library: requests in,
//! documents out.
//!
//! | module | question | request → document |
//! |---|---|---|
//! | [`audit`] | what does the noisy release of a model give away about each record? | [`audit::Request`] → [`leakscope_report::Audit`] |
//! | [`balance`], [`attack`], [`release`] | make it equal for all, try to guess, publish | over the same table and model ([`model`]) |
//! | [`bound`] | what can any attacker guess at most? | [`bound::BoundRequest`] → [`leakscope_report::bound::SecretBounds`] |
//! | [`account`], [`calibrate`] | what does it cost, how much noise does it take? | [`account::AccountRequest`], [`calibrate::CalibrateRequest`] |
//! | [`noise`] | which shape of the noise costs least? | [`noise::NoiseOptions`] → [`leakscope_report::noise::Noise`] |
//! | [`cluster`] | the same audit on many machines | [`cluster::Plan`], [`cluster::part`] |
//! | [`net`] | networks: training in private, and what their gradients give away | [`net::train::TrainRequest`], [`net::audit::NetAuditRequest`] |
//! | [`text`] | language models: what fine-tuning tells about texts, and whether a secret can be pulled out | [`text::audit::TextAuditRequest`], [`text::canary::CanaryRequest`] → [`leakscope_report::Canary`] |
//!
//! A request is plain data with defaults (serde); [`Failure`] says why there is no answer and names the option at fault, which
//! an interface spells as its own ([`Spelling`]). Nothing is printed, and files are written only by [`output`], whole or not at
//! all.
//!
//! # A table
//! ```
//! use leakscope::audit::{self, Noise, Request};
//! use leakscope_table::{Hooks, ReadOptions, Roles};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let file = folder.path().join("patients.csv");
//! let rows: String = (0..60).map(|i| format!("{},{}\n", 40 + i % 37, 3.0 + 0.05 * f64::from(i % 37) + 0.1 * f64::from(i % 3))).collect();
//! std::fs::write(&file, format!("age,dose\n{rows}")).unwrap();
//!
//! let request = Request {
//!     read: ReadOptions { paths: vec![file], ..Default::default() },
//!     roles: Roles { target: "dose".into(), ..Default::default() },
//!     noise: Noise::Given(0.5),
//!     ..Default::default()
//! };
//! let audit = audit::run(&request, None, &Hooks::default(), &|_| {})?.audit;
//! assert_eq!(audit.n, 60);
//! assert!(audit.records.eta.max > 0.0);
//! # Ok::<(), leakscope::Failure>(())
//! ```
//!
//! # What any attacker can guess
//! ```
//! use leakscope::bound::{self, BoundRequest, MechanismKind};
//! use leakscope_table::Hooks;
//!
//! let request = BoundRequest {
//!     candidates: vec![10],
//!     mechanism: Some(MechanismKind::Gaussian),
//!     sigma: Some(1.0),
//!     trials: 0,
//!     ..Default::default()
//! };
//! let bounds = bound::answer(&request, &Hooks::default())?;
//! assert!(!bounds.bounds.is_empty());
//! # Ok::<(), leakscope::Failure>(())
//! ```
//!
//! # What releases cost
//! ```
//! use leakscope::account::{self, AccountRequest};
//! use leakscope::mechanism::ReleaseStep;
//!
//! let step = ReleaseStep { sigma: Some(1.0), rate: Some(0.01), steps: Some(1000), ..Default::default() };
//! let costs = account::run(&AccountRequest { steps: vec![step], ..Default::default() })?;
//! assert!(costs.account.epsilon.pld.upper < 2.0);
//! # Ok::<(), leakscope::Failure>(())
//! ```
//!
//! # A network
//! ```
//! use leakscope_net::leak::{Measure, measure};
//! use leakscope_net::{Clip, Data, Network, Shape, preset::Preset};
//!
//! let input = Shape::Vector([4]);
//! let net = Network::<f64>::new(Preset::Linear.spec(input, 3), 1)?;
//! let x: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 11) / 11.0).collect();
//! let y: Vec<f64> = (0..30).map(|i| f64::from(u8::from(i % 3 == i / 3 % 3))).collect();
//! let data = Data::new(input, x, 3, y)?;
//! let leaks = measure(&net, &data, &[0, 1, 2], &Measure::new(Clip::Hard { bound: 1.0 }, 1.0, 7))?;
//! assert!(leaks.iter().all(|leak| leak.gradient_norm > 0.0));
//! # Ok::<(), leakscope_net::Error>(())
//! ```

pub mod account;
pub mod attack;
pub mod audit;
pub mod balance;
pub mod bound;
pub mod calibrate;
mod classes;
pub mod clock;
pub mod cluster;
pub mod coefficients;
pub mod compare;
pub mod failure;
mod labelled;
pub mod mechanism;
pub mod model;
pub mod net;
pub mod noise;
pub mod output;
pub mod release;
mod remarks;
pub mod request;
pub mod saving;
mod scaling;
pub mod seed;
pub mod spelling;
mod telling;
pub mod text;
pub mod unexpected;

pub use failure::{Failure, Result};
pub use spelling::Spelling;
