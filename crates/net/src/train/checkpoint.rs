//! Checkpoints: everything a run needs to go on as if it had not stopped, under a seal that shows any changed byte.
//!
//! The seal is the SHA-256 of the whole file, kept in its own metadata: it is taken with zeros in its place, so that the
//! file stays one that every reader of the format can open.

use super::{TrainConfig, Trainer, filter::Spending, key::Source, track::Tracker};
use crate::{
    Data, NetSpec, Network, Real,
    error::{Error, Result, check_finite, check_len},
    io::{FILE_VERSION, Tensors},
    perturb::Carried,
};
use sha2::{Digest, Sha256};

const FORMAT: &str = "leakscope-net-checkpoint";
const FIRST_LOSS: &str = "first-loss";
/// How gradients are perturbed, by which public records, and the last perturbation.
const PERTURBED: &str = "perturbed";
/// What that was learned as.
const PERTURBATION: &str = "perturbation";
/// Steps that were made and seen, where the run was taken back from them.
const SEEN: &str = "seen";
/// Records whose accounts are not known, as 1.
const UNKNOWN: &str = "account.unknown";
const SEAL: &str = "sha256";
/// What stands in the place of the seal while it is taken: as many digits, none of them telling.
const UNSEALED: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The secret that sampling and noise follow from: whoever has the checkpoint can take the noise off.
const KEY: &str = "secret-key";

fn bad(reason: impl Into<String>) -> Error {
    Error::Format { subject: "the checkpoint", reason: reason.into() }
}

impl<'d, T: Real> Trainer<'d, T> {
    /// The state of the run as a file's bytes. Write them with [`crate::io::write_private`].
    pub fn checkpoint(&self) -> Result<Vec<u8>> {
        self.checkpoint_with(&[])
    }

    /// The same with entries of the caller's own in the file's metadata, under the same seal.
    pub fn checkpoint_with(&self, entries: &[(&str, String)]) -> Result<Vec<u8>> {
        let mut file = self.network().to_tensors()?;
        entries.iter().for_each(|(name, value)| _ = file.metadata.insert((*name).to_owned(), value.clone()));
        let json = |v: std::result::Result<String, serde_json::Error>| v.map_err(|e| bad(e.to_string()));
        for (name, value) in [
            ("format", FORMAT.to_owned()),
            ("version", FILE_VERSION.to_string()),
            ("step", self.step.to_string()),
            ("precision", T::DTYPE.to_owned()),
            ("config", json(serde_json::to_string(&self.config))?),
            ("network", json(serde_json::to_string(self.network().spec()))?),
            ("data", fingerprint(self.data).to_string()),
        ] {
            file.metadata.insert(name.to_owned(), value);
        }
        if let Some(key) = self.source.to_hex() {
            file.metadata.insert(KEY.to_owned(), key);
        }
        if self.released_steps() > self.step {
            file.metadata.insert(SEEN.to_owned(), self.released_steps().to_string());
        }
        if let Some(loss) = self.first_loss {
            file.metadata.insert(FIRST_LOSS.to_owned(), loss.to_string());
        }
        let perturbing = self.perturbing.map(|(how, public)| (how, fingerprint(public)));
        if let Some((how, public)) = perturbing.or(self.perturbed_before) {
            let state = json(serde_json::to_string(&(how, public.to_string(), self.perturbed)))?;
            file.metadata.insert(PERTURBED.to_owned(), state);
        }
        let perturbation = self.perturbation.values(&self.workers)?;
        if !perturbation.is_empty() {
            file.insert(PERTURBATION, &[perturbation.len()], &perturbation);
        }
        for (i, m) in self.moments.iter().enumerate() {
            let values = self.workers.with(|dev| dev.download(m))?;
            file.insert(&format!("moment.{i}"), &[m.len()], &values);
        }
        if let Some(t) = &self.tracker {
            let t = self.workers.with(|dev| t.current(dev))?;
            for (name, values) in accounts(&t) {
                file.insert(name, &[values.len()], values);
            }
            if t.unknown.contains(&true) {
                let unknown: Vec<f64> = t.unknown.iter().map(|u| f64::from(u8::from(*u))).collect();
                file.insert(UNKNOWN, &[unknown.len()], &unknown);
            }
        }
        if let Some(s) = &self.spending {
            // a record that takes part has no step before which it dropped out: −1
            let dropped: Vec<f64> = s.dropped.iter().map(|d| if d.is_finite() { *d } else { -1.0 }).collect();
            file.insert("filter.spent", &[s.spent.len()], &s.spent);
            file.insert("filter.dropped", &[dropped.len()], &dropped);
        }
        sealed(file)
    }

    /// Goes on from a checkpoint, over the same data with the same settings; anything else is refused.
    pub fn resume(bytes: &[u8], data: &'d Data<T>, config: TrainConfig) -> Result<Self> {
        let file = Tensors::from_bytes(bytes)?;
        let field = |name: &str| file.metadata.get(name).ok_or_else(|| bad(format!("it has no {name}")));
        if field("format")? != FORMAT {
            return Err(bad("it holds weights, not a run: load them into a network instead"));
        }
        check_seal(bytes, field(SEAL)?)?;
        field("version")?;
        // before the data, whose values differ in another precision
        if field("precision")? != T::DTYPE {
            return Err(Error::OtherRun { setting: "precision" });
        }
        let stored: TrainConfig = serde_json::from_str(field("config")?).map_err(|e| bad(e.to_string()))?;
        if let Some(setting) = differs(&stored, &config) {
            return Err(Error::OtherRun { setting });
        }
        if *field("data")? != fingerprint(data).to_string() {
            return Err(Error::OtherRun { setting: "data set" });
        }
        let mut net = Network::new(NetSpec::from_json(field("network")?)?, 0)?;
        net.load_tensors(&file)?;
        let mut run = Self::new(net, data, config)?;
        run.step = field("step")?.parse().map_err(|_| bad("its step is no number"))?;
        let seen = file.metadata.get(SEEN).map(|v| v.parse::<u64>()).transpose();
        run.seen = seen.map_err(|_| bad("its number of seen steps is no number"))?.unwrap_or(0);
        if matches!(run.source, Source::Key(_)) {
            run.source = Source::from_hex(field(KEY)?).ok_or_else(|| bad("its key is damaged"))?;
        }
        let loss = file.metadata.get(FIRST_LOSS).map(|v| v.parse::<f64>()).transpose();
        run.first_loss = loss.map_err(|_| bad("its first loss is no number"))?;
        if let Some(text) = file.metadata.get(PERTURBED) {
            let (how, public, last): (_, String, _) =
                serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
            let public = public.parse().map_err(|_| bad("its public records have no fingerprint"))?;
            (run.perturbed_before, run.perturbed) = (Some((how, public)), last);
            if file.has(PERTURBATION) {
                let values = file.get::<f64>(PERTURBATION)?.1;
                check_finite("the perturbation of the checkpoint", &values)?;
                run.perturbation = Carried::of(values);
            }
        }
        for (i, m) in run.moments.iter_mut().enumerate() {
            let values = file.get::<T>(&format!("moment.{i}"))?.1;
            check_len("a moment of the checkpoint", values.len(), m.len())?;
            check_finite("a moment of the checkpoint", &values)?;
            run.workers.with(|dev| dev.write(m, &values));
        }
        if let Some(tracker) = &mut run.tracker {
            restore_accounts(tracker, &file)?;
        }
        if let Some(spending) = &mut run.spending {
            restore_filter(spending, &file)?;
        }
        Ok(run)
    }
}

/// An array of a checkpoint, as long as what it is for.
fn stored(file: &Tensors, name: &str, subject: &'static str, expected: usize) -> Result<Vec<f64>> {
    let values = file.get::<f64>(name)?.1;
    check_len(subject, values.len(), expected)?;
    check_finite(subject, &values)?;
    Ok(values)
}

fn restore_accounts(t: &mut Tracker, file: &Tensors) -> Result<()> {
    const SUBJECT: &str = "an account of the checkpoint";
    let all = [
        ("account.measured", &mut t.measured),
        ("account.trace", &mut t.trace),
        ("account.square", &mut t.square),
        ("account.probes", &mut t.probes),
        ("account.plain", &mut t.plain),
        ("account.plain-square", &mut t.plain_square),
        ("account.plain-probes", &mut t.plain_probes),
        ("account.renyi", &mut t.renyi),
    ];
    for (name, values) in all {
        *values = stored(file, name, SUBJECT, values.len())?;
    }
    if file.has(UNKNOWN) {
        let unknown = stored(file, UNKNOWN, SUBJECT, t.unknown.len())?;
        t.unknown = unknown.iter().map(|u| *u != 0.0).collect();
    }
    Ok(())
}

fn restore_filter(s: &mut Spending, file: &Tensors) -> Result<()> {
    for (name, values) in [("filter.spent", &mut s.spent), ("filter.dropped", &mut s.dropped)] {
        *values = stored(file, name, "the filter of the checkpoint", values.len())?;
    }
    s.dropped.iter_mut().filter(|d| **d < 0.0).for_each(|d| *d = f64::INFINITY);
    Ok(())
}

/// The bytes of a file with their seal in its metadata.
fn sealed(mut file: Tensors) -> Result<Vec<u8>> {
    file.metadata.insert(SEAL.to_owned(), UNSEALED.to_owned());
    let seal = digest(&file.to_bytes()?);
    file.metadata.insert(SEAL.to_owned(), seal);
    file.to_bytes()
}

/// Refuses bytes that are not those the seal was taken of.
fn check_seal(bytes: &[u8], seal: &str) -> Result<()> {
    let damaged = || bad("it is damaged: its bytes are not those that were written; start from an older one");
    let mut unsealed = bytes.to_vec();
    let at = bytes.windows(UNSEALED.len()).position(|w| w == seal.as_bytes()).ok_or_else(damaged)?;
    unsealed[at..at + UNSEALED.len()].copy_from_slice(UNSEALED.as_bytes());
    if digest(&unsealed) == seal { Ok(()) } else { Err(damaged()) }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The first setting that is another one, in words.
fn differs(a: &TrainConfig, b: &TrainConfig) -> Option<&'static str> {
    let of = |c: &TrainConfig| c.privacy.map(|p| (p.clip, p.sigma)).unzip();
    let ((clip_a, sigma_a), (clip_b, sigma_b)) = (of(a), of(b));
    let all = [
        (a.seed == b.seed, "seed"),
        (a.optimizer == b.optimizer, "optimiser or momentum"),
        (a.learning_rate == b.learning_rate, "learning rate"),
        (a.weight_decay == b.weight_decay, "weight decay"),
        (a.sampling == b.sampling, "sampling or batch size"),
        (clip_a == clip_b, "clip"),
        (sigma_a == sigma_b, "noise (sigma)"),
        (a.tracking == b.tracking, "way of keeping accounts"),
        (a.label == b.label, "secret (label)"),
        (a.delta == b.delta, "delta"),
        (a.randomness == b.randomness, "source of noise"),
        (a.divisor == b.divisor, "divisor"),
        (a.filter == b.filter, "filter"),
        (a == b, "configuration"),
    ];
    all.into_iter().find(|(same, _)| !same).map(|(_, setting)| setting)
}

fn accounts(t: &super::track::Tracker) -> [(&'static str, &[f64]); 8] {
    [
        ("account.measured", &t.measured),
        ("account.trace", &t.trace),
        ("account.square", &t.square),
        ("account.probes", &t.probes),
        ("account.plain", &t.plain),
        ("account.plain-square", &t.plain_square),
        ("account.plain-probes", &t.plain_probes),
        ("account.renyi", &t.renyi),
    ]
}

/// Tells data sets apart (FNV-1a over shape, records and labels); no secret and no defence.
pub(super) fn fingerprint<T: Real>(data: &Data<T>) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |v: u64| h = (h ^ v).wrapping_mul(0x0000_0100_0000_01b3);
    data.input().dims().into_iter().for_each(|d| eat(d as u64));
    for i in 0..data.len() {
        data.record_tokens(i).iter().for_each(|&t| eat(u64::from(t)));
        data.record(i).iter().for_each(|v| eat(v.to_f64().to_bits()));
        match data.label_classes(i).filter(|classes| classes.len() > 1) {
            Some(classes) => classes.iter().for_each(|&c| eat(u64::from(c))),
            None => data.label(i).iter().for_each(|v| eat(v.to_f64().to_bits())),
        }
    }
    // who belongs together; nothing where each record is on its own
    for unit in data.members().unwrap_or_default() {
        eat(unit.len() as u64);
        unit.iter().for_each(|&i| eat(i as u64));
    }
    h
}
