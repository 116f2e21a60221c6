//! Records one by one, for the page alone: they are never part of a document.

/// What a page of an audit shows besides its document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// Its records one by one.
    pub records: Option<Explore>,
    /// The command that made it.
    pub command: Option<String>,
    /// The command that releases what it is of, but for its noise and its folder.
    pub release: Option<String>,
    /// A fingerprint of the data under a key that its owner keeps: who has no key cannot try data against it.
    pub fingerprint: Option<String>,
}

/// Attributes of each record that a page has room for, most exposed first; the label comes besides.
pub const ATTRIBUTES: usize = 50;

/// Records of an audit as columns: all of them, or a sample with the most and the least exposed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explore {
    /// Records that there are in all.
    pub rows: u64,
    /// What records are called.
    pub ids: Vec<String>,
    /// The class or group of each; empty where there are none.
    pub series: Vec<String>,
    /// η of each.
    pub eta: Vec<f64>,
    /// dFIL.
    pub dfil: Vec<f64>,
    /// Loss.
    pub loss: Vec<f64>,
    /// Norm of the gradient.
    pub gradient_norm: Vec<f64>,
    /// η of attributes, by their names as in the audit, and of a secret label.
    pub attributes: Vec<(String, Vec<f64>)>,
    /// Attributes that are not here, less exposed than those that are.
    pub left_out: usize,
}

impl Explore {
    /// How many records are here.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}
