//! Columns that are read in one format, and written in one.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema, SchemaRef};
use tonnage_formats::types::name_of;
use tonnage_stages::sink::RowSample;
use tonnage_stages::work::RowEncoding;
use tonnage_tables::{ColumnOrder, RowLayout, RowShape, TableError};

use crate::error::{JobError, setting_error};
use crate::tables::columns::column_rows::ColumnRows;
use crate::tables::columns::output::{ColumnFiles, ColumnOutput};
use crate::tables::columns::output_columns::OutputColumns;
use crate::tables::folders::folder_columns::FolderColumns;
use crate::tables::input::table::{Table, TableSplit};
use crate::tables::table_format::{SplitRows, TableFormat, scaled};

/// Of the rows, so many are in sampled splits of keys: one in 16.
const SAMPLED_SHARE: u64 = 16;
/// The most sampled splits of keys.
const MOST_SAMPLED: usize = 4096;

/// Files that rows of columns are made of.
pub trait ColumnInput: Sized {
    /// The columns.
    fn schema(&self) -> &SchemaRef;

    /// The same with these columns only, if they can be read alone.
    fn narrowed(&self, schema: &SchemaRef) -> Result<Option<Self>, JobError>;

    /// Some splits of about so many bytes, spread evenly.
    fn sample(
        &self,
        layout: &Arc<RowLayout>,
        splits: usize,
        bytes: usize,
    ) -> Result<SplitRows, JobError>;

    /// All splits, of at most about `split_bytes`; a row has `row_bytes` at most.
    fn all(
        &self,
        layout: &Arc<RowLayout>,
        split_bytes: usize,
        row_bytes: usize,
    ) -> Result<SplitRows, JobError>;

    /// About how many bytes all rows have.
    fn rows_bytes(&self, sample: &RowSample) -> u64;

    /// How many of these bytes, which sampling told, there are at least.
    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        rows_bytes
    }

    /// How many bytes compressed files of all columns have at least, about: as many as the input, if
    /// that is packed as they are.
    fn least_compressed_bytes(&self) -> u64 {
        0
    }

    /// How many rows there are, if the files tell.
    fn rows(&self) -> Option<u64>;
}

/// Columns, and the order of their rows.
pub struct ColumnTable<I> {
    input: I,
    layout: Arc<RowLayout>,
    keys: Option<(I, Arc<RowLayout>)>, // the input with nothing but keys
    folders: Option<FolderColumns>,
    output: ColumnOutput,
}

impl<I: ColumnInput> ColumnTable<I> {
    /// Rows of these files in this order, whose first columns may be folders.
    ///
    /// # Errors
    /// A column that is missing, or that rows or the output cannot have.
    pub fn new(
        input: I,
        output: ColumnFiles,
        order: &[ColumnOrder],
        is_stable: bool,
    ) -> Result<Self, JobError> {
        let layout = |schema: &SchemaRef| RowLayout::new(schema, order, is_stable).map(Arc::new);
        let keys = key_columns(input.schema(), order);
        let key_layout = layout(&keys);
        let layout = layout(input.schema()).map_err(|why| {
            let mut in_folders = order[..output.folder_columns].iter();
            let is_folder = in_folders.any(|each| input.schema().index_of(&each.name).is_err());
            refusal(why, if is_folder { "partition_by" } else { "by" })
        })?;
        let keys = match key_layout {
            Ok(key_layout) => input.narrowed(&keys)?.map(|input| (input, key_layout)),
            Err(_) => None,
        };
        let folders = FolderColumns::new(&layout, output.folder_columns)?;
        let in_folders = folders.as_ref().map_or(Vec::new(), FolderColumns::places);
        let columns = OutputColumns::new(&layout, &in_folders)?;
        let order = &order[output.folder_columns..];
        Ok(Self {
            input,
            layout,
            keys,
            folders,
            output: ColumnOutput::new(output, columns, order)?,
        })
    }
}

/// Why rows cannot have these columns in this order, with types as `--schema` names them.
fn refusal(why: TableError, order: &'static str) -> JobError {
    match why {
        TableError::Unordered { name, data_type } => {
            let data_type = name_of(&data_type);
            let why = format!("values of type {data_type} have no order here");
            setting_error(
                order,
                format!("the column {name:?} cannot be a sort key: {why}"),
            )
        }
        TableError::Unsupported { name, data_type } => {
            let data_type = name_of(&data_type);
            let why = format!("its type {data_type} is not supported; leave it out");
            setting_error(
                "columns",
                format!("the column {name:?} cannot be sorted along: {why}"),
            )
        }
        other => setting_error(order, other.to_string()),
    }
}

/// The columns that rows are sorted by, or by a field of.
fn key_columns(schema: &SchemaRef, order: &[ColumnOrder]) -> SchemaRef {
    let is_of = |field: &str, key: &str| {
        let behind = key.strip_prefix(field);
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('.'))
    };
    let is_key = |field: &&FieldRef| order.iter().any(|key| is_of(field.name(), &key.name));
    let keys: Vec<FieldRef> = schema.fields().iter().filter(is_key).cloned().collect();
    Arc::new(Schema::new(keys))
}

impl<I: ColumnInput> TableFormat for ColumnTable<I> {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn sample(&self, splits: usize, bytes: usize) -> Result<SplitRows, JobError> {
        self.input.sample(&self.layout, splits, bytes)
    }

    fn sample_keys(&self, splits: usize, bytes: usize) -> Result<Option<SplitRows>, JobError> {
        let Some((input, layout)) = &self.keys else {
            return Ok(None);
        };
        // One tells how long they are.
        let one = input.sample(layout, 1, bytes)?.count.unwrap_or(0).max(1);
        let share = input.rows().unwrap_or(0) / SAMPLED_SHARE / one;
        let share = usize::try_from(share).unwrap_or(MOST_SAMPLED);
        let count = share.min(MOST_SAMPLED).max(splits);
        Ok(Some(input.sample(layout, count, bytes)?))
    }

    fn all(&self, split_bytes: usize, row_bytes: usize) -> Result<SplitRows, JobError> {
        self.input.all(&self.layout, split_bytes, row_bytes)
    }

    fn rows_bytes(&self, sample: &RowSample) -> u64 {
        self.input.rows_bytes(sample)
    }

    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        self.input.least_bytes(rows_bytes)
    }

    fn least_output_bytes(&self, rows_bytes: u64) -> u64 {
        match self.output.is_compressed() {
            false => rows_bytes,
            true => rows_bytes.min(self.input.least_compressed_bytes()),
        }
    }

    fn rows(&self) -> Option<u64> {
        self.input.rows()
    }

    fn encoding(&self, group_bytes: usize) -> Arc<dyn RowEncoding> {
        self.output.encoding(group_bytes)
    }

    fn folders(&self) -> Option<&FolderColumns> {
        self.folders.as_ref()
    }

    fn suffix(&self) -> String {
        self.output.suffix()
    }

    fn empty_file(&self) -> Result<Vec<u8>, JobError> {
        let file = self.output.empty_file();
        file.map_err(|why| JobError::failure(why.to_string()))
    }
}

impl ColumnInput for Arc<Table> {
    fn schema(&self) -> &SchemaRef {
        Table::schema(self)
    }

    fn narrowed(&self, schema: &SchemaRef) -> Result<Option<Self>, JobError> {
        Ok(Table::narrowed(self, schema)?.map(Arc::new))
    }

    fn sample(
        &self,
        layout: &Arc<RowLayout>,
        splits: usize,
        bytes: usize,
    ) -> Result<SplitRows, JobError> {
        let splits = Table::sample(self, splits, bytes as u64)?;
        Ok(split_rows(self, layout, splits))
    }

    fn all(
        &self,
        layout: &Arc<RowLayout>,
        split_bytes: usize,
        _row_bytes: usize,
    ) -> Result<SplitRows, JobError> {
        let splits = self.splits(split_bytes as u64)?;
        Ok(split_rows(self, layout, splits))
    }

    fn rows_bytes(&self, sample: &RowSample) -> u64 {
        scaled(sample.bytes, Table::rows(self), sample.rows)
    }

    fn least_compressed_bytes(&self) -> u64 {
        Table::bytes(self)
    }

    fn rows(&self) -> Option<u64> {
        Some(Table::rows(self))
    }
}

fn split_rows(table: &Arc<Table>, layout: &Arc<RowLayout>, splits: Vec<TableSplit>) -> SplitRows {
    let rows = ColumnRows::new(table, layout, splits);
    SplitRows {
        extents: rows.extents(),
        count: Some(rows.count()),
        rows: Arc::new(rows),
    }
}
