//! A schema as text in a job's configuration: Arrow's IPC message, in Base64.

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::Schema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::FormatError;

/// The schema of a message in Base64.
///
/// # Errors
/// When it is none.
pub fn read_schema(text: &str) -> Result<Schema, FormatError> {
    let message = STANDARD.decode(text);
    let message = message.map_err(|why| FormatError::Damaged(format!("no Base64: {why}")))?;
    Ok(try_schema_from_ipc_buffer(&message)?)
}

/// A schema as such a message.
///
/// # Errors
/// When it has a type that has no messages.
pub fn write_schema(schema: &Schema) -> Result<String, FormatError> {
    let stream = StreamWriter::try_new(Vec::new(), schema)?.into_inner()?;
    Ok(STANDARD.encode(stream))
}
