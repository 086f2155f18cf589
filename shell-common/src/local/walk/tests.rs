use futures_executor::block_on;

use super::*;

fn walk(directory: &std::path::Path, after: Option<&str>) -> Walk {
    let key = Path::from("log/objects");
    Walk::new(directory.to_owned(), key, after.map(Path::from), Arc::default())
}

fn found(stream: BoxStream<'static, Result<ObjectMeta>>) -> Vec<(String, u64)> {
    let found: Vec<_> = block_on(stream.try_collect()).unwrap();
    let mut found: Vec<_> = found
        .into_iter()
        .map(|meta: ObjectMeta| {
            (meta.location.as_ref().strip_prefix("log/objects/").unwrap().to_owned(), meta.size)
        })
        .collect();
    found.sort();
    found
}

fn of(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    names.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

#[test]
fn a_listing_shows_files_with_their_sizes_and_passes_over_what_is_none() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path();
    for (name, bytes) in [("0", "a"), ("1", "bc"), ("my notes", ""), ("2#1", "half"), ("2#x", "x")]
    {
        fs::write(directory.join(name), bytes).unwrap();
    }
    fs::create_dir(directory.join("below")).unwrap();
    fs::write(directory.join("below/3"), "def").unwrap();
    let expected = of(&[("0", 1), ("1", 2), ("2#x", 1), ("below/3", 3), ("my notes", 0)]);
    assert_eq!(found(walk(directory, None).in_parts()), expected);
    let after = walk(directory, Some("log/objects/1")).in_parts();
    assert_eq!(found(after), expected[2..]);
    assert_eq!(found(walk(&directory.join("missing"), None).in_parts()), of(&[]));
    assert!(block_on(walk(&directory.join("0"), None).in_parts().try_collect::<Vec<_>>()).is_err());
}

#[test]
fn a_large_directory_is_read_in_parts() {
    let parent = tempfile::tempdir().unwrap();
    let count = 2 * PART + 1;
    for name in 0..count {
        fs::write(parent.path().join(name.to_string()), "").unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let listing = async { walk(parent.path(), None).in_parts().try_collect::<Vec<_>>().await };
    assert_eq!(runtime.block_on(listing).unwrap().len(), count);
}

#[cfg(unix)]
#[test]
fn a_name_that_no_key_can_have_is_passed_over_and_told_once() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("0"), "a").unwrap();
    for name in [&b"\xff\xfe.wal"[..], b"a\nb"] {
        fs::write(parent.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let mut walk = walk(parent.path(), None);
    let found: Vec<_> = walk.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(found.len(), 1);
    assert!(walk.told.load(Ordering::Relaxed));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_file_is_the_file_and_one_to_nothing_is_nothing() {
    use std::os::unix::fs::symlink;

    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("objects");
    fs::create_dir(&directory).unwrap();
    fs::write(parent.path().join("file"), "abc").unwrap();
    symlink(parent.path().join("file"), directory.join("0")).unwrap();
    symlink(parent.path().join("missing"), directory.join("1")).unwrap();
    symlink(&directory, directory.join("round")).unwrap();
    assert_eq!(found(walk(&directory, None).in_parts()), of(&[("0", 3)]));
}
