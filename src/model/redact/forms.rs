//! Finds secrets by what they look like: prefixes of tokens, URLs, headers, keys and hashes.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::shape::{Spans, is_dense, is_reference};

/// A form: in which texts it is looked for (one of these, in small letters, must be there), and the pattern. Group 1 is
/// the secret; without a group 1 the whole match is.
pub(super) type Form = (&'static [&'static str], &'static str);

/// Forms with a structure around the secret.
const AROUND: &[Form] = &[
    // URLs
    (&["@"], r#"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@'"]*:([^\s/'"]+)@"#),
    (&["@"], r#"https?://([^\s/:@'"]+)@"#),
    (&["hooks.slack.com"], r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]+)"),
    (&["/webhooks/"], r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([A-Za-z0-9_-]+)"),
    (&["webhook.office.com"], r"webhook\.office\.com/webhookb2/([^\s'\x22]+)"),
    (&["api.telegram.org"], r"api\.telegram\.org/bot([A-Za-z0-9:_-]+)"),
    // headers
    (&["authorization"], r#"(?i)["'](?:proxy-)?authorization\s*:\s*([^"'\n]+)"#),
    (&["authorization"], r#"(?i)\b(?:proxy-)?authorization\s*:\s*((?:[a-z]+\s+)?[^\s'"]+)"#),
    (&["bearer"], r"(?i)\bbearer\s+([a-z0-9._~+/=-]{8,})"),
    (&["cookie"], r#"(?i)["'](?:set-)?cookie\s*:\s*([^"'\n]+)"#),
    (&["cookie"], r#"(?i)\b(?:set-)?cookie:\s*([^\s'"]+=[^\s'"]+)"#),
    (&["x-amz-", "x-goog-"], r"(?i)\bx-(?:amz|goog)-(?:signature|security-token|credential)[=:]\s*([^\s&'\x22]+)"),
    // keys
    (&["private key"], r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(.*?)(?:-----END|\z)"),
    (&["b3blbnnzac1rzxktdj"], r"\b(b3BlbnNzaC1rZXktdj[A-Za-z0-9+/=]+)"),
    (&["age-secret-key-"], r"\b(AGE-SECRET-KEY-1[A-Z0-9]{8,})"),
    // files and scripts
    (&["password"], r#"(?i)(?:\b|\\n)login(?:\s|\\n)+\S+?(?:\s|\\n)+password(?:\s|\\n)+([^\s'"\\]+)"#),
    (&["set password"], r#"(?i)\bset\s+password\b[^=;'"]*=\s*(?:password\s*\(\s*)?('[^']+'|"[^"]+")"#),
    (&["sonar.login"], r"sonar\.login=([^\s'\x22]+)"),
    (&["send "], r#"\bsend\s+(?:--\s+)?["']([^"'$]+?)\\[rn]["']"#),
    (&["pgpass"], r#"[A-Za-z0-9.*_-]+:(?:\d+|\*):[A-Za-z0-9*_-]+:[A-Za-z0-9*_-]+:([^\s'"]+)"#),
    (
        &["$apr1$", "$2", "$5$", "$6$", "$y$", "$argon2", "{ssha}"],
        r"(\$(?:apr1|2[abxy]|5|6|y|argon2[a-z]*)\$[./A-Za-z0-9$=,+-]{10,}|\{SSHA\}[A-Za-z0-9+/=]{10,})",
    ),
    (&["accountkey", "sharedaccess"], r"(?i)\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([^\s;'\x22]+)"),
    (&["securestring"], r#"(?i)ConvertTo-SecureString\s+(?:-String\s+)?("[^"$]+"|'[^']+')"#),
    (
        &["pscredential", "networkcredential"],
        r#"(?i)(?:PS|Network)Credential\s*\(\s*["'][^"']*["']\s*,\s*(["'][^"'$]+["'])"#,
    ),
    (&["net user", "net use"], r"(?i)\bnet\s+user\s+\S+\s+([^\s/]\S*)"),
    (&["net use"], r"(?i)\bnet\s+use\s+(?:\S+\s+)?\\\\\S+\s+([^\s/]\S*)"),
    (&["open -u"], r"\bopen\s+-u\s+[^\s,]+,([^\s'\x22]+)"),
    (&["ftp "], r"(?m)^\s*user\s+\S+\s+(\S+)\s*$"),
    (&["auth "], r#"(?:^|["'\n])AUTH\s+(?:PLAIN\s+)?([^\s'"]*[0-9][^\s'"]*)"#),
    // calls in code: what stands behind a name of a user
    (&["auth"], r#"(?i)\bauth\s*=\s*\(\s*\\?["'][^"'\\]*\\?["']\s*,\s*\\?["']([^"'$\\]+)"#),
    (&["auth("], r#"(?i)(?:basic|digest)_?auth\(\s*\\?["'][^"'\\]*\\?["']\s*,\s*\\?["']([^"'$\\]+)"#),
    (&[".login("], r#"(?i)\.login\(\s*\\?["'][^"'\\]*\\?["']\s*,\s*\\?["']([^"'$\\]+)"#),
    (&["new pdo("], r#"(?i)new\s+pdo\([^,()]*,\s*\\?["'][^"'\\]*\\?["']\s*,\s*\\?["']([^"'$\\]+)"#),
    (&["password("], r#"(?i)set_?password\(\s*\\?["']([^"'$\\]+)"#),
    (&["credentials("], r#"(?i)credentials\(\s*(?:"[^"]*"\s*,\s*){3}"([^"]+)"#),
    // values of structures
    (&["stringdata"], r#"(?i)\\?"stringData\\?"\s*:\s*\{([^{}]+)\}"#),
    (&["sops"], r#"\bsops\s[^\n;|&]*?--set[\s=]+["']?\[[^\n]*?\]\s+\\?"([^"\\]+)"#),
    (&["sops"], r#"\bsops\s+set\s+\S+\s+["']?\[[^\n]*?\]["']?\s+["']?\\?"([^"'\\]+)"#),
    (&["setuser"], r#"(?i)\bsetuser\s[^\n;|]*?[\s'"]>([^\s'"]+)"#),
    (&["extraheader"], r#"(?i)extraheader=["']?(?:authorization:\s*)?([^"'\n]+)"#),
];

/// Tokens that carry their own prefix. Each begins at the start of a word.
pub(super) const TOKENS: &[Form] = &[
    (&["akia", "asia", "abia", "acca"], r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    (&["aiza"], r"AIza[A-Za-z0-9_-]{20,}"),
    (&["ya29."], r"ya29\.[A-Za-z0-9_-]{10,}"),
    (&["gocspx-"], r"GOCSPX-[A-Za-z0-9_-]{10,}"),
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{16,}"),
    (&["github_pat_"], r"github_pat_[A-Za-z0-9_]{16,}"),
    (
        &[
            "glpat-", "glptt-", "gldt-", "glrt-", "glrtr-", "glsoat-", "glft-", "glimt-", "glagent-", "glcbt-",
            "glffct-", "gloas-",
        ],
        r"gl(?:pat|ptt|dt|rt|rtr|soat|ft|imt|agent|cbt|ffct|oas)-[A-Za-z0-9_.-]{12,}",
    ),
    (&["xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"], r"xox[a-z]-[A-Za-z0-9-]{8,}"),
    (&["xapp-"], r"xapp-\d-[A-Za-z0-9-]{8,}"),
    (&["k_live_", "k_test_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{8,}"),
    (&["whsec_"], r"whsec_[A-Za-z0-9+/=]{8,}"),
    (&["sk-"], r"sk-(?:ant-|proj-|or-|svcacct-|admin-)[A-Za-z0-9_-]{8,}"),
    (&["hf_"], r"hf_[A-Za-z0-9]{16,}"),
    (&["r8_"], r"r8_[A-Za-z0-9]{20,}"),
    (&["gsk_"], r"gsk_[A-Za-z0-9]{20,}"),
    (&["npm_"], r"npm_[A-Za-z0-9]{16,}"),
    (&["dckr_"], r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    (&["rubygems_"], r"rubygems_[a-f0-9]{16,}"),
    (&["cio"], r"cio[A-Za-z0-9]{32}"),
    (&["oy2"], r"oy2[a-z0-9]{43}"),
    (&["sg."], r"SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}"),
    (&["key-"], r"key-[0-9a-f]{32}"),
    (&["-us"], r"[0-9a-f]{32}-us\d{1,2}"),
    (&["sk", "ac"], r"(?:SK|AC)[0-9a-f]{32}"),
    (&["_v1_"], r"do[por]_v1_[a-f0-9]{32,}"),
    (&["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}"),
    (&["sq0"], r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{16,}"),
    (&["eyj"], r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{8,}"),
    (&["dapi"], r"dapi[a-f0-9]{32}"),
    (&["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{16,}"),
    (&[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{20,}"),
    (&["lin_"], r"lin_(?:api|oauth)_[A-Za-z0-9]{16,}"),
    (&["ntn_"], r"ntn_[A-Za-z0-9]{20,}"),
    (&["pmak-"], r"PMAK-[A-Za-z0-9-]{16,}"),
    (&["nrak-"], r"NRAK-[A-Z0-9]{16,}"),
    (&["glc_", "glsa_"], r"gl(?:c|sa)_[A-Za-z0-9_+/=]{16,}"),
    (&["sntry"], r"sntry[su]_[A-Za-z0-9_+/=.-]{16,}"),
    (&["pul-"], r"pul-[a-f0-9]{32,}"),
    (&["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{16,}"),
    (&["sbp_", "sb_secret_"], r"(?:sbp_|sb_secret_)[A-Za-z0-9_-]{16,}"),
    (&["atatt3"], r"ATATT3[A-Za-z0-9_=-]{16,}"),
    (&["atbb"], r"ATBB[A-Za-z0-9]{20,}"),
    (&["figd_"], r"figd_[A-Za-z0-9_-]{16,}"),
    (&["fo1_"], r"fo1_[A-Za-z0-9_-]{16,}"),
    (&["fm1r_", "fm1a_", "fm2_"], r"fm(?:1[ar]|2)_[A-Za-z0-9+/=_-]{16,}"),
    (&["ops_eyj"], r"ops_eyJ[A-Za-z0-9+/=_-]{16,}"),
    (&["ezak", "eztk"], r"EZ[AT]K[A-Za-z0-9]{32,}"),
    (&["eaacedeose0cba"], r"EAACEdEose0cBA[A-Za-z0-9]{10,}"),
    (&["nfp_"], r"nfp_[A-Za-z0-9]{20,}"),
    (&["hrku-"], r"HRKU-[A-Za-z0-9_-]{16,}"),
    (&["tskey-"], r"tskey-[a-z]+-[A-Za-z0-9-]{8,}"),
    (&["dt0c01."], r"dt0c01\.[A-Z0-9]{16,}\.[A-Z0-9]{16,}"),
    (&["xkeysib-"], r"xkeysib-[a-f0-9]{32,}(?:-[A-Za-z0-9]+)?"),
    (&["8q~"], r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{30,}"),
    (&["1//0"], r"1//0[A-Za-z0-9_-]{20,}"),
    (&["aaaaaaaaa"], r"AAAAAAAAA[A-Za-z0-9%]{30,}"),
    (&[":aa"], r"\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    (&["."], r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    (&["pat"], r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    (&["ccipat_"], r"CCIPAT_[A-Za-z0-9_]{16,}"),
];

/// Prefixes that words of people have too: what follows must look generated.
pub(super) const LOOSE: &[Form] = &[
    (&["sk-"], r"sk-[A-Za-z0-9_-]{16,}"),
    (
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{16,}",
    ),
    (&["pypi-"], r"pypi-[A-Za-z0-9_-]{16,}"),
    (&["xai-", "pplx-"], r"(?:xai|pplx)-[A-Za-z0-9]{16,}"),
    (&["secret_"], r"secret_[A-Za-z0-9]{32,}"),
];

static COMPILED: LazyLock<Vec<Vec<OnceRegex>>> =
    LazyLock::new(|| [AROUND, TOKENS, LOOSE].map(|forms| forms.iter().map(|_| OnceRegex::new()).collect()).into());

/// Compiling one pattern costs more than asking most: each is compiled when a text first calls for it.
type OnceRegex = std::sync::OnceLock<Option<Regex>>;

/// Signs of so many letters stand in many words: they count where a long run of letters and digits does too.
const SHORT_SIGN: usize = 3;
const LONG_RUN: usize = 18;

/// The shortest token.
const RUN: usize = 13;

/// Returns the longest run of letters, digits, `_`, `-` and `.`.
fn longest_run(text: &str) -> usize {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.as_bytes().split(|byte| !is_part(*byte)).map(<[u8]>::len).max().unwrap_or(0)
}

/// Notes all secrets that are known by their form.
pub(super) fn find(text: &str, spans: &mut Spans) {
    let small = text.to_ascii_lowercase();
    let run = longest_run(text);
    let counts = |sign: &&str| sign.len() > SHORT_SIGN || run >= LONG_RUN || sign.contains(['$', ':', '2', '@']);
    for (group, forms) in [AROUND, TOKENS, LOOSE].into_iter().enumerate() {
        if group > 0 && run < RUN {
            continue;
        }
        for (at, (signs, pattern)) in forms.iter().enumerate() {
            if signs.iter().any(|sign| counts(sign) && small.contains(sign)) {
                let compiled = COMPILED[group][at].get_or_init(|| compile(group, pattern));
                if let Some(regex) = compiled {
                    matches(regex, group, text, spans);
                }
            }
        }
    }
}

/// Compiles a pattern. The prefix of a token begins a word.
fn compile(group: usize, pattern: &str) -> Option<Regex> {
    let whole = if group == 0 { pattern.to_owned() } else { format!(r"(?:^|[^A-Za-z0-9_])({pattern})") };
    // A test compiles every pattern: none is left out.
    Regex::new(&whole).ok()
}

fn matches(regex: &Regex, group: usize, text: &str, spans: &mut Spans) {
    for found in regex.captures_iter(text) {
        let Some(secret) = found.get(1) else { continue };
        let span: Range<usize> = secret.range();
        let is_loose = group == 2;
        if !is_reference(secret.as_str()) && (!is_loose || is_dense(secret.as_str())) {
            spans.push(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_has_its_signs_in_small_letters() {
        for (group, forms) in [AROUND, TOKENS, LOOSE].into_iter().enumerate() {
            for (signs, pattern) in forms {
                assert!(compile(group, pattern).is_some(), "{pattern}");
                assert!(!signs.is_empty() && signs.iter().all(|sign| **sign == sign.to_ascii_lowercase()), "{pattern}");
            }
        }
    }
}
