use std::thread;
use std::time::{Duration, Instant};

use sealog_blocking::{Error, Options, Outcome, Read, Submitted, SubmittedBatch, Wal};

use crate::{A, open, payloads, slow};

#[test]
fn handles_and_what_they_give_may_go_to_other_threads() {
    fn goes_anywhere<T: Send + Sync + 'static>() {}
    fn goes<T: Send + 'static>() {}
    goes_anywhere::<Wal>();
    goes::<Submitted>();
    goes::<SubmittedBatch>();
    goes::<Read>();
}

#[test]
fn an_append_without_an_answer_is_waited_for_as_long_as_is_said() {
    let wal = slow();
    let mut submitted = wal.submit(A, "1");
    let mut batch = wal.submit_batch(vec![(A, "2".into()), (A, "3".into())]);
    assert!(submitted.try_wait().is_none());
    assert!(batch.try_wait().is_none());
    let began = Instant::now();
    let timeout = Duration::from_millis(20);
    assert!(submitted.wait_timeout(timeout).is_none());
    assert!(batch.wait_timeout(timeout).is_none());
    assert!(began.elapsed() >= 2 * timeout, "{:?}", began.elapsed());

    wal.flush().unwrap();
    let id = submitted.wait_timeout(Duration::MAX).unwrap().unwrap();
    let ids = batch.wait_timeout(Duration::MAX).unwrap().unwrap();
    assert!(id < ids[0] && ids[0] < ids[1]);
    // It keeps its answer.
    assert_eq!(submitted.try_wait().unwrap().unwrap(), id);
    assert_eq!(submitted.wait().unwrap(), id);
    assert_eq!(batch.try_wait().unwrap().unwrap(), ids);
    assert_eq!(batch.wait().unwrap(), ids);
}

#[test]
fn an_append_that_fails_keeps_its_answer_too() {
    let wal = open(Options { max_append_bytes: 1, ..Options::default() });
    let mut submitted = wal.submit(A, "too large");
    for _ in 0..2 {
        let error = submitted.wait_timeout(Duration::MAX).unwrap().unwrap_err();
        assert!(matches!(error.error(), Error::AppendTooLarge { .. }), "{error}");
    }
    assert_eq!(submitted.wait().unwrap_err().outcome(), Outcome::NotWritten);
}

#[test]
fn a_thread_that_waits_is_answered_when_the_last_handle_is_dropped() {
    let wal = slow();
    let mut asked = wal.submit(A, "given up");
    assert!(asked.try_wait().is_none());
    let submitted = wal.submit(A, "waited for");
    let waiting = thread::spawn(|| submitted.wait());
    drop(wal);
    for answer in [waiting.join().unwrap(), asked.wait()] {
        let error = answer.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
    }
}

#[test]
fn threads_that_wait_side_by_side_are_all_answered() {
    let wal = slow();
    thread::scope(|scope| {
        let appends: Vec<_> = (0..20).map(|_| scope.spawn(|| wal.append(A, "1"))).collect();
        // Each of them is submitted once its entry is open.
        while wal.stats().unwrap().appends_total < 21 {
            thread::sleep(Duration::from_millis(1));
        }
        let flushes: Vec<_> = (0..5).map(|_| scope.spawn(|| wal.flush())).collect();
        for flush in flushes {
            flush.join().unwrap().unwrap();
        }
        for append in appends {
            append.join().unwrap().unwrap();
        }
    });
    assert_eq!(payloads(&wal).len(), 21);
}

#[test]
fn a_read_keeps_its_log_open_and_ends_once() {
    let wal = slow();
    let mut read = wal.read(A, Default::default());
    drop(wal);
    assert!(read.next().unwrap().is_ok());
    for _ in 0..2 {
        assert!(read.next().is_none());
    }
}

#[test]
fn a_handle_shows_its_log() {
    let wal = slow();
    let shown = format!("{wal:?} {:?}", wal.read(A, Default::default()));
    assert!(shown.contains("Wal { prefix: \"logs/a\", epoch: 1, .. }"), "{shown}");
    assert!(shown.contains("Read {"), "{shown}");
}
