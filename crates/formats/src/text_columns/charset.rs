//! Encodings with one byte a character, of which the first 128 are ASCII's.

use std::borrow::Cow;

/// How bytes above ASCII are read.
#[derive(Clone, Debug, Default)]
pub enum Charset {
    /// As UTF-8.
    #[default]
    Utf8,
    /// Each as the character with its number less 128; `None` where there is none.
    SingleByte(Vec<Option<char>>),
}

impl Charset {
    /// Characters of the bytes from 128 on, of which U+FFFD is none; UTF-8 without.
    #[must_use]
    pub fn new(upper_half: Option<&str>) -> Self {
        let known = |each| Some(each).filter(|&each| each != char::REPLACEMENT_CHARACTER);
        upper_half.map_or(Self::Utf8, |characters| {
            Self::SingleByte(characters.chars().map(known).collect())
        })
    }

    /// How many bytes a text had that is UTF-8 now.
    #[must_use]
    pub fn bytes(&self, utf8: &[u8]) -> usize {
        match self {
            Self::Utf8 => utf8.len(),
            Self::SingleByte(_) => String::from_utf8_lossy(utf8).chars().count(),
        }
    }

    /// The text in UTF-8. UTF-8 itself is not looked at.
    ///
    /// # Errors
    /// A byte that is no character.
    pub fn to_utf8<'a>(&self, text: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let Self::SingleByte(characters) = self else {
            return Ok(Cow::Borrowed(text));
        };
        if text.is_ascii() {
            return Ok(Cow::Borrowed(text));
        }
        let mut utf8 = String::with_capacity(text.len() * 2);
        for &byte in text {
            let character = match byte.checked_sub(128) {
                None => Some(char::from(byte)),
                Some(place) => characters.get(usize::from(place)).copied().flatten(),
            };
            let missing = || format!("has the byte {byte:#x}, which its encoding lacks");
            utf8.push(character.ok_or_else(missing)?);
        }
        Ok(Cow::Owned(utf8.into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_characters() {
        let mut characters = vec![None; 128];
        characters[0x80 - 128] = Some('€');
        characters[0xe4 - 128] = Some('ä');
        let charset = Charset::SingleByte(characters);
        let text = |bytes| charset.to_utf8(bytes).map(Cow::into_owned);
        assert_eq!(text(b"abc"), Ok(b"abc".to_vec()));
        assert_eq!(text(b"a\x80\xe4,"), Ok("a€ä,".as_bytes().to_vec()));
        let why = "has the byte 0x81, which its encoding lacks".to_owned();
        assert_eq!(text(b"\x81"), Err(why));
    }
}
