//! `sealog regions` and `sealog held`.

use expect_test::expect;
use sealog_blocking::{Options, RegionId, Wal};

use crate::logs::lived_in;
use crate::program::run;

#[test]
fn regions_are_shown_with_what_they_hold() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let log = log.to_str().unwrap();
    expect![[r#"
        region  entries  bytes  first id   last id  released through  objects
             2        3     86   3145729  10485761  -                       3
             3        3     83   4194305  11534337  -                       3
             4        1     29   8388609   8388609  -                       1
    "#]]
    .assert_eq(&run(["regions", log]).good());
    expect![[r#"
        {"region":2,"entries":3,"bytes":86,"first_id":3145729,"last_id":10485761,"released_through":0,"objects":3}
        {"region":3,"entries":3,"bytes":83,"first_id":4194305,"last_id":11534337,"released_through":0,"objects":3}
        {"region":4,"entries":1,"bytes":29,"first_id":8388609,"last_id":8388609,"released_through":0,"objects":1}
    "#]].assert_eq(&run(["regions", log, "--format=json"]).good());
}

#[test]
fn what_was_released_of_a_region_does_not_count() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let wal = Wal::open_local(&log, Options::default()).unwrap();
    let [a, b] = [RegionId(1), RegionId(2)];
    // Entries of both in one object, so that nothing is collected.
    wal.append_batch(vec![(a, "one".into()), (a, "two".into()), (b, "three".into())]).unwrap();
    wal.release(a).unwrap();
    wal.append(a, "four").unwrap();
    wal.stop().unwrap();
    let out = run(["regions", log.to_str().unwrap(), "--format=json"]).good();
    expect![[r#"
        {"region":1,"entries":1,"bytes":28,"first_id":3145729,"last_id":3145729,"released_through":1048578,"objects":1}
        {"region":2,"entries":1,"bytes":29,"first_id":1048577,"last_id":1048577,"released_through":0,"objects":1}
    "#]].assert_eq(&out);
}

#[test]
fn what_holds_the_boundary_is_shown_with_what_it_would_free() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let log = log.to_str().unwrap();
    expect![[r#"
        boundary  object  region  frees objects  frees bytes  together objects  together bytes
               3       3       2              1          167                 1             167
               3       4       3              0            0                 4             696
               3       8       4              0            0                 8           1,454
    "#]]
    .assert_eq(&run(["held", log]).good());
    expect![[r#"
        {"boundary":3,"object":3,"region":2,"frees_objects":1,"frees_bytes":167,"together_objects":1,"together_bytes":167}
        {"boundary":3,"object":4,"region":3,"frees_objects":0,"frees_bytes":0,"together_objects":4,"together_bytes":696}
        {"boundary":3,"object":8,"region":4,"frees_objects":0,"frees_bytes":0,"together_objects":8,"together_bytes":1454}
    "#]].assert_eq(&run(["held", log, "--format=json"]).good());
}

#[test]
fn a_log_that_nothing_holds_still_has_a_boundary() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    Wal::open_local(&log, Options::default()).unwrap().stop().unwrap();
    let log = log.to_str().unwrap();
    expect![[r#"
        boundary  object  region  frees objects  frees bytes  together objects  together bytes
               1  -       -                   0            0                 0               0
    "#]]
    .assert_eq(&run(["held", log]).good());
    expect![[r#"
        {"boundary":1,"object":null,"region":null,"frees_objects":0,"frees_bytes":0,"together_objects":0,"together_bytes":0}
    "#]].assert_eq(&run(["held", log, "--format=json"]).good());
    assert_eq!(run(["regions", log]).good(), "");
}
