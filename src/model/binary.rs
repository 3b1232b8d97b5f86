//! Numbers, texts and bytes in the binary files that piton can make again.
//!
//! A number is in groups of 7 bits, the lowest first; the top bit of a byte says that more follow. Bytes and texts have
//! their length before them.

/// The reason of a file that ends too early.
pub const CUT: &str = "is cut";

/// The reason of a file with a value that no writer writes.
pub const BAD: &str = "contains impossible values";

/// Appends a number.
pub fn put(body: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

/// Appends bytes with their length.
pub fn put_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    put(body, bytes.len() as u64);
    body.extend_from_slice(bytes);
}

/// Appends a text that may be missing.
pub fn put_option(body: &mut Vec<u8>, text: Option<&str>) {
    body.push(u8::from(text.is_some()));
    text.into_iter().for_each(|text| put_bytes(body, text.as_bytes()));
}

/// The rest of a body. Every method takes a value from its beginning, and returns the reason where that is not possible.
pub struct BinaryReader<'a>(pub &'a [u8]);

impl<'a> BinaryReader<'a> {
    /// Takes `n` bytes.
    ///
    /// # Errors
    /// [`CUT`].
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(CUT)?;
        self.0 = rest;
        Ok(head)
    }

    /// Takes an array.
    ///
    /// # Errors
    /// [`CUT`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Takes a number.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    #[inline]
    pub fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BAD)
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(self.number()?).map_err(|_| BAD)?;
        self.take(length)
    }

    /// Takes a text, without a copy.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    pub fn str(&mut self) -> Result<&'a str, &'static str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BAD)
    }

    /// Takes a text.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    pub fn text(&mut self) -> Result<String, &'static str> {
        self.str().map(str::to_owned)
    }

    /// Takes a text that may be missing.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    pub fn option(&mut self) -> Result<Option<String>, &'static str> {
        if self.flag()? { self.text().map(Some) } else { Ok(None) }
    }

    /// Takes a byte that is 0 or 1.
    ///
    /// # Errors
    /// [`CUT`], [`BAD`].
    #[inline]
    pub fn flag(&mut self) -> Result<bool, &'static str> {
        match self.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BAD),
        }
    }
}
