//! Mutual proof that both endpoints of a connection know the run's secret, without revealing it.
//!
//! This is HMAC authentication. There is no TLS: the frames that follow are not encrypted.
//!
//! ```text
//!   initiator -> hello    64   "tonnage2", its number, the responder's, the connection's; its nonce
//!   responder -> answer   64   its nonce, HMAC("listens" | hello | its nonce)
//!   initiator -> proof    32   HMAC("dials" | hello | the responder's nonce)
//!   responder -> welcome   1
//! ```
//!
//! Numbers have 8 bytes, little endian; nonces are 32 random bytes. This is three-pass mutual
//! authentication with a keyed check function (ISO/IEC 9798-4), with HMAC-SHA256 (RFC 2104). Nonces
//! are new for each connection, so a recorded handshake proves nothing. Roles are part of the text,
//! so a proof cannot be reflected. Numbers are, so a proof for one responder is none for another.
//! Before `welcome` the initiator cannot know whether its proof was in time.

use aws_lc_rs::{hmac, rand};

use crate::secret::Secret;

const MAGIC: [u8; 8] = *b"tonnage2"; // the digit is the protocol version
const NONCE_BYTES: usize = 32;
pub(crate) const PROOF_BYTES: usize = 32;
pub(crate) const HELLO_BYTES: usize = 8 + 3 * 8 + NONCE_BYTES;
pub(crate) const ANSWER_BYTES: usize = NONCE_BYTES + PROOF_BYTES;
pub(crate) const WELCOME: [u8; 1] = [1];

type Nonce = [u8; NONCE_BYTES];

/// Which connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    /// The number of the endpoint that connects.
    pub initiator: usize,
    /// The number of the endpoint that listens.
    pub responder: usize,
    /// Which of the connections between them.
    pub connection: usize,
}

impl ConnectionId {
    /// The ids in a hello; `None` if it is none.
    pub(crate) fn in_hello(hello: &[u8; HELLO_BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let number = u64::from_le_bytes(*hello[at..].first_chunk().expect("within"));
            usize::try_from(number).ok()
        };
        (hello[..8] == MAGIC).then_some(())?;
        Some(Self {
            initiator: number(8)?,
            responder: number(16)?,
            connection: number(24)?,
        })
    }

    fn hello(self, nonce: Nonce) -> [u8; HELLO_BYTES] {
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(&MAGIC);
        hello[8..16].copy_from_slice(&(self.initiator as u64).to_le_bytes());
        hello[16..24].copy_from_slice(&(self.responder as u64).to_le_bytes());
        hello[24..32].copy_from_slice(&(self.connection as u64).to_le_bytes());
        hello[32..].copy_from_slice(&nonce);
        hello
    }
}

/// The connecting side.
pub(crate) struct Initiator {
    hello: [u8; HELLO_BYTES],
}

/// The listening side, once it has a hello.
pub(crate) struct Responder {
    transcript: Transcript,
}

impl Initiator {
    pub(crate) fn new(id: ConnectionId) -> Self {
        Self {
            hello: id.hello(nonce()),
        }
    }

    pub(crate) fn hello(&self) -> &[u8; HELLO_BYTES] {
        &self.hello
    }

    /// The proof of this side; `None` if `answer` does not prove the other.
    pub(crate) fn proof(
        &self,
        answer: &[u8; ANSWER_BYTES],
        secret: &Secret,
    ) -> Option<[u8; PROOF_BYTES]> {
        let (nonce, proof) = answer.split_first_chunk().expect("longer");
        let transcript = Transcript::new(&self.hello, nonce);
        (transcript.is_proof(RESPONDER, proof, secret)).then(|| transcript.proof(INITIATOR, secret))
    }
}

impl Responder {
    pub(crate) fn new(hello: &[u8; HELLO_BYTES]) -> Self {
        Self {
            transcript: Transcript::new(hello, &nonce()),
        }
    }

    pub(crate) fn answer(&self, secret: &Secret) -> [u8; ANSWER_BYTES] {
        let mut answer = [0; ANSWER_BYTES];
        answer[..NONCE_BYTES].copy_from_slice(&self.transcript.0[HELLO_BYTES..]);
        answer[NONCE_BYTES..].copy_from_slice(&self.transcript.proof(RESPONDER, secret));
        answer
    }

    /// Whether `proof` proves the initiator.
    pub(crate) fn is_proof(&self, proof: &[u8; PROOF_BYTES], secret: &Secret) -> bool {
        self.transcript.is_proof(INITIATOR, proof, secret)
    }
}

/// The side that proves itself. Of equal length, so that no two texts under the HMAC can be equal.
type Role = [u8; 8];
const RESPONDER: Role = *b"listens ";
const INITIATOR: Role = *b"dials   ";

/// What both sides have sent: the hello and the responder's nonce.
struct Transcript([u8; HELLO_BYTES + NONCE_BYTES]);

impl Transcript {
    fn new(hello: &[u8; HELLO_BYTES], nonce: &Nonce) -> Self {
        let mut transcript = [0; HELLO_BYTES + NONCE_BYTES];
        transcript[..HELLO_BYTES].copy_from_slice(hello);
        transcript[HELLO_BYTES..].copy_from_slice(nonce);
        Self(transcript)
    }

    fn text(&self, role: Role) -> Vec<u8> {
        [&role[..], &self.0].concat()
    }

    fn proof(&self, role: Role, secret: &Secret) -> [u8; PROOF_BYTES] {
        let tag = hmac::sign(&secret.key(), &self.text(role));
        *tag.as_ref().first_chunk().expect("SHA-256 gives 32 bytes")
    }

    /// In constant time.
    fn is_proof(&self, role: Role, proof: &[u8], secret: &Secret) -> bool {
        hmac::verify(&secret.key(), &self.text(role), proof).is_ok()
    }
}

fn nonce() -> Nonce {
    let mut nonce = [0; NONCE_BYTES];
    rand::fill(&mut nonce).expect("the kernel gives random bytes");
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: ConnectionId = ConnectionId {
        initiator: 1,
        responder: 2,
        connection: 3,
    };

    fn secret(byte: u8) -> Secret {
        Secret::from_hex(&format!("{byte:02x}").repeat(32)).expect("a secret")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The same texts under Python's `hmac`:
    ///
    /// ```python
    /// hello = b"tonnage2" + struct.pack("<3Q", 1, 2, 3) + bytes(range(32))
    /// for role in (b"listens ", b"dials   "):
    ///     print(hmac.digest(b"\x5a" * 32, role + hello + bytes(range(32, 64)), "sha256").hex())
    /// ```
    #[test]
    fn proofs_are_those_of_another_implementation() {
        let first: Nonce = std::array::from_fn(|at| at as u8);
        let second: Nonce = std::array::from_fn(|at| 32 + at as u8);
        let transcript = Transcript::new(&ID.hello(first), &second);
        let found = [RESPONDER, INITIATOR].map(|role| hex(&transcript.proof(role, &secret(0x5a))));
        assert_eq!(found, KNOWN);
    }

    const KNOWN: [&str; 2] = [
        "61cce249b45e06e6681b290c16d539b186c7883af40d589314e6a7d044fc4a2b",
        "8e443d580e5b0fc099e73f9267bea3537afa4b56c54ed8a9cdd921d202b2d987",
    ];

    #[test]
    fn who_knows_the_secret_proves_it_both_ways() {
        let (initiator, secret) = (Initiator::new(ID), secret(7));
        assert_eq!(ConnectionId::in_hello(initiator.hello()), Some(ID));
        let responder = Responder::new(initiator.hello());
        let proof = initiator.proof(&responder.answer(&secret), &secret);
        assert!(responder.is_proof(&proof.expect("the listener's"), &secret));
    }

    #[test]
    fn who_does_not_know_it_proves_nothing() {
        let (initiator, known, guessed) = (Initiator::new(ID), secret(7), secret(8));
        let responder = Responder::new(initiator.hello());
        let answer = responder.answer(&guessed);
        assert_eq!(initiator.proof(&answer, &known), None);
        let proof = initiator.proof(&answer, &guessed).expect("as wrong as his");
        assert!(!responder.is_proof(&proof, &known));
    }

    #[test]
    fn a_recording_proves_nothing() {
        let (initiator, secret) = (Initiator::new(ID), secret(7));
        let responder = Responder::new(initiator.hello());
        let answer = responder.answer(&secret);
        let proof = initiator.proof(&answer, &secret).expect("the listener's");
        assert!(!Responder::new(initiator.hello()).is_proof(&proof, &secret));
        assert_eq!(Initiator::new(ID).proof(&answer, &secret), None);
        // Nor does the responder's own proof.
        assert!(!responder.is_proof(answer.last_chunk().expect("longer"), &secret));
    }

    proptest! {
        /// A bit that is changed on the way makes it a stranger's.
        #[test]
        fn nothing_may_be_changed_on_the_way(at in 0..HELLO_BYTES + ANSWER_BYTES, bit in 0..8) {
            let (initiator, secret) = (Initiator::new(ID), secret(7));
            let (mut hello, flip) = (*initiator.hello(), 1_u8 << bit);
            if at < HELLO_BYTES {
                hello[at] ^= flip;
            }
            let responder = Responder::new(&hello);
            let mut answer = responder.answer(&secret);
            if at >= HELLO_BYTES {
                answer[at - HELLO_BYTES] ^= flip;
            }
            prop_assert_eq!(initiator.proof(&answer, &secret), None);
        }

        #[test]
        fn only_a_hello_has_names(hello: [[u8; 32]; 2]) {
            let hello: [u8; HELLO_BYTES] = *hello.as_flattened().first_chunk().expect("64 bytes");
            prop_assert_eq!(ConnectionId::in_hello(&hello), None);
        }
    }
}
