//! A target as models take it: its classes, what their coefficients are called, and what a unit of it is.

use leakscope_table::{Encoding, TargetCoding};

/// Own units of the target in one unit of its code: of two classes the whole switch is one.
pub(crate) fn target_unit(encoding: &Encoding) -> f64 {
    match &encoding.target.coding {
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => 1.0,
        TargetCoding::TwoClass { low, high } => 1.0 / (high.code - low.code),
        // η is by the switch between classes, √2 long; an indicator lies √(1 − 1/K) along what keeps their sum.
        TargetCoding::Classes(classes) => (2.0 - 2.0 / classes.len().max(2) as f64).sqrt(),
    }
}

/// Names of the classes of a target, in the order of their codes; none of a number.
pub(crate) fn class_names(encoding: &Encoding) -> Option<Vec<String>> {
    match &encoding.target.coding {
        TargetCoding::TwoClass { low, high } => Some(vec![low.name.clone(), high.name.clone()]),
        TargetCoding::Classes(classes) => Some(classes.iter().map(|c| c.name.clone()).collect()),
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => None,
    }
}

/// Names of the coefficients of a model: columns, or `class: column` where each class has a vector of its own.
pub(crate) fn coefficient_names(encoding: &Encoding) -> Vec<String> {
    let columns = encoding.columns();
    match &encoding.target.coding {
        TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive
        | TargetCoding::TwoClass { .. } => columns,
        TargetCoding::Classes(classes) => {
            let of_class = |class: &str| columns.iter().map(|column| format!("{class}: {column}")).collect();
            classes.iter().flat_map(|class| -> Vec<String> { of_class(&class.name) }).collect()
        }
    }
}

/// Whether a target is two coded classes.
pub(crate) fn two_class(encoding: &Encoding) -> bool {
    matches!(encoding.target.coding, TargetCoding::TwoClass { .. })
}

/// Number of classes that have a vector of coefficients each.
pub(crate) fn class_count(encoding: &Encoding) -> Option<usize> {
    match &encoding.target.coding {
        TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive
        | TargetCoding::TwoClass { .. } => None,
        TargetCoding::Classes(classes) => Some(classes.len()),
    }
}

/// Names of the coordinates that the factor of a covariance is about: the coefficients, or with K classes their K − 1 contrasts,
/// each class (from the second) against the mean of those before it, of length one.
pub(crate) fn contrast_names(encoding: &Encoding) -> Vec<String> {
    let columns = encoding.columns();
    match &encoding.target.coding {
        TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive
        | TargetCoding::TwoClass { .. } => columns,
        TargetCoding::Classes(classes) => {
            let names: Vec<&str> = classes.iter().map(|c| c.name.as_str()).collect();
            let against = |k: usize| match k {
                1 => format!("{} against {}", names[1], names[0]),
                2 => format!("{} against {} and {}", names[2], names[0], names[1]),
                _ => format!("{} against {} to {}", names[k], names[0], names[k - 1]),
            };
            let of = |k: usize| columns.iter().map(move |c| format!("{}: {c}", against(k)));
            (1..names.len()).flat_map(of).collect()
        }
    }
}
