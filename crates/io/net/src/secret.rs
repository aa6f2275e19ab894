//! The secret of a run: 32 random bytes, drawn for each run and known to its endpoints only.

use std::fmt;

use aws_lc_rs::hmac;
use serde::{Deserialize, Deserializer, de::Error};
use zeroize::{Zeroize, Zeroizing};

const SECRET_BYTES: usize = 32;

/// The secret of a run. It is read from 64 hex digits and never shown nor written.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// Parses 64 hex digits; `None` for anything else.
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Self> {
        let mut secret = Self([0; SECRET_BYTES]);
        let digits = digits.as_bytes();
        if digits.len() != 2 * SECRET_BYTES {
            return None;
        }
        for (byte, pair) in secret.0.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = (16 * digit(0)? + digit(1)?) as u8;
        }
        Some(secret)
    }

    /// The key of proofs.
    pub(crate) fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let digits = Zeroizing::new(String::deserialize(from)?);
        Self::from_hex(&digits)
            .ok_or_else(|| D::Error::custom("a secret must be 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_64_hex_digits() {
        let digits = "00ff10Ab".repeat(8);
        let secret: Secret = serde_json::from_str(&format!("\"{digits}\"")).expect("a secret");
        assert_eq!(secret.0[..4], [0, 255, 16, 171]);
        for wrong in [
            &digits[1..],
            &format!("{digits}0"),
            "",
            &"0g".repeat(32),
            &"+1".repeat(32),
        ] {
            assert!(Secret::from_hex(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_told_by_no_message() {
        let digits = "5a".repeat(32);
        let secret = Secret::from_hex(&digits).expect("a secret");
        assert_eq!(format!("{secret:?}"), "Secret");
        let why = serde_json::from_str::<Secret>(&format!("\"{digits}5\"")).expect_err("too long");
        assert!(!why.to_string().contains("5a"), "{why}");
    }
}
