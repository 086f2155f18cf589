//! Transcripts: what happened, a line each.

/// Lines, if anybody is to read them.
#[derive(Debug, Default)]
pub(crate) struct Transcript(Option<Vec<String>>);

impl Transcript {
    /// One that takes nothing: for the search itself.
    pub(crate) fn none() -> Transcript {
        Transcript(None)
    }

    pub(crate) fn written() -> Transcript {
        Transcript(Some(Vec::new()))
    }

    pub(crate) fn is_written(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn line(&mut self, line: String) {
        if let Some(lines) = &mut self.0 {
            lines.push(line);
        }
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().flatten().map(|line| format!("{line}\n")).collect()
    }
}
