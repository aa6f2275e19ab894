//! The columns of a table: each node finds what its files have in common, and one what all nodes
//! have.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use tonnage_formats::types::{read_schema, write_schema};
use tonnage_pipeline::RunHandle;

use crate::error::JobError;
use crate::tables::format::{self, FormatConfig};
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::input::table_schema::{FileSchema, FolderColumns, WantedColumns, common_schema};

/// The files to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The files.
    pub files: Vec<TableFileConfig>,
    /// Their format, and what their rows are sorted by.
    pub format: FormatConfig,
}

/// What nodes have found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonConfig {
    /// The nodes that have files.
    pub nodes: Vec<String>,
    /// What each has found.
    pub schemas: Vec<String>,
    /// Columns that are read as these types, if any.
    pub declared: Option<String>,
}

/// Columns.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Those that are kept, as the format's configuration has them; none if it has no types.
    pub schema: Option<String>,
}

/// Finds what a node's files have in common.
///
/// # Errors
/// When one cannot be read, or they cannot be sorted like this.
pub fn run(config: &Config, _handle: &RunHandle) -> Result<Outcome, JobError> {
    let files = TableFile::find(&config.files, &ObjectFiles::default())?;
    let table = format::open(&config.format, &files, false)?;
    outcome(table.schema())
}

/// Finds what the files of all nodes have in common.
///
/// # Errors
/// When their types have no type in common.
pub fn run_common(config: &CommonConfig, _handle: &RunHandle) -> Result<Outcome, JobError> {
    let read = |text: &String| read_schema(text).map(Arc::new);
    let schemas = config
        .schemas
        .iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>();
    let schemas = schemas.map_err(|why| JobError::failure(why.to_string()))?;
    let names: Vec<String> = config
        .nodes
        .iter()
        .map(|node| format!("on {node}"))
        .collect();
    let folders = FolderColumns::new();
    let files: Vec<FileSchema<'_>> = names
        .iter()
        .zip(&schemas)
        .map(|(name, schema)| FileSchema {
            name,
            schema,
            folders: &folders,
        })
        .collect();
    let wanted = WantedColumns::new(None, config.declared.as_deref(), None)?;
    outcome(Some(&common_schema(&files, &wanted)?))
}

fn outcome(schema: Option<&SchemaRef>) -> Result<Outcome, JobError> {
    let schema = schema.map(|schema| write_schema(schema)).transpose();
    Ok(Outcome {
        schema: schema.map_err(|why| JobError::failure(why.to_string()))?,
    })
}
