//! What tests demand and the code does not do yet, with the number of the fault in the issue that
//! will mend it. Such a test asserts that what it shows still fails, so this list can only shrink.

/// The names of rows and tests, and the numbers.
pub const PENDING: &[(&str, u16)] = &[
    ("scripted_s3/an HTML page for a listing of Collected: all, of a refresh", 2),
    ("scripted_s3/an HTML page for a listing of Of(5): all, of a refresh", 2),
    ("scripted_s3/an empty listing for a listing of Collected: all, of a refresh", 2),
    ("scripted_s3/an empty listing for a listing of Of(5): all, of a refresh", 2),
    ("scripted_s3/an error document for a listing of Collected: all, of a refresh", 2),
    ("scripted_s3/an error document for a listing of Of(5): all, of a refresh", 2),
];

/// Those whose names begin like this.
pub fn of(prefix: &str) -> impl Iterator<Item = &'static (&'static str, u16)> {
    PENDING.iter().filter(move |(name, _)| name.starts_with(prefix))
}

/// Judges what became of rows: those that are not pending must have passed, those that are must not.
///
/// # Panics
///
/// Some did not do as they should; the text names them all.
pub fn judge(results: impl IntoIterator<Item = (String, Result<(), String>)>) {
    let mut wrong = Vec::new();
    for (name, result) in results {
        let pending = PENDING.iter().find(|(pending, _)| *pending == name);
        match (pending, result) {
            (None, Ok(())) | (Some(_), Err(_)) => {}
            (None, Err(why)) => wrong.push(format!("{name}: {why}")),
            (Some((_, number)), Ok(())) => wrong.push(format!(
                "{name}: passes now. Remove it from tests/src/pending.rs (fault {number})"
            )),
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a panic says.
pub fn text(panic: Box<dyn std::any::Any + Send>) -> String {
    let said = panic.downcast_ref::<String>().cloned();
    said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "it panicked".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_and_is_pending_is_wrong_and_so_is_what_fails_and_is_not() {
        judge([("passes".into(), Ok(()))]);
        let failing = std::panic::catch_unwind(|| judge([("fails".into(), Err("so".into()))]));
        assert!(text(failing.unwrap_err()).contains("fails: so"));
        if let Some((name, _)) = PENDING.first() {
            judge([((*name).into(), Err("still".into()))]);
            let passing = std::panic::catch_unwind(|| judge([((*name).into(), Ok(()))]));
            assert!(text(passing.unwrap_err()).contains("Remove it"));
        }
    }

    #[test]
    fn no_name_is_pending_twice() {
        let mut names: Vec<_> = PENDING.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
