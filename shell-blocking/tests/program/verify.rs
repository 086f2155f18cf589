//! `sealog verify`.

use sealog_core::RegionId;
use serde_json::{Value, json};

use crate::made::{Log, make};
use crate::program::run;

fn verify(log: &Log) -> (Option<i32>, Vec<Value>) {
    let ran = run(["verify", &log.at(), "--format", "json"]);
    assert_eq!(ran.err, "");
    (ran.code, ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn a_sound_log_has_no_problem() {
    let log = Log::new();
    let before = log.all();
    assert_eq!(verify(&log), (Some(0), vec![json!({"objects": 9, "problems": 0})]));
    assert_eq!(run(["verify", &log.at()]).good(), "9 objects, no problem\n");
    assert_eq!(log.all(), before, "it only reads");
}

#[test]
fn every_problem_of_every_object_is_reported() {
    let log = Log::new();
    log.damage_segment(3, RegionId(7));
    log.damage_segment(3, RegionId(8));
    log.damage_header(4);
    log.damage_segment(4, RegionId(7));
    log.damage_footer(9);
    // The checksum of the whole object alone.
    let mut bytes = log.bytes(12);
    let at = bytes.len() - 12;
    bytes[at] ^= 1;
    std::fs::write(log.file(12), bytes).unwrap();
    let (code, rows) = verify(&log);
    assert_eq!(code, Some(1));
    let (summary, problems) = rows.split_last().unwrap();
    let found: Vec<_> = problems
        .iter()
        .map(|row| {
            let name = row["key"].as_str().unwrap().rsplit('/').next().unwrap();
            let sequence: u64 = name.trim_end_matches(".wal").parse().unwrap();
            (sequence, row["part"].as_str().unwrap(), row["region"].as_u64())
        })
        .collect();
    let expected = [
        (3, "segment", Some(7)),
        (3, "segment", Some(8)),
        (4, "header", None),
        (4, "segment", Some(7)),
        (9, "footer", None),
        (12, "trailer", None),
    ];
    assert_eq!(found[..6], expected);
    // With 4 gone from the chain, what follows it proves that history is lost.
    assert!(problems[6..].iter().all(|row| row["part"] == "object"), "{problems:#?}");
    assert_eq!(*summary, json!({"objects": 9, "problems": problems.len()}));
    assert!(problems[0]["problem"].as_str().unwrap().starts_with("expected checksum"));
}

#[test]
fn ids_that_do_not_ascend_along_the_chain_are_a_problem() {
    let log = Log::empty();
    log.put(make(0, 1, (0, 1)).writer("claim"));
    for (sequence, after) in [(1, (0, 1)), (2, (1, 1))] {
        log.put(make(sequence, 1, after).boundary(1).entries(7, 1));
    }
    // The same entries once more, in a later object.
    let header = sealog_core::format::Header {
        sequence: sealog_core::ObjectSeq(3),
        epoch: sealog_core::Epoch(1),
        predecessor: Some(sealog_core::Link {
            sequence: sealog_core::ObjectSeq(2),
            epoch: sealog_core::Epoch(1),
        }),
        boundary: sealog_core::ObjectSeq(1),
    };
    let mut object = sealog_core::format::ObjectEncoder::new();
    object.push(RegionId(7), crate::made::id(2, 1), &"x".into());
    std::fs::write(log.file(3), object.finish(&header).0.to_bytes()).unwrap();
    let (code, rows) = verify(&log);
    assert_eq!((code, rows.len()), (Some(1), 2), "{rows:#?}");
    assert_eq!((&rows[0]["part"], &rows[0]["region"]), (&json!("segment"), &json!(7)));
}

#[test]
fn for_people_there_is_a_table_and_a_sum() {
    let log = Log::new();
    log.damage_segment(10, RegionId::RELEASES);
    let ran = run(["verify", &log.at(), "--jobs", "1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("release records"), "{}", ran.out);
    assert!(ran.out.ends_with("9 objects, 1 problem\n"), "{}", ran.out);
}
