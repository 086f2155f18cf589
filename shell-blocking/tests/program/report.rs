//! `sealog report`, also as a browser shows it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sealog_core::RegionId;
use serde_json::{Value, json};

use crate::made::{Log, make};
use crate::program::run;

fn report(log: &Log) -> String {
    run(["report", &log.at()]).good()
}

/// Damaged, and with a tip whose boundary leaves some of it behind.
fn damaged() -> Log {
    let log = Log::new();
    log.put(make(13, 9, (12, 9)).boundary(9).entries(7, 200));
    log.damage_footer(4);
    log.damage_segment(10, RegionId::RELEASES);
    log
}

#[test]
fn the_page_needs_nothing_else() {
    let page = report(&Log::new());
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    for foreign in ["<script", "src=", "@import", "url(", "http:", "https:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("no history is lost"));
}

#[test]
fn it_goes_to_a_file_and_says_by_its_code_that_something_is_wrong() {
    let log = damaged();
    let file = log.path().with_extension("html");
    let before = log.all();
    let ran = run(["report", &log.at(), "--output", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("00000000000000000004.wal: footer: expected checksum"), "{page}");
    assert_eq!(log.all(), before, "it only reads");
    let nowhere = log.path().join("no/such.html");
    let failed = run(["report", &log.at(), "-o", nowhere.to_str().unwrap()]).failed(2);
    assert!(failed.contains("such.html"), "{failed}");
}

#[test]
fn what_a_writer_is_called_cannot_become_a_part_of_the_page() {
    let log = Log::new();
    log.put(make(13, 14, (12, 9)).boundary(3).writer("<script>alert(1)</script>"));
    let page = report(&log);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script"));
}

#[test]
fn pictures_of_a_large_log_say_what_they_leave_out_and_the_table_has_all() {
    let log = Log::empty();
    for sequence in 1..=450 {
        let object = make(sequence, 1, (sequence - 1, 1)).boundary(1);
        log.put((0..45).fold(object, |object, region| object.entries(region, 1)));
    }
    let page = report(&log);
    assert!(page.contains("Pictures show the newest 400 objects of 450."), "{page}");
    assert!(page.contains("The 40 regions with the most bytes, of 45."), "{page}");
    assert_eq!(page.matches("<g class=\"object\"").count(), 400);
    assert_eq!(page.matches("<tr data-seq").count(), 450);
}

#[test]
fn in_a_browser_the_page_has_the_chain_a_row_for_each_object_and_no_error() {
    let Some(browser) = Browser::find("the page in a browser") else { return };
    // That an error would be seen.
    let canary = "<!DOCTYPE html><script>console.error('canary')</script>";
    assert_eq!(browser.open("canary.html", canary, 800).errors.len(), 1);

    for (name, log) in [("sound", Log::new()), ("damaged", damaged())] {
        let ran = run(["report", &log.at()]);
        for width in [390, 1280] {
            let shown = browser.open(&format!("report-{name}-{width}.html"), &ran.out, width);
            assert_eq!(shown.errors, [""; 0], "{name} at {width}");
            let measured = shown.measured;
            let files = std::fs::read_dir(log.path().join("objects")).unwrap();
            let mut sequences: Vec<u64> = files
                .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().parse())
                .map(Result::unwrap)
                .collect();
            sequences.sort_unstable();
            assert_eq!(measured["rows"], json!(sequences), "a row for each object");
            assert_eq!(measured["drawn"], json!(sequences), "each is in the chain, and visible");
            let is_damaged = name == "damaged";
            assert_eq!(measured["off"], json!([6, 7, 11]), "{name}: off the line");
            assert_eq!(measured["colours"], json!(3), "one of each epoch");
            // 6 and 11 are no history, 8 was released through what object 3 holds of it.
            let pale = if is_damaged { 4 } else { 3 };
            assert_eq!(measured["pale"], json!(pale), "{name}");
            assert_eq!(measured["tips"], json!([if is_damaged { 13 } else { 12 }]));
            assert!(measured["links"].as_u64() >= Some(5), "{measured}");
            assert!(measured["cells"].as_u64() >= Some(9), "{measured}");
            assert_eq!(measured["sizes"], json!(sequences.len()));
            let place = if is_damaged { "9" } else { "3" };
            assert_eq!(measured["boundary"], json!(format!("boundary {place}")));
            assert_eq!(measured["marked"], json!(if is_damaged { 2 } else { 0 }), "red outlines");
            // On a phone too: what is wide scrolls for itself.
            assert_eq!(measured["overflow"], json!(0), "{name} at {width}: {measured}");
        }
    }
}

/// Looks at the page from within, in a copy of it.
const LOOK: &str = r#"<script>
const all = (what) => [...document.querySelectorAll(what)];
const seen = (e) => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
const seq = (e) => Number(e.dataset.seq);
const objects = all('svg#chain g.object').filter(seen);
const y = (e) => e.querySelector('circle, rect').getBoundingClientRect().y
  + e.querySelector('circle, rect').getBoundingClientRect().height / 2;
const rail = document.querySelector('svg#chain line.rail').getBoundingClientRect().y;
const measured = {
  rows: all('table#objects tbody tr').filter(seen).map(seq),
  drawn: objects.map(seq),
  off: objects.filter((e) => y(e) > rail + 20).map(seq),
  tips: objects.filter((e) => e.querySelector('.tip')).map(seq),
  marked: objects.filter((e) => e.querySelector('.damaged')).length,
  links: all('svg#chain .link').length,
  cells: all('svg#heat rect').filter(seen).length,
  sizes: all('svg#sizes circle').filter(seen).length,
  boundary: document.querySelector('svg#chain text.mark').textContent,
  colours: new Set(objects.map((e) => e.querySelector('circle, rect').getAttribute('fill'))).size,
  pale: all('svg#heat rect.obsolete').length,
  overflow: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
};
const told = document.createElement('pre');
told.id = 'measured';
told.textContent = JSON.stringify(measured);
document.body.append(told);
</script>"#;

/// Debian's package `chromium`, without a window.
struct Browser {
    program: &'static str,
}

/// What a browser made of a page.
struct Shown {
    errors: Vec<String>,
    measured: Value,
}

impl Browser {
    fn find(test: &str) -> Option<Browser> {
        let starts = |program: &&str| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(starts);
        if found.is_none() {
            let required = std::env::var("SEALOG_REQUIRE_CHROMIUM").is_ok_and(|value| value == "1");
            assert!(!required, "SEALOG_REQUIRE_CHROMIUM is 1 and there is no chromium");
            use std::io::Write;
            let told =
                format!("{test}: NOTHING WAS TESTED: there is no chromium (Debian's package)\n");
            let _ = std::io::stderr().write_all(told.as_bytes());
        }
        found.map(|program| Browser { program })
    }

    /// Opens a page as it is, keeps a picture of it in `target`, and looks at a copy of it.
    fn open(&self, name: &str, page: &str, width: u32) -> Shown {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join(name);
        std::fs::write(&file, page).unwrap();
        let picture = pictures().join(name).with_extension("png");
        let screenshot = format!("--screenshot={}", picture.display());
        let (_, errors) = self.run(parent.path(), &file, width, &[&screenshot]);
        assert!(picture.metadata().unwrap().len() > 0);

        let copy = parent.path().join("copy.html");
        std::fs::write(&copy, page.replace("</body>", &format!("{LOOK}</body>"))).unwrap();
        let (dom, _) = self.run(parent.path(), &copy, width, &["--dump-dom"]);
        let measured = dom.split_once("<pre id=\"measured\">").map(|(_, rest)| {
            let text = rest.split_once("</pre>").unwrap().0;
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        });
        Shown { errors, measured: measured.unwrap_or_default() }
    }

    /// What it prints, and what pages say on the console.
    fn run(
        &self,
        profile: &Path,
        page: &Path,
        width: u32,
        arguments: &[&str],
    ) -> (String, Vec<String>) {
        let mut command = Command::new(self.program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--hide-scrollbars", "--enable-logging=stderr", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.join("profile").display()))
            .arg(format!("--window-size={width},2000"))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .stdin(Stdio::null());
        let out = profile.join("out");
        let err = profile.join("err");
        command.stdout(std::fs::File::create(&out).unwrap());
        command.stderr(std::fs::File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the browser does not end:\n{}", std::fs::read_to_string(&err).unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let err = String::from_utf8_lossy(&std::fs::read(err).unwrap()).into_owned();
        let errors = err.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned);
        (std::fs::read_to_string(out).unwrap(), errors.collect())
    }
}

/// `target/report`, where CI takes them from.
fn pictures() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_sealog"));
    let target = program.parent().and_then(Path::parent).unwrap();
    let pictures = target.join("report");
    std::fs::create_dir_all(&pictures).unwrap();
    pictures
}
