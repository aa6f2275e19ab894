//! The columns of a table: each node tells which its files have, and one joins what all nodes tell.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use tonnage_formats::FormatError;
use tonnage_formats::types::{read_schema, write_schema};
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;

use crate::error::{JobError, usage_error};
use crate::objects::object_input::{access, default_requests};
use crate::tables::columns::column_file::{ColumnFile, ColumnFormat};
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::input::table_schema::{FileSchema, FolderColumns, WantedColumns, common_schema};
use crate::tables::memory;

/// The files to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The files.
    pub files: Vec<TableFileConfig>,
    /// Their format.
    pub input: ColumnFormat,
    /// Concurrent requests to an object store.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// What files have.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The first file with each schema and folders.
    pub schemas: Vec<NamedSchema>,
    /// Requests to object stores.
    pub requests: RequestCounts,
}

/// A schema that files have.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSchema {
    /// One of the files.
    pub file: String,
    /// A schema's IPC message in Base64.
    pub schema: String,
    /// Columns by the file's folders.
    pub folders: FolderColumns,
}

/// What nodes have told.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonConfig {
    /// Schemas of all files, the first file's first; none if the format has no types.
    pub schemas: Vec<NamedSchema>,
    /// The columns to keep, in this order; all by default.
    pub columns: Option<Vec<String>>,
    /// Columns that are read as these types, if any.
    pub declared: Option<String>,
    /// Memory of a node.
    pub memory_bytes: usize,
    /// The most threads of a node.
    pub workers: usize,
    /// Concurrent requests of a node to an object store, if the input is there; else none.
    pub downloads: usize,
}

/// How all nodes read files.
#[derive(Clone, Debug, Serialize)]
pub struct CommonOutcome {
    /// The columns, as the format's configuration has them; none if there are no types.
    pub schema: Option<String>,
    /// Bytes of what is read at once.
    pub split_bytes: usize,
}

/// Finds which columns a node's files have.
///
/// # Errors
/// When one cannot be read.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let access = access(config.requests)?;
    let files = TableFile::find(&config.files, &ObjectFiles::new(&access, handle))?;
    let schemas = TableFile::map(&files, |file| {
        let opened = file.open().map_err(|why| file.read_error(&why))?;
        match ColumnFile::open(config.input, opened) {
            Ok(opened) => Ok(Arc::clone(opened.schema())),
            Err(FormatError::Io(why)) => Err(file.read_error(&why)),
            Err(why) => Err(usage_error(format!("input {}: {why}", file.name()))),
        }
    })?;
    let mut found: Vec<(&TableFile, SchemaRef)> = Vec::new();
    for (file, schema) in files.iter().zip(schemas) {
        let is_same =
            |known: &(&TableFile, SchemaRef)| known.1 == schema && known.0.folders == file.folders;
        if !found.iter().any(is_same) {
            found.push((file, schema));
        }
    }
    let named = found.into_iter().map(|(file, schema)| {
        let schema = write_schema(&schema);
        let schema = schema.map_err(|why| usage_error(format!("input {}: {why}", file.name())))?;
        Ok(NamedSchema {
            file: file.name(),
            schema,
            folders: file.folders.clone(),
        })
    });
    Ok(Outcome {
        schemas: named.collect::<Result<_, JobError>>()?,
        requests: access.counted(),
    })
}

/// Joins the columns of all nodes' files, and finds how all nodes divide files.
///
/// # Errors
/// When types have no type in common, or a column is missing.
pub fn run_common(config: &CommonConfig, _handle: &RunHandle) -> Result<CommonOutcome, JobError> {
    let (split_bytes, _) = memory::splits(config.memory_bytes, config.workers, config.downloads);
    let read = |named: &NamedSchema| read_schema(&named.schema).map(Arc::new);
    let schemas = config
        .schemas
        .iter()
        .map(read)
        .collect::<Result<Vec<_>, _>>();
    let schemas = schemas.map_err(|why| JobError::failure(why.to_string()))?;
    let files: Vec<FileSchema<'_>> = config
        .schemas
        .iter()
        .zip(&schemas)
        .map(|(NamedSchema { file, folders, .. }, schema)| FileSchema {
            name: file,
            schema,
            folders,
        })
        .collect();
    let schema = match files.is_empty() {
        true => None,
        false => {
            let (columns, declared) = (config.columns.as_deref(), config.declared.as_deref());
            let wanted = WantedColumns::new(columns, declared, None)?;
            let schema = write_schema(&*common_schema(&files, &wanted)?);
            Some(schema.map_err(|why| JobError::failure(why.to_string()))?)
        }
    };
    Ok(CommonOutcome {
        schema,
        split_bytes,
    })
}
