//! Sequences of different lengths, and records that belong together.

use super::{Data, Labels, NO_LABEL, Records, check_classes};
use crate::{
    Real, Shape,
    error::{Error, Result, check_len},
};

/// A sequence: its tokens, and a class for each of them.
type Labelled<'a> = (&'a [u32], &'a [u32]);

impl<T: Real> Data<T> {
    /// Sequences of tokens, each with a class at every position, of any lengths: shorter ones are padded behind their end,
    /// where no label counts. A network that reads nothing behind a position gives each the loss and the gradient that it
    /// has alone; [`Data::check`] refuses others.
    pub fn sequences(sequences: &[Labelled<'_>], outputs: usize) -> Result<Self> {
        let lengths: Vec<usize> = sequences.iter().map(|(tokens, _)| tokens.len()).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 || lengths.contains(&0) || outputs < 2 {
            return Err(Error::Empty);
        }
        let (mut tokens, mut classes) = (Vec::new(), Vec::new());
        for (own, labels) in sequences {
            check_len("the labels of a sequence", labels.len(), own.len())?;
            let padding = longest - own.len();
            tokens.extend_from_slice(own);
            classes.extend_from_slice(labels);
            // any token will do: nothing comes back from it
            tokens.extend(std::iter::repeat_n(0, padding));
            classes.extend(std::iter::repeat_n(NO_LABEL, padding));
        }
        check_classes(&classes, outputs, longest)?;
        let padded = lengths.iter().any(|l| *l < longest);
        Ok(Self {
            input: Shape::Tokens { tokens: longest },
            outputs,
            places: longest,
            x: Records::Tokens(tokens),
            y: Labels::Classes(classes),
            lengths: padded.then_some(lengths),
            units: None,
            resident: super::Resident::default(),
        })
    }

    /// The same records, of which those of a unit belong together: training draws all or none of them, and clips the mean of
    /// their gradients as one.
    ///
    /// # Errors
    /// A unit without records, and records that are in no unit or in two.
    pub fn grouped(self, units: Vec<Vec<usize>>) -> Result<Self> {
        let mut seen = vec![0_usize; self.len()];
        self.check_records(&units.concat())?;
        units.iter().flatten().for_each(|&i| seen[i] += 1);
        let reason = match (units.iter().any(Vec::is_empty), seen.iter().position(|s| *s != 1)) {
            (true, _) => Some("a unit has no records".to_owned()),
            (false, Some(i)) => Some(format!("record {i} is in {} units: expected one", seen[i])),
            (false, None) => None,
        };
        match reason {
            Some(reason) => Err(Error::Format { subject: "the units", reason }),
            None => Ok(Self { units: Some(units), ..self }),
        }
    }

    /// How many can be drawn and clipped, each on its own: records, or what they were grouped into.
    pub fn units(&self) -> usize {
        self.units.as_ref().map_or(self.len(), Vec::len)
    }

    /// The records of every unit; absent where each record is one.
    pub fn members(&self) -> Option<&[Vec<usize>]> {
        self.units.as_deref()
    }

    /// Positions of record `i`, without padding.
    pub fn length_of(&self, i: usize) -> usize {
        self.lengths.as_ref().map_or_else(|| self.input.length(), |all| all[i])
    }

    /// Positions of the longest of some records.
    pub(super) fn longest(&self, records: &[usize]) -> usize {
        match &self.lengths {
            None => self.input.length(),
            Some(all) => records.iter().map(|&i| all[i]).max().unwrap_or(0),
        }
    }

    /// Puts records of like lengths together; as they are where all have one length, or several are a unit.
    pub(crate) fn by_length(&self, records: &mut [usize]) {
        if let (Some(all), None) = (&self.lengths, &self.units) {
            records.sort_by_key(|&i| (all[i], i));
        }
    }

    /// Refuses sequences that are padded, for what speaks of every position.
    pub(crate) fn check_even(&self) -> Result<()> {
        match self.lengths {
            None => Ok(()),
            Some(_) => {
                let reason =
                    "sequences have different lengths: take those of one length at a time".to_owned();
                Err(Error::Format { subject: "the records", reason })
            }
        }
    }

    /// Checks the numbers of units.
    pub(crate) fn check_units(&self, units: &[usize]) -> Result<()> {
        match units.iter().find(|u| **u >= self.units()) {
            None => Ok(()),
            Some(&u) => Err(Error::OutOfRange {
                subject: "a unit's number",
                value: u as f64,
                expected: "below the number of units",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_sequences_are_padded_without_labels() {
        let data = Data::<f64>::sequences(&[(&[1, 2, 3], &[2, 3, 4]), (&[4], &[0])], 5).unwrap();
        assert_eq!((data.len(), data.places(), data.length_of(0), data.length_of(1)), (2, 3, 3, 1));
        assert_eq!(data.label_classes(1).unwrap(), &[0, NO_LABEL, NO_LABEL]);
        assert_eq!((data.longest(&[1]), data.longest(&[0, 1])), (1, 3));
        let mut order = [0, 1];
        data.by_length(&mut order);
        assert_eq!(order, [1, 0]);
        let even = Data::<f64>::sequences(&[(&[1], &[2]), (&[4], &[0])], 5).unwrap();
        assert!(even.lengths.is_none());
        assert!(Data::<f64>::sequences(&[(&[1], &[2]), (&[], &[])], 5).is_err());
        assert!(Data::<f64>::sequences(&[(&[1], &[5])], 5).is_err());
        assert!(Data::<f64>::sequences(&[(&[1, 2], &[2])], 5).is_err());
        assert!(Data::<f64>::sequences(&[], 5).is_err());
    }

    #[test]
    fn units_share_out_all_records() {
        let data = || Data::<f64>::sequences(&[(&[1], &[2]), (&[4], &[0]), (&[3], &[0])], 5).unwrap();
        assert_eq!(data().units(), 3);
        let grouped = data().grouped(vec![vec![2, 0], vec![1]]).unwrap();
        assert_eq!((grouped.units(), grouped.len()), (2, 3));
        for (units, says) in [
            (vec![vec![0, 1]], "record 2 is in 0 units"),
            (vec![vec![0, 1], vec![1, 2]], "record 1 is in 2 units"),
            (vec![vec![0, 1, 2], vec![]], "no records"),
            (vec![vec![0, 1, 2, 3]], "record number"),
        ] {
            let error = data().grouped(units).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
