//! Row groups, encoded in memory by one thread each, and the file that they are appended to.
//!
//! Each column of each row group chooses how it is encoded by its first rows: a dictionary only
//! where values repeat, compression only where it makes them shorter. Sorted columns repeat more
//! than the input's did, so the input's encodings say little.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::Compression;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::leaves::leaves;
use super::sampling::{is_compressible, repeats};
use super::types::{parquet_schema, parquet_values};
use crate::compression::Codec;
use crate::error::FormatError;

/// What Brotli takes with its window of 4 MiB.
const BROTLI_BYTES: usize = 16 << 20;

/// How files are written.
#[derive(Clone, Debug)]
pub struct Output {
    schema: SchemaRef,
    parquet: Arc<SchemaDescriptor>,
    codec: Compression,
    order: Vec<SortingColumn>,
}

impl Output {
    /// Files of `schema`, compressed with `codec`, sorted by columns of these names, each
    /// descending or not, its nulls first or last.
    ///
    /// # Errors
    /// When Parquet has no such types.
    pub fn new(
        schema: &SchemaRef,
        codec: Compression,
        order: &[(String, bool, bool)],
    ) -> Result<Self, FormatError> {
        let schema = &parquet_schema(schema);
        let parquet = ArrowSchemaConverter::new().convert(schema)?;
        let leaf = |name: &String| {
            let leaves = parquet.columns();
            let place =
                |is: &dyn Fn(&ColumnPath) -> bool| leaves.iter().position(|leaf| is(leaf.path()));
            // A column of this name, or the field of a struct.
            place(&|path| path.parts() == std::slice::from_ref(name))
                .or_else(|| place(&|path| path.string() == *name))
        };
        let sorting = order.iter().map_while(|(name, descending, nulls_first)| {
            Some(SortingColumn {
                column_idx: i32::try_from(leaf(name)?).ok()?,
                descending: *descending,
                nulls_first: *nulls_first,
            })
        });
        Ok(Self {
            order: sorting.collect(),
            schema: Arc::clone(schema),
            parquet: Arc::new(parquet),
            codec,
        })
    }

    /// Memory that the codec takes while it compresses a page.
    #[must_use]
    pub fn codec_bytes(&self) -> usize {
        match self.codec {
            Compression::ZSTD(level) => {
                let level = u32::try_from(level.compression_level()).ok();
                Codec::Zstd.compressor_bytes(level)
            }
            Compression::GZIP(_) => Codec::Gzip.compressor_bytes(None),
            Compression::BROTLI(_) => BROTLI_BYTES,
            _ => 0,
        }
    }

    fn properties(&self) -> WriterPropertiesBuilder {
        let order = (!self.order.is_empty()).then(|| self.order.clone());
        WriterProperties::builder()
            .set_created_by(format!("tonnage {}", env!("CARGO_PKG_VERSION")))
            .set_compression(self.codec)
            .set_sorting_columns(order)
    }

    fn writer<W: Write + Send>(
        &self,
        to: W,
        properties: WriterPropertiesPtr,
    ) -> Result<SerializedFileWriter<W>, FormatError> {
        let root = self.parquet.root_schema_ptr();
        Ok(SerializedFileWriter::new(to, root, properties)?)
    }
}

/// Encodes one row group in memory.
pub struct RowGroupEncoder {
    output: Arc<Output>,
    columns: Vec<ArrowColumnWriter>,
}

/// A row group in memory.
pub struct EncodedRowGroup {
    columns: Vec<ArrowColumnChunk>,
}

impl RowGroupEncoder {
    /// An empty row group.
    #[must_use]
    pub fn new(output: &Arc<Output>) -> Self {
        Self {
            output: Arc::clone(output),
            columns: Vec::new(),
        }
    }

    /// Adds the rows of a batch; the first one decides how columns are encoded.
    ///
    /// # Errors
    /// When values cannot be encoded.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        if self.columns.is_empty() {
            self.columns = self.choose(batch)?;
        }
        let mut columns = self.columns.iter_mut();
        for (field, array) in self.output.schema.fields().iter().zip(batch.columns()) {
            let array = parquet_values(array, field)?;
            for leaf in compute_leaves(field, &array)? {
                let column = columns.next().expect("a writer for each leaf");
                column.write(&leaf)?;
            }
        }
        Ok(())
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// When values cannot be encoded.
    pub fn finish(self) -> Result<EncodedRowGroup, FormatError> {
        let columns = self.columns.into_iter().map(ArrowColumnWriter::close);
        Ok(EncodedRowGroup {
            columns: columns.collect::<Result<_, _>>()?,
        })
    }

    fn choose(&self, batch: &RecordBatch) -> Result<Vec<ArrowColumnWriter>, FormatError> {
        let mut properties = self.output.properties();
        let columns = self.output.parquet.columns().iter();
        for (column, array) in columns.zip(batch.columns().iter().flat_map(leaves)) {
            if !has_dictionary(&array) {
                let path = column.path().clone();
                properties = properties.set_column_dictionary_enabled(path.clone(), false);
                if !is_compressible(&array) {
                    properties = properties.set_column_compression(path, Compression::UNCOMPRESSED);
                }
            }
        }
        let writer = self
            .output
            .writer(std::io::sink(), Arc::new(properties.build()))?;
        let schema = Arc::clone(&self.output.schema);
        Ok(ArrowRowGroupWriterFactory::new(&writer, schema).create_column_writers(0)?)
    }
}

/// Whether a dictionary pays.
fn has_dictionary(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Dictionary(_, _)) || repeats(array)
}

/// A file that row groups are appended to.
pub struct FileWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> FileWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(output: &Output, to: W) -> Result<Self, FormatError> {
        let mut properties = output.properties();
        let encoded = parquet::arrow::encode_arrow_schema(&output.schema);
        let about = KeyValue::new(parquet::arrow::ARROW_SCHEMA_META_KEY.to_owned(), encoded);
        properties = properties.set_key_value_metadata(Some(vec![about]));
        Ok(Self {
            writer: output.writer(to, Arc::new(properties.build()))?,
        })
    }

    /// Appends a row group.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, group: EncodedRowGroup) -> Result<(), FormatError> {
        let mut writer = self.writer.next_row_group()?;
        for column in group.columns {
            column.append_to_row_group(&mut writer)?;
        }
        writer.close()?;
        Ok(())
    }

    /// What is written to.
    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.inner_mut()
    }

    /// Writes the footer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self) -> Result<(), FormatError> {
        self.writer.finish()?;
        Ok(())
    }
}
