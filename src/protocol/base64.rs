//! Base64 (RFC 4648, with padding) for paths that are not UTF-8.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (i, byte)| word | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * i) & 63) as usize] as char;
            out.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    out
}

/// Decodes what [`encode`] made; `None` for anything else.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in text.as_bytes().chunks(4) {
        let digits = chunk.iter().take_while(|byte| **byte != b'=').count();
        let place = |byte: u8| ALPHABET.iter().position(|digit| *digit == byte);
        let mut word = 0;
        for byte in chunk.iter().take(digits) {
            word = word << 6 | place(*byte)?;
        }
        if chunk.len() < 4 || digits < 2 {
            return None;
        }
        word <<= 6 * (4 - digits);
        out.extend((0..digits - 1).map(|i| (word >> (16 - 8 * i)) as u8));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #[test]
    fn vectors_of_the_rfc() {
        for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(super::encode(text.as_bytes()), expected);
            assert_eq!(super::decode(expected).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!((super::decode("Zg="), super::decode("Z\n==")), (None, None));
    }
}
