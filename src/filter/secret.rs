//! File names that usually hold secrets. Letter case does not matter.
//!
//! Only names that almost always mean a secret are here: a file left out cannot be brought back, so that `*.tfstate`,
//! `config.json` or `secrets.yaml` are captured.

/// Whole names.
const NAMES: &[&str] = &[
    // Environment files of many frameworks; direnv's.
    ".env",
    ".envrc",
    // OpenSSH private keys.
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    // Passwords and tokens of clients.
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".s3cfg",
    ".boto",
    ".vault-token",
    // Keys of cloud accounts as their consoles name them.
    "credentials.json",
    "client_secret.json",
    "service-account.json",
    "service_account.json",
];

/// Endings.
const ENDINGS: &[&str] = &[
    // Keys and key containers.
    ".pem",
    ".key",
    ".p8",
    ".p12",
    ".pfx",
    ".ppk",
    ".jks",
    ".keystore",
    // Password databases.
    ".kdbx",
];

/// Endings of `.env.*` files that are meant to be shared.
const SHARED: &[&str] = &[".example", ".sample", ".template", ".tmpl", ".dist", ".defaults", ".schema"];

/// Returns whether a *file* of this name is taken for a secret.
pub fn is_secret(name: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let ends = |ending: &str| {
        name.len() > ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
    };
    let env = name.len() > 5 && name[..5].eq_ignore_ascii_case(b".env.");
    (env && !SHARED.iter().any(|ending| ends(ending)))
        || NAMES.iter().any(|secret| is(secret))
        || ENDINGS.iter().any(|ending| ends(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        let secrets = ".env .ENV .env.local .env.production .envrc id_rsa id_ed25519 server.pem tls.KEY a.p12 x.jks \
                       .netrc .npmrc .pypirc credentials.json vault.kdbx .htpasswd";
        for name in secrets.split_whitespace() {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        let plain = ".env.example .env.sample .env.local.template .env.dist env .environment id_rsa.pub main.rs key \
                     .key keys.rs monkey terraform.tfstate config.json .pem";
        for name in plain.split_whitespace() {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
