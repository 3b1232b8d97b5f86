//! File names that usually hold secrets. Letter case does not matter.
//!
//! Only names that almost always mean a secret are here: a restore keeps a secret that stands there, unless it is named.
//! So `config.json` is plain, but for that of Docker.

use crate::model::words::{SECRET_FILE_ENDINGS, SECRET_FILE_NAMES, SECRET_FILE_PATHS, SHARED_ENV_ENDINGS};

/// Returns whether a *file* at this path is taken for a secret. Only its name and the directory in which it lies count.
pub fn is_secret(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    let in_place = |secret: &&str| {
        let (dir, file) = secret.split_once('/').unwrap_or_default();
        name.eq_ignore_ascii_case(file.as_bytes())
            && parts.clone().next().is_some_and(|parent| parent.eq_ignore_ascii_case(dir.as_bytes()))
    };
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    let ends = |ending: &str| {
        name.len() > ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
    };
    let env = name.len() > 5 && name[..5].eq_ignore_ascii_case(b".env.");
    (env && !SHARED_ENV_ENDINGS.iter().any(|ending| ends(ending)))
        || SECRET_FILE_NAMES.iter().any(|secret| is(secret))
        || SECRET_FILE_ENDINGS.iter().any(|ending| ends(ending))
        || SECRET_FILE_PATHS.iter().any(in_place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        let secrets = ".env .ENV .env.local .env.production .envrc id_rsa id_ed25519 server.pem tls.KEY a.p12 x.jks \
                       .netrc .npmrc .pypirc credentials.json vault.kdbx .htpasswd terraform.tfstate prod.tfstate.backup \
                       terraform.tfvars infra/prod.auto.tfvars k8s/secrets.yaml secrets.YML kubeconfig prod.kubeconfig \
                       .aws/credentials home/.kube/config .docker/config.json .config/gh/hosts.yml a/.cargo/credentials.toml \
                       a/b/.env";
        for name in secrets.split_whitespace() {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        let plain = ".env.example .env.sample .env.local.template .env.dist env .environment id_rsa.pub main.rs key \
                     .key keys.rs monkey config.json .pem variables.tf dev.tfvars credentials aws/credentials .aws/config \
                     .kube/x/config hosts.yml .env/main.py .tfstate secrets.rs secrets/a.yaml";
        for name in plain.split_whitespace() {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
