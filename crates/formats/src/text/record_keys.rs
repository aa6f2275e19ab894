//! Keys of records, whatever records are.

use std::ops::Range;

use crate::text::json_keys::JsonKeys;
use crate::text::keys::{KeyError, Scratch, TextKeys};

/// Makes keys of records.
#[derive(Clone, Debug)]
pub enum RecordKeys {
    /// Of fields between delimiters.
    Fields(TextKeys),
    /// Of members of JSON objects.
    Json(JsonKeys),
}

/// Memory that is used again for each record.
#[derive(Debug, Default)]
pub struct KeyScratch {
    fields: Scratch,
    places: Vec<Option<Range<usize>>>,
}

impl RecordKeys {
    /// Whether the key is the whole record as it is, so that records are their own keys.
    #[must_use]
    pub fn is_whole_record(&self) -> bool {
        match self {
            Self::Fields(keys) => keys.is_whole_record(),
            Self::Json(_) => false,
        }
    }

    /// The length of every key, unless they differ.
    #[must_use]
    pub fn key_bytes(&self) -> Option<usize> {
        match self {
            Self::Fields(keys) => keys.key_bytes(),
            Self::Json(_) => None,
        }
    }

    /// Appends the key of a record, which comes without its newline.
    ///
    /// # Errors
    /// Why it has none.
    pub fn push(
        &self,
        record: &[u8],
        scratch: &mut KeyScratch,
        to: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        match self {
            Self::Fields(keys) => keys.push(record, &mut scratch.fields, to),
            Self::Json(keys) => keys.push(record, &mut scratch.places, to),
        }
    }
}
