//! A comparison for other programmes: a table in Markdown, test cases for a pipeline, findings for a viewer of code.
//! None of them names a record or a value of the data: logs and comments have other readers than the owner of the data.

mod junit;
mod markdown;
mod sarif;

pub use junit::comparison_junit;
pub use markdown::comparison_markdown;
pub use sarif::comparison_sarif;
