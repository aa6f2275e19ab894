//! Lists uploads that were neither completed nor aborted.
//!
//! The answer is flat XML that the store made; a few elements are extracted by name.

use object_store::Result as StoreResult;

use super::Upload;
use crate::error::element;
use crate::http::signed_page::{Lister, plain};

/// The first page of uploads whose names begin with `prefix`; `None` if the store does not list
/// them, or not for these keys.
pub(crate) async fn first_page(
    lister: Lister<'_>,
    prefix: &str,
) -> StoreResult<Option<Vec<Upload>>> {
    let Ok(page) = lister.page(&[("uploads", ""), ("prefix", prefix)]).await? else {
        return Ok(None);
    };
    let one = |upload: &str| {
        let value = |name| element(upload, name).map(plain).unwrap_or_default();
        Upload {
            key: value("Key"),
            id: value("UploadId"),
        }
    };
    let found = page.split("<Upload>").skip(1).map(one);
    // Some stores ignore the prefix.
    Ok(Some(
        found.filter(|one| one.key.starts_with(prefix)).collect(),
    ))
}
