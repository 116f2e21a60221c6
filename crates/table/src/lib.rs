//! CSV and Parquet to encoded blocks of rows.
