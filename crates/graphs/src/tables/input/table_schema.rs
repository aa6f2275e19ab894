//! The schema of a table whose files may differ: the same names, in any order, of types that one
//! type has all values of.
//!
//! Columns are found by their names. A column that some file lacks needs a declared type, and is
//! null there. Folders give columns of one value (`year=2024`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use tonnage_formats::types::{common_field, name_of, read_schema};

use crate::error::{JobError, setting_error, usage_error};

/// The most digits of a folder's value that is a number.
const NUMBER_DIGITS: usize = 18;

/// Columns of one value, by the folders that a file is in; a value that is missing is null.
pub type FolderColumns = Vec<(String, Option<String>)>;

/// What is known of a file's columns.
pub struct FileSchema<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its own columns.
    pub schema: &'a SchemaRef,
    /// Those of its folders.
    pub folders: &'a FolderColumns,
}

/// Which columns a table has.
#[derive(Clone, Debug, Default)]
pub struct WantedColumns {
    /// Columns to keep, in this order; all by default.
    pub names: Option<Vec<String>>,
    /// Some columns that are read as these types.
    pub declared: Fields,
    /// All columns, where they are known already, since these are not all files.
    pub known: Option<SchemaRef>,
}

impl WantedColumns {
    /// Columns to keep, and some that are read as the types of a schema (`types::read_schema`); or
    /// all columns, as another schema.
    ///
    /// # Errors
    /// A column that is named twice, or no schema.
    pub fn new(
        names: Option<&[String]>,
        schema: Option<&str>,
        known: Option<&str>,
    ) -> Result<Self, JobError> {
        if let Some(names) = names
            && let Some((_, twice)) = (1..)
                .zip(names)
                .find(|(next, name)| names[*next..].contains(name))
        {
            let what = format!("the column {twice:?} is named twice");
            return Err(setting_error("columns", what));
        }
        let read = |schema: Option<&str>| {
            let schema = schema.map(read_schema).transpose();
            schema.map_err(|why| setting_error("schema", why.to_string()))
        };
        Ok(Self {
            names: names.map(<[String]>::to_vec),
            declared: read(schema)?.map_or_else(Fields::empty, |schema| schema.fields),
            known: read(known)?.map(Arc::new),
        })
    }

    fn declared(&self, name: &str) -> Option<&FieldRef> {
        self.declared.iter().find(|field| field.name() == name)
    }
}

/// The columns that all files are read as.
///
/// # Errors
/// A column that a file lacks, or whose types have no type in common.
pub fn common_schema(
    files: &[FileSchema<'_>],
    wanted: &WantedColumns,
) -> Result<SchemaRef, JobError> {
    if let Some(known) = &wanted.known {
        return Ok(Arc::clone(known));
    }
    let first = files
        .first()
        .ok_or_else(|| usage_error("input: there are no files"))?;
    let all = all_names(files);
    let unknown = |name: &&String| !all.contains(name);
    let mut declared = wanted.declared.iter().map(|field| field.name());
    let (declared, kept) = (
        declared.find(unknown),
        wanted.names.iter().flatten().find(unknown),
    );
    for (setting, name) in [("schema", declared), ("columns", kept)] {
        if let Some(name) = name {
            let columns = all.join(", ");
            let what = format!("there is no column {name:?}; the columns are {columns}");
            return Err(setting_error(setting, what));
        }
    }
    let names = wanted.names.as_deref().unwrap_or(&all);
    let fields = names.iter().map(|name| common_column(files, wanted, name));
    let fields = fields.collect::<Result<Vec<FieldRef>, JobError>>()?;
    let metadata = first.schema.metadata().clone();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// The names of columns, in the order in which files have them.
fn all_names(files: &[FileSchema<'_>]) -> Vec<String> {
    let mut places = HashMap::new();
    let mut last: Option<&SchemaRef> = None;
    for file in files {
        let fields = match last {
            Some(last) if last == file.schema => &[][..],
            _ => &file.schema.fields()[..],
        };
        last = Some(file.schema);
        let own = fields.iter().map(|field| field.name());
        for name in own.chain(file.folders.iter().map(|each| &each.0)) {
            let next = places.len();
            places.entry(name).or_insert(next);
        }
    }
    let mut names: Vec<(usize, &String)> = places.into_iter().map(|(a, b)| (b, a)).collect();
    names.sort_unstable();
    names.into_iter().map(|(_, name)| name.clone()).collect()
}

/// The column of this name as all files are read.
fn common_column(
    files: &[FileSchema<'_>],
    wanted: &WantedColumns,
    name: &str,
) -> Result<FieldRef, JobError> {
    let declared = wanted.declared(name);
    let mut common: Option<(FieldRef, &str)> = None;
    let (mut of_folders, mut is_missing) = (Vec::new(), false);
    for file in files {
        let refuse = |why: String| usage_error(format!("input {}: {why}", file.name));
        let own = own_place(file.schema, name).map_err(refuse)?;
        match (own.map(|place| &file.schema.fields()[place]), &common) {
            (Some(field), None) => common = Some((Arc::clone(field), file.name)),
            (Some(_), Some(_)) if declared.is_some() => {}
            (Some(field), Some((before, first))) => {
                let both = common_field(before, field).ok_or_else(|| {
                    refuse(format!(
                        "its column {name:?} is {}, which cannot be joined with {} of {first}; \
                         specify the column's type in the schema",
                        name_of(field.data_type()),
                        name_of(before.data_type()),
                    ))
                })?;
                common = Some((both, first));
            }
            (None, _) => match file.folders.iter().find(|each| each.0 == name) {
                Some((_, value)) => of_folders.push(value.as_deref()),
                None if declared.is_some() => is_missing = true,
                None => {
                    return Err(refuse(format!(
                        "it has no column {name:?}, as others have; specify the column's type in \
                         the schema to have it null"
                    )));
                }
            },
        }
    }
    let field = match common {
        Some((field, _)) => field,
        None => Arc::new(Field::new(name, folder_type(&of_folders), true)),
    };
    let is_nullable = field.is_nullable() || is_missing || of_folders.contains(&None);
    match declared {
        None if is_nullable == field.is_nullable() => Ok(field),
        _ => {
            let data_type = declared.map_or(field.data_type(), |field| field.data_type());
            let metadata = field.metadata().clone();
            let field = Field::new(name, data_type.clone(), is_nullable);
            Ok(Arc::new(field.with_metadata(metadata)))
        }
    }
}

/// Whole numbers, if all values are.
fn folder_type(values: &[Option<&str>]) -> DataType {
    let is_number = |text: &&str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        (1..=NUMBER_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let known: Vec<&str> = values.iter().copied().flatten().collect();
    match !known.is_empty() && known.iter().all(is_number) {
        true => DataType::Int64,
        false => DataType::Utf8,
    }
}

/// Where the only column with this name is, if there is one.
pub(super) fn own_place(schema: &SchemaRef, name: &str) -> Result<Option<usize>, String> {
    let fields = schema.fields().iter().enumerate();
    let mut places = fields.filter(|(_, field)| field.name() == name);
    match (places.next(), places.next()) {
        (place, None) => Ok(place.map(|(place, _)| place)),
        _ => Err(format!("several columns are named {name:?}")),
    }
}
