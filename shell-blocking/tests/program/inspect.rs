//! `sealog inspect`.

use expect_test::expect;
use sealog_core::RegionId;
use serde_json::Value;

use crate::made::{Log, make};
use crate::program::run;

fn inspect(log: &Log) -> (Option<i32>, Vec<Value>, String) {
    let ran = run(["inspect", &log.at(), "--format", "json"]);
    let rows = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran.code, rows, ran.err)
}

/// A row without what depends on the time.
fn timeless(mut row: Value) -> String {
    assert!(row.as_object_mut().unwrap().remove("modified").unwrap().is_u64());
    row.to_string()
}

fn of<'a>(rows: &'a [Value], field: &str) -> Vec<&'a Value> {
    rows.iter().map(|row| &row[field]).collect()
}

#[test]
fn each_object_is_a_line_of_json() {
    let log = Log::new();
    let before = log.all();
    let (code, rows, err) = inspect(&log);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let kinds = ["data", "data", "data", "claim", "start", "data", "release", "data", "data"];
    assert_eq!(of(&rows, "kind"), kinds);
    let statuses =
        ["chain", "chain", "orphan", "orphan", "chain", "chain", "chain", "orphan", "chain"];
    assert_eq!(of(&rows, "status"), statuses);
    let tips: Vec<_> =
        rows.iter().filter(|row| row["tip"] == true).map(|row| &row["seq"]).collect();
    assert_eq!(tips, [12]);
    expect![[r#"{"boundary":3,"bytes":320,"epoch":1,"error":null,"kind":"data","prev":{"epoch":1,"seq":2},"regions":[{"entries":3,"length":78,"max_id":3145731,"min_id":3145729,"offset":54,"region":7},{"entries":2,"length":56,"max_id":3145730,"min_id":3145729,"offset":132,"region":8}],"seq":3,"status":"chain","tip":false,"writer":null}"#]].assert_eq(&timeless(rows[0].clone()));
    expect![[r#"{"boundary":3,"bytes":197,"epoch":9,"error":null,"kind":"start","prev":{"epoch":1,"seq":4},"regions":[],"seq":8,"status":"chain","tip":false,"writer":"node-b"}"#]].assert_eq(&timeless(rows[4].clone()));
    assert_eq!(log.all(), before, "it only reads");
}

#[test]
fn for_people_there_is_a_table_below_the_chain_in_a_line() {
    let log = Log::new();
    log.put(make(13, 9, (12, 9)).boundary(9));
    let out = run(["inspect", &log.at()]).good();
    // Ages and what follows them are left out.
    let head = out.lines().find(|line| line.starts_with("SEQ")).unwrap();
    let width = head.find("AGE").unwrap();
    let fixed = |line: &str| match line.starts_with("chain") {
        true => line.to_owned(),
        false => line.chars().take(width).collect::<String>().trim_end().to_owned(),
    };
    let table: Vec<_> = out.lines().map(fixed).collect();
    expect![[r#"
        chain 4 objects of 1 epoch, tip object 13 of epoch 9, boundary 9 (computed 9)

        SEQ  EPOCH  KIND     STATUS          PREV  BOUNDARY  REGIONS  ENTRIES    BYTES
          3      1  data     below_boundary  2:1          3  7 8            5    320 B
          4      1  data     below_boundary  3:1          3  7              1    172 B
          6      1  data     below_boundary  5:1          3  7              1    172 B
          7      8  claim    below_boundary  7:8          3  -              0    197 B
          8      9  start    below_boundary  4:1          3  -              0    197 B
          9      9  data     chain           8:9          3  7 8 9         43  1.2 KiB
         10      9  release  chain           9:9          3  -              0    183 B
         11      9  data     orphan          10:9         3  9              1    172 B
         12      9  data     chain           10:9         3  9              1    172 B
         13      9  carrier  chain (tip)     12:9         9  -              0     90 B"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn what_does_not_verify_is_said_of_its_object() {
    let log = Log::new();
    log.damage_header(4);
    log.damage_footer(9);
    log.damage_segment(10, RegionId::RELEASES);
    std::fs::write(log.file(11), b"short").unwrap();
    let (code, rows, err) = inspect(&log);
    assert_eq!(code, Some(1), "{err}");
    let statuses: Vec<_> = rows.iter().map(|row| (&row["seq"], &row["status"])).collect();
    let damaged: Vec<_> =
        statuses.iter().filter(|(_, s)| **s == "damaged").map(|(n, _)| *n).collect();
    assert_eq!(damaged, [4, 9, 11]);
    let errors: Vec<_> = rows.iter().filter_map(|row| row["error"].as_str()).collect();
    let parts: Vec<_> = errors.iter().map(|error| error.split(':').next().unwrap()).collect();
    assert_eq!(parts, ["header", "footer", "segment of region 18446744073709551615", "object"]);
    assert!(rows[1]["epoch"].is_null() && !rows[1]["regions"].as_array().unwrap().is_empty());
    assert_eq!(rows[5]["epoch"], 9);
}

#[test]
fn lost_history_is_told_beside_the_rows() {
    let log = Log::new();
    std::fs::remove_file(log.file(9)).unwrap();
    std::fs::remove_file(log.file(8)).unwrap();
    let (code, rows, err) = inspect(&log);
    assert_eq!((code, rows.len()), (Some(1), 7));
    assert!(err.contains("00000000000000000009.wal: object: expected a predecessor"), "{err}");
}

#[test]
fn foreign_files_are_left_alone_and_impossible_sequences_are_named() {
    let log = Log::new();
    let objects = log.path().join("objects");
    for name in ["readme", "7.wal", "00000017592186044416.wal"] {
        std::fs::write(objects.join(name), "x").unwrap();
    }
    let (code, rows, err) = inspect(&log);
    assert_eq!((code, rows.len()), (Some(0), 9));
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("objects/00000017592186044416.wal: ignored"), "{err}");
}

#[test]
fn where_no_log_is_nothing_is_made() {
    for command in ["inspect", "verify", "report", "quarantine"] {
        let log = Log::empty();
        let err = run([command, &log.at()]).failed(2);
        assert!(err.contains("there is no log at"), "{command}: {err}");
        let missing = log.path().join("missing");
        let err = run([command, missing.to_str().unwrap()]).failed(2);
        assert!(err.contains("missing"), "{command}: {err}");
        assert!(!missing.exists() && std::fs::read_dir(log.path()).unwrap().next().is_none());
    }
}
