//! File names that usually hold secrets. Letter case does not matter.
//!
//! Only names that almost always mean a secret are here: a file left out cannot be brought back, so that `*.tfstate`,
//! `config.json` or `secrets.yaml` are captured.

use crate::model::words::{SECRET_FILE_ENDINGS, SECRET_FILE_NAMES, SHARED_ENV_ENDINGS};

/// Returns whether a *file* of this name is taken for a secret.
pub fn is_secret(name: &[u8]) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let ends = |ending: &str| {
        name.len() > ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
    };
    let env = name.len() > 5 && name[..5].eq_ignore_ascii_case(b".env.");
    (env && !SHARED_ENV_ENDINGS.iter().any(|ending| ends(ending)))
        || SECRET_FILE_NAMES.iter().any(|secret| is(secret))
        || SECRET_FILE_ENDINGS.iter().any(|ending| ends(ending))
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
