//! Files that usually hold secrets: left out unless git tracks them, the policy wants them, or an action is about to
//! destroy them.

/// Whole names.
const NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "credentials.json",
    "service-account.json",
    "service_account.json",
    "client_secret.json",
    ".vault-token",
    "secring.gpg",
];

/// Endings.
const ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key"];

/// Endings of `.env.*` files that are made to be shared.
const SHARED: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults", ".schema"];

/// Whether a file of this name usually holds secrets.
pub fn is_secret_name(name: &[u8]) -> bool {
    let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
    if lower.starts_with(".env.") {
        return !SHARED.iter().any(|ending| lower.ends_with(ending));
    }
    NAMES.contains(&lower.as_str())
        || ENDINGS.iter().any(|ending| lower.len() > ending.len() && lower.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for secret in [".env", ".env.local", ".ENV.production", "id_ed25519", "server.pem", "tls.key", ".netrc"] {
            assert!(is_secret_name(secret.as_bytes()), "{secret}");
        }
        for plain in
            [".env.example", ".env.sample", "environment", "key", ".pem", "id_rsa.pub", "keys.rs", "package.json"]
        {
            assert!(!is_secret_name(plain.as_bytes()), "{plain}");
        }
    }
}
