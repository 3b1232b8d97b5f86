//! The git door by variables alone: `GIT_CONFIG_COUNT` and its like, which a git reads as settings, and all that it starts.

use std::ffi::OsString;

use super::KEY;

/// The variable with the number of settings.
pub const COUNT: &str = "GIT_CONFIG_COUNT";

/// Returns the variables by which [`KEY`] has a value, beside the settings that an environment has already. `None` where one of these
/// is about the same setting, or git itself could not read them.
pub fn variables(value: OsString, environment: &dyn Fn(&str) -> Option<OsString>) -> Option<[(String, OsString); 3]> {
    let count = environment(COUNT).unwrap_or_default();
    let count: u16 = if count.is_empty() { 0 } else { count.to_str()?.parse().ok()? };
    let is_same = |key: OsString| key.eq_ignore_ascii_case(KEY);
    if (0..count).any(|at| environment(&format!("GIT_CONFIG_KEY_{at}")).is_none_or(is_same)) {
        return None;
    }
    // The settings of `git -c`.
    let further = environment("GIT_CONFIG_PARAMETERS").unwrap_or_default();
    if further.to_string_lossy().to_lowercase().contains(KEY) {
        return None;
    }
    Some([
        (format!("GIT_CONFIG_KEY_{count}"), KEY.into()),
        (format!("GIT_CONFIG_VALUE_{count}"), value),
        (COUNT.to_owned(), (count.checked_add(1)?).to_string().into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_there_stay() {
        type Environment = &'static [(&'static str, &'static str)];
        let table: [(Environment, Option<&str>); 9] = [
            (&[], Some("0")),
            (&[(COUNT, "")], Some("0")),
            (&[(COUNT, "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "x")], Some("1")),
            (&[(COUNT, "1"), ("GIT_CONFIG_KEY_0", "Core.FSMonitor"), ("GIT_CONFIG_VALUE_0", "false")], None),
            // git itself refuses these.
            (&[(COUNT, "1")], None),
            (&[(COUNT, "x")], None),
            (&[(COUNT, "-1")], None),
            (&[("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='true'")], None),
            (&[("GIT_CONFIG_PARAMETERS", "'user.name'='x'")], Some("0")),
        ];
        for (environment, at) in table {
            let look = |name: &str| environment.iter().find(|(own, _)| *own == name).map(|(_, text)| text.into());
            let found = variables("v".into(), &look);
            assert_eq!(
                found.as_ref().map(|found| found[0].0.as_str()),
                at.map(|at| format!("GIT_CONFIG_KEY_{at}")).as_deref(),
                "{environment:?}"
            );
            let Some([(_, key), (_, text), (_, count)]) = found else { continue };
            assert_eq!((key, text), (KEY.into(), "v".into()));
            assert_eq!(count.to_str().unwrap().parse::<u16>().unwrap(), at.unwrap().parse::<u16>().unwrap() + 1);
        }
    }
}
