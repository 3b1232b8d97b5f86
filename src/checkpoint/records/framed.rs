//! Lines of JSON that carry a checksum: `{CRC-32 of the JSON, 8 hex digits} {JSON}\n`. Damage shows, and is never taken for another text.

/// Returns a line of some JSON, with its end.
pub(crate) fn frame(json: &str) -> String {
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// Returns the JSON of a line without its end; `None` if it is damaged or torn.
pub(crate) fn framed(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = (line.get(..8)?, line.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?; // no checksum at all
    (sum == crc32fast::hash(json)).then_some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flipped_bit_and_each_cut_shows() {
        let line = frame(r#"{"a":1}"#).into_bytes();
        let whole = line.strip_suffix(b"\n").unwrap();
        assert_eq!(framed(whole), Some(&br#"{"a":1}"#[..]));
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // A digit may be of either case, and the sign between the parts tells nothing.
            let is_same = flipped.eq_ignore_ascii_case(whole) || bit / 8 == 8;
            assert!(is_same || framed(&flipped).is_none(), "{bit}: {:?}", String::from_utf8_lossy(&flipped));
        }
        for end in 0..whole.len() {
            assert_eq!(framed(&whole[..end]), None, "{end}");
        }
    }
}
