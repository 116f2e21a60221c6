//! How numbers that may be without bound (a record that leaks nothing, a deviance that overflows) are written. JSON has
//! no infinity: it is written as `null` and read back as +∞.

/// A plain number.
pub(crate) mod number {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(x: &f64, s: S) -> Result<S::Ok, S::Error> {
        x.is_finite().then_some(*x).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::INFINITY))
    }
}

/// A [`Bound`] whose value may be without bound, written with all that it rests on.
pub(crate) mod claim {
    use leakscope_core::claim::{Bound, Direction, Theorem};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A number proved for every attacker of a stated kind, or none.
    #[derive(Serialize, Deserialize)]
    struct Written {
        /// The bound, rounded to the safe side.
        #[serde(with = "super::number")]
        value: f64,
        /// Which side of the truth it lies on.
        direction: Direction,
        /// What it rests on.
        theorem: Theorem,
    }

    pub(crate) fn serialize<S: Serializer>(bound: &Bound, s: S) -> Result<S::Ok, S::Error> {
        let &Bound { value, direction, theorem } = bound;
        Written { value, direction, theorem }.serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bound, D::Error> {
        let Written { value, direction, theorem } = Written::deserialize(d)?;
        Ok(Bound { value, direction, theorem })
    }
}

/// `min_sd` is a plain number in the JSON; in Rust it stays a bound.
pub(crate) mod plain_cramer_rao {
    use leakscope_core::claim::{Bound, Direction, Theorem};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bound: &Bound, s: S) -> Result<S::Ok, S::Error> {
        super::number::serialize(&bound.value, s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Bound, D::Error> {
        let value = super::number::deserialize(d)?;
        Ok(Bound { value, direction: Direction::AtLeast, theorem: Theorem::CramerRao })
    }
}
