//! Tells generated values from those that a person wrote: names in code, words, templates and placeholders.

use super::shape::is_dense;

/// The least length of the generated value of a name.
pub(super) const VALUE: usize = 16;

/// The least number of digits in a value of small letters and digits, and the least number of letters.
const DIGITS: usize = 3;

/// Parts of texts that a program fills, of addresses, and of patterns for passwords.
const TEMPLATES: &[&str] = &["://", "{", "}", "$(", "<", ">", "%s", "a-z", "A-Z", "0-9", "\\"];

/// Texts in the place of a token that no user was given.
const PLACEHOLDERS: &[&str] = &["xxxx", "your", "placeholder", "changeme", "redacted", "replace"];

/// Returns true for a stand-in for a token, and for a name of a program's own: small words joined by `_`.
pub(super) fn is_stand_in(token: &str) -> bool {
    let small = token.to_ascii_lowercase();
    let is_name = token.matches('_').count() > 1 && token.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name || PLACEHOLDERS.iter().any(|part| small.contains(part))
}

/// Returns true for a UUID. Most of them name a thing and open none.
pub(super) fn is_uuid(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(is_hex)
}

/// Returns true for a UUID that a program generated. `00000000-…` and `12345678-…` are placeholders.
pub(super) fn is_random_uuid(value: &str) -> bool {
    let mut digits: Vec<u8> =
        value.bytes().filter(u8::is_ascii_hexdigit).map(|byte| byte.to_ascii_lowercase()).collect();
    digits.sort_unstable();
    digits.dedup();
    is_uuid(value) && digits.len() >= 6 && digits.iter().any(u8::is_ascii_lowercase)
}

/// Returns true for a value that a program generated: letters and digits are mixed in one run, or there is no order in the whole value.
pub(super) fn is_generated(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+/=_.~-".contains(c);
    let is_mixed = |run: &str| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        digits >= DIGITS && run.len() - digits >= DIGITS
    };
    let has_mixed_run = || value.split(['.', '-', '_', '/', '+', '=']).any(is_mixed);
    let is_plain = value.chars().all(is_part);
    !is_uuid(value) && (is_plain && is_dense(value) && has_mixed_run() || is_scrambled(value, is_plain))
}

/// Returns true for a long value of small and capital letters that is hardly made of words. `is_plain` is true if each sign in it is one of
/// a token; others are signs of a password, and of many texts too, so that a digit is required.
fn is_scrambled(value: &str, is_plain: bool) -> bool {
    let has = |is_one: fn(&u8) -> bool| value.bytes().any(|byte| is_one(&byte));
    if value.len() < VALUE || !has(u8::is_ascii_lowercase) || !has(u8::is_ascii_uppercase) {
        return false;
    }
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) || TEMPLATES.iter().any(|part| value.contains(part)) {
        return false;
    }
    let length = value.bytes().filter(u8::is_ascii_alphanumeric).count();
    // A name of a constant has few changes: `settings.OAUTH2_CLIENT_SECRET`.
    if changes(value) * 3 <= length {
        return false;
    }
    let has_digit = has(u8::is_ascii_digit);
    has_digit && letters_in_words(value, 4) * 2 <= length || is_plain && letters_in_words(value, 3) * 10 <= length * 3
}

/// Returns how often the next letter or digit is of another kind: small, capital, digit.
fn changes(value: &str) -> usize {
    let kind = |byte: u8| (byte.is_ascii_lowercase(), byte.is_ascii_digit());
    let kinds: Vec<_> = value.bytes().filter(u8::is_ascii_alphanumeric).map(kind).collect();
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Returns the number of letters in runs that look like words: a letter of any case, small letters after it, a vowel among them.
fn letters_in_words(value: &str, least: usize) -> usize {
    let (bytes, mut sum, mut at) = (value.as_bytes(), 0, 0);
    while at < bytes.len() {
        let small = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let length = if bytes[at].is_ascii_alphabetic() { small + 1 } else { 1 };
        let word = &bytes[at..at + length];
        if length >= least && word.iter().any(|byte| b"aeiouyAEIOUY".contains(byte)) {
            sum += length;
        }
        at += length;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns letters and digits that follow no order, the same in each run.
    fn values(length: usize, count: usize) -> Vec<String> {
        const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut state: u64 = 88_172_645_463_325_252;
        let mut sign = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(SIGNS[usize::try_from(state % 62).unwrap()])
        };
        (0..count).map(|_| (0..length).map(|_| sign()).collect()).collect()
    }

    #[test]
    fn most_random_values_are_recognized() {
        for (length, most) in [(16, 70), (20, 35), (24, 20), (32, 10)] {
            let missed = values(length, 1000).into_iter().filter(|value| !is_generated(value)).count();
            assert!(missed <= most, "{missed} of 1000 with {length} signs");
        }
        assert!(is_generated("q8!Zr$4Lw%0Xc7Nv"));
    }

    #[test]
    fn names_in_code_and_texts_are_not_generated() {
        for text in "OAuth2TokenResponse Base64UrlEncoded OAuth2PasswordBearer AwsS3CredentialsProvider getTokenV2FromVault \
                     Auth0TokenProvider Qwen2TokenizerFast K8sServiceAccountToken RsaKeyWrapperProvider \
                     com.example.auth.TokenProviderV2 MyApplication/Secret1/Production Correct-Horse-Battery-Staple-2024 \
                     ^[A-Za-z0-9!@#$%]{8,64}$ https://Vault1.example.org/Zq9x8Kd7 ${DB_PASSWORD_V2}Zq9x8Kd7 {{Zq9x8Kd7.Vw3}} \
                     arn:aws:secretsmanager:us-east-1:secret:Production myAppKeyForTheUser deployment_environment_v2_0 \
                     settings.OAUTH2_CLIENT_SECRET Token.DEFAULT_CHANNEL Config.AWS_S3_KEY1 AppConfig.S3_BUCKET_TOKEN"
            .split_whitespace()
        {
            assert!(!is_generated(text), "{text}");
        }
    }
}
