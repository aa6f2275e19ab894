//! Lists objects, one by one: `object_store` gives up a whole list for one name that it cannot
//! read (an empty part, `.` or `..`, a control character).
//!
//! Names are asked for in the encoding of URLs, since XML has no control characters.

use object_store::path::Path;
use object_store::{ObjectMeta, Result as StoreResult};

use super::signed_page::{Lister, generic, plain};
use crate::error::element;

/// An object in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name in the bucket.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// Its ETag, which tells it from others of the same name; `None` if the store gives none.
    pub etag: Option<String>,
}

impl From<ObjectMeta> for ObjectInfo {
    fn from(about: ObjectMeta) -> Self {
        Self {
            key: about.location.into(),
            bytes: about.size,
            etag: about.e_tag,
        }
    }
}

/// The objects below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Those that can be read. Empty ones whose names end with `/` only mark folders, and are left
    /// out.
    pub objects: Vec<ObjectInfo>,
    /// The names of the others.
    pub unreadable: Vec<String>,
}

/// All objects whose names begin with `prefix`.
pub(crate) async fn all(lister: Lister<'_>, prefix: &str) -> StoreResult<Listing> {
    let (mut listing, mut next) = (Listing::default(), None::<String>);
    loop {
        let mut query = vec![
            ("list-type", "2"),
            ("encoding-type", "url"),
            ("prefix", prefix),
        ];
        query.extend(next.as_deref().map(|token| ("continuation-token", token)));
        let page = lister.page(&query).await?.map_err(generic)?;
        let is_encoded = element(&page, "EncodingType") == Some("url");
        for object in page.split("<Contents>").skip(1) {
            let key = element(object, "Key").map(plain).unwrap_or_default();
            let key = if is_encoded { decoded(&key) } else { key };
            let bytes = element(object, "Size").and_then(|bytes| bytes.parse().ok());
            let bytes = bytes.ok_or_else(|| generic(format!("{key:?} has no size in a list")))?;
            let etag = element(object, "ETag").map(plain);
            if bytes == 0 && key.ends_with('/') {
                continue;
            }
            let is_as_named = Path::parse(&key).is_ok_and(|path| path.as_ref() == key);
            // What stands for a character that XML lacks is not the name.
            match is_as_named && !key.contains(char::REPLACEMENT_CHARACTER) {
                true => listing.objects.push(ObjectInfo { key, bytes, etag }),
                false => listing.unreadable.push(key),
            }
        }
        let token = element(&page, "NextContinuationToken").map(plain);
        match element(&page, "IsTruncated") {
            Some("true") if token.is_some() && token != next => next = token,
            Some("true") => return Err(generic("a list does not continue".to_owned())),
            _ => return Ok(listing),
        }
    }
}

/// Decodes a URL's escapes.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| behind.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn names_are_decoded_as_urls_are() {
        assert_eq!(decoded("a%2Fb%20c+d%2B%0A%C3%A4%"), "a/b c d+\nä%");
    }
}
