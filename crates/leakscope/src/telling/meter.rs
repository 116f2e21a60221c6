//! What is left of a budget while questions are answered, and how far they are.

use super::budget::{Budget, Work};
use super::questions::Inquiry;
use leakscope_core::rows::Rows;
use leakscope_table::{Dataset, Stage};

/// Parts of an attribute that progress is shown in.
const PARTS: f64 = 100.0;

/// What is left of the budget while questions are answered, and how far they are.
pub(super) struct Meter<'a> {
    budget: Budget,
    work: &'a Work,
    pub(super) rows: &'a Dataset,
    work_left: f64,
    inquiries: u64,
    pub(super) answered: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(budget: Budget, work: &'a Work, rows: &'a Dataset, inquiries: &[Inquiry]) -> Self {
        let n = rows.len() as f64;
        let looks: f64 = inquiries.iter().map(|a| work.of(a.values.len(), n)).sum();
        let work_left = (budget.work() - looks).max(0.0);
        let meter = Self { budget, work, rows, work_left, inquiries: inquiries.len() as u64, answered: 0 };
        meter.report(0.0);
        meter
    }

    /// Records of the next question that are refitted at first, and at most: up to half of what is left, since most questions are
    /// settled by few, and the most exposed come first.
    pub(super) fn refits(&self, candidates: usize) -> [usize; 2] {
        let each = self.work.refit(candidates, self.rows.len() as f64).max(1.0);
        self.budget.refits(each, 0.5 * self.work_left)
    }

    /// One question was answered with so many refits.
    pub(super) fn spend(&mut self, candidates: usize, refitted: usize) {
        self.work_left -= refitted as f64 * self.work.refit(candidates, self.rows.len() as f64);
        self.work_left = self.work_left.max(0.0);
    }

    /// Shows how far this is: a share of the attribute that is being asked about.
    pub(super) fn report(&self, share: f64) {
        let done = PARTS * (self.answered as f64 + share.clamp(0.0, 1.0));
        self.rows.hooks().report(Stage::Tell, done as u64, PARTS as u64 * self.inquiries);
    }
}
