//! What an opening must know of the process that it runs in.

use std::sync::Arc;
use std::time::SystemTime;

use sealog_core::Error;
use sealog_core::opening::Identity;

/// A new identity: a random nonce, the wall-clock time, and `host:process` for a writer without a
/// name of its own. Each opening needs another one.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the system has no randomness to give: without it two openings
/// could pass for one.
pub fn identity() -> Result<Identity, Error> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| Error::InvalidOptions {
        option: "nonce",
        value: error.to_string().into(),
        allowed: "16 random bytes from the operating system",
    })?;
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Identity {
        nonce,
        opened_at_millis: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        default_name: default_name(),
    })
}

fn default_name() -> Arc<str> {
    let host = gethostname::gethostname();
    // A host name has at most 64 bytes on Linux and 255 elsewhere; a name of a writer at most 255.
    let host: String = host.to_string_lossy().chars().take(60).collect();
    format!("{host}:{}", std::process::id()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_identities_differ_and_name_the_process() {
        let (one, other) = (identity().unwrap(), identity().unwrap());
        assert_ne!(one.nonce, other.nonce);
        assert!(one.opened_at_millis > 1_700_000_000_000);
        assert!(one.default_name.ends_with(&format!(":{}", std::process::id())));
        assert!((1..=255).contains(&one.default_name.len()));
    }
}
