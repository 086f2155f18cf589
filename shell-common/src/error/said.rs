//! What a client's error says, read from its text: the client does not export the types that it
//! tells more in.

use std::error::Error as StdError;

use object_store::Error as ClientError;

use super::chain;

/// What a store said, as far as the client hands it on.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// All of it: each cause once, down to the innermost, and of a body only code and message.
    pub(super) text: String,
    /// The status of the response.
    pub(super) status: Option<u16>,
    /// The store's own name for what is wrong.
    pub(super) code: Option<String>,
    /// The store's own words for it.
    pub(super) message: Option<String>,
}

/// What a body's text may be long, in characters: it goes into a line of a log.
const LONGEST: usize = 300;

impl Said {
    pub(super) fn of(error: &ClientError) -> Said {
        let mut said = Said::default();
        for cause in chain(error as &(dyn StdError + 'static)) {
            let text = cause.to_string();
            said.status = said.status.or_else(|| status(&text));
            // Most errors repeat their causes in their own text, and some do not.
            if !said.text.contains(&text) {
                if !said.text.is_empty() {
                    said.text += ": ";
                }
                said.text += &text;
            }
        }
        said.code_of_one_key();
        said.shorten_body();
        said
    }

    /// Of one key of a delete of many there is a code without a body.
    fn code_of_one_key(&mut self) {
        let found = self.text.split_once("DeleteObjects request failed for key ");
        let code = found.and_then(|(_, rest)| rest.rsplit_once("(code: ")?.1.split_once(')'));
        self.code = code.map(|(code, _)| code.to_owned());
    }

    /// Puts code and message in the place of a body of XML or HTML.
    fn shorten_body(&mut self) {
        let Some(start) = body(&self.text) else {
            // JSON, or words.
            if let Some((at, _)) = self.text.char_indices().nth(LONGEST * 4) {
                self.text.truncate(at);
                self.text += "...";
            }
            return;
        };
        let body = self.text.split_off(start);
        self.code = self.code.take().or_else(|| element(&body, "Code"));
        self.message = element(&body, "Message");
        let told: Vec<&str> =
            [&self.code, &self.message].into_iter().flatten().map(|s| &**s).collect();
        if told.is_empty() {
            self.text += if is_html(&body) { "an HTML page" } else { "a body without a code" };
        } else {
            let told = told.join(": ");
            self.text += &told;
        }
    }
}

/// Where a body begins that is no text for people.
fn body(text: &str) -> Option<usize> {
    ["<?xml", "<Error", "<!DOCTYPE", "<!doctype", "<html", "<HTML"]
        .iter()
        .filter_map(|start| text.find(start))
        .min()
}

fn is_html(body: &str) -> bool {
    body.get(..500).unwrap_or(body).to_ascii_lowercase().contains("<html")
}

/// The first line of an element's text.
fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    let line = content.trim().lines().next()?.trim_end();
    let mut line: String = line.chars().take(LONGEST).filter(|c| !c.is_control()).collect();
    // The last, so that nothing is decoded twice.
    for (entity, character) in [
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        line = line.replace(entity, character);
    }
    (!line.is_empty()).then_some(line)
}

/// The status of a response that the client took for a failure, from the client's text for it.
fn status(text: &str) -> Option<u16> {
    // Of a redirect that leads nowhere it does not say which it was.
    if text.starts_with("Received redirect without LOCATION")
        || text.starts_with("error following redirect")
    {
        return Some(301);
    }
    let rest = text.strip_prefix("Server returned non-2xx status code: ")?;
    rest.get(..3)?.parse().ok()
}
