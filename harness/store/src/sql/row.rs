//! The rows of an answer.

use muster_core::night::Night;
use sqlx::{ColumnIndex, Error, Row as _, postgres::PgRow, sqlite::SqliteRow};

/// A row of either database.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// The value of a column, by its name or its position.
    pub(crate) fn try_get<'r, T: FromColumn<'r>>(&'r self, column: impl Column) -> Result<T, Error> {
        T::from_column(self, column)
    }
}

/// What names a column.
pub(crate) trait Column: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> + Copy {}

impl<T: ColumnIndex<SqliteRow> + ColumnIndex<PgRow> + Copy> Column for T {}

/// What a column can be read as. Numbers are 64 bits wide in both databases.
pub(crate) trait FromColumn<'r>: Sized {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error>;
}

macro_rules! as_it_is {
    ($($type:ty),*) => {
        $(impl<'r> FromColumn<'r> for $type {
            fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
                match row {
                    Row::Sqlite(row) => row.try_get(column),
                    Row::Postgres(row) => row.try_get(column),
                }
            }
        })*
    };
}

as_it_is!(i64, Option<i64>, f64, Option<f64>, String, Option<String>, &'r str, Option<&'r str>, &'r [u8]);

impl<'r> FromColumn<'r> for Night {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
        i64::from_column(row, column).map(Self::of_days)
    }
}

impl<'r> FromColumn<'r> for Option<Night> {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
        Ok(Option::<i64>::from_column(row, column)?.map(Night::of_days))
    }
}

impl<'r> FromColumn<'r> for bool {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
        i64::from_column(row, column).map(|number| number != 0)
    }
}

impl<'r> FromColumn<'r> for u32 {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
        u32::try_from(i64::from_column(row, column)?).map_err(|cause| Error::Decode(cause.into()))
    }
}

impl<'r> FromColumn<'r> for Option<u32> {
    fn from_column(row: &'r Row, column: impl Column) -> Result<Self, Error> {
        let number = Option::<i64>::from_column(row, column)?;
        number.map(u32::try_from).transpose().map_err(|cause| Error::Decode(cause.into()))
    }
}
