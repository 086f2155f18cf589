//! As much of HTTP/1.1 as the client speaks.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use super::fault::Fault;
use super::text;
use super::{BUCKET, Kind};

pub(super) struct Request {
    method: String,
    path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Request> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let line = read_line(from)?;
        let mut words = line.split_whitespace();
        let method = words.next().ok_or_else(malformed)?.to_owned();
        let target = words.next().ok_or_else(malformed)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (text::unescape(name), text::unescape(value))
        });
        let (path, query) = (text::unescape(path), query.collect());
        let mut headers = BTreeMap::new();
        loop {
            let line = read_line(from)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").map_or(Ok(0), |length| length.parse());
        let mut body = vec![0; length.map_err(|_| malformed())?];
        from.read_exact(&mut body)?;
        Ok(Request { method, path, query, headers, body })
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// What is asked, and of which key; `None` if it is nothing that this server knows.
    pub(super) fn kind(&self) -> Option<(Kind, String)> {
        let path = self.path.trim_start_matches('/').strip_prefix(BUCKET)?.trim_start_matches('/');
        let of_key = |kind| Some((kind, path.to_owned()));
        match (&*self.method, path) {
            ("GET", "") => Some((Kind::List, self.asked("prefix").to_owned())),
            ("POST", "") if self.query.contains_key("delete") => {
                Some((Kind::Delete, self.keys().into_iter().next().unwrap_or_default()))
            }
            ("GET", _) => of_key(Kind::Get),
            ("HEAD", _) => of_key(Kind::Head),
            ("PUT", _) => of_key(Kind::Put),
            ("DELETE", _) => of_key(Kind::Delete),
            _ => None,
        }
    }

    /// A part of the query.
    pub(super) fn asked(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// The keys in the body of a delete, or that of a single one.
    pub(super) fn keys(&self) -> Vec<String> {
        if self.method == "DELETE" {
            return self.kind().map(|(_, key)| key).into_iter().collect();
        }
        let body = String::from_utf8_lossy(&self.body);
        let keys = body.split("<Key>").skip(1).filter_map(|part| part.split("</Key>").next());
        keys.map(str::to_owned).collect()
    }

    /// Whether all keys are in one request.
    pub(super) fn is_of_many(&self) -> bool {
        self.method == "POST"
    }

    /// The range asked for, cut to what is there; an error if nothing of it is.
    pub(super) fn range(&self, size: usize) -> Result<Option<std::ops::Range<usize>>, ()> {
        let Some(range) = self.headers.get("range") else { return Ok(None) };
        let (start, end) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')).ok_or(())?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| ());
        let range = match (start, end) {
            ("", last) => size.saturating_sub(number(last)?)..size,
            (start, "") => number(start)?..size,
            (start, end) => number(start)?..number(end)?.saturating_add(1).min(size),
        };
        if range.start < range.end { Ok(Some(range)) } else { Err(()) }
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line),
    }
}

#[derive(Clone)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// How long the body is said to be, if that is not so.
    claimed: Option<usize>,
}

impl Reply {
    pub(super) fn new(status: u16, body: Vec<u8>) -> Reply {
        Reply { status, headers: Vec::new(), body, claimed: None }
    }

    pub(super) fn xml(body: String) -> Reply {
        Reply::new(200, body.into_bytes()).header("Content-Type", "application/xml".into())
    }

    /// As S3 says what is wrong.
    pub(super) fn error(status: u16, code: &str, message: &str) -> Reply {
        let mut reply = Reply::xml(text::error_document(code, message));
        reply.status = status;
        reply
    }

    pub(super) fn header(mut self, name: &'static str, value: String) -> Reply {
        self.headers.push((name, value));
        self
    }

    /// What a fault makes of an answer.
    pub(super) fn with(mut self, fault: &Fault) -> Reply {
        match fault {
            Fault::Cut(at) => {
                self.claimed = Some(self.body.len());
                self.body.truncate(*at);
            }
            Fault::Short(len) => self.body.truncate(*len),
            Fault::Flips(at) => {
                if let Some(byte) = self.body.get_mut(*at) {
                    *byte ^= 1;
                }
            }
            Fault::FlipsFromEnd(at) => {
                let at = self.body.len().checked_sub(*at);
                if let Some(byte) = at.and_then(|at| self.body.get_mut(at)) {
                    *byte ^= 1;
                }
            }
            Fault::OfSize(size) => {
                for (name, value) in &mut self.headers {
                    if *name == "Content-Range"
                        && let Some((range, _)) = value.split_once('/')
                    {
                        *value = format!("{range}/{size}");
                    }
                }
            }
            _ => {}
        }
        self
    }

    /// Whether the connection ends with it.
    pub(super) fn is_cut(&self) -> bool {
        self.claimed.is_some_and(|claimed| claimed > self.body.len())
    }

    pub(super) fn encode(&self, is_head: bool) -> Vec<u8> {
        let length = self.claimed.unwrap_or(self.body.len());
        let mut out = format!("HTTP/1.1 {} {}\r\n", self.status, text::reason(self.status));
        for (name, value) in &self.headers {
            out += &format!("{name}: {value}\r\n");
        }
        out += &format!("x-amz-request-id: 0123456789ABCDEF\r\nContent-Length: {length}\r\n\r\n");
        let mut out = out.into_bytes();
        if !is_head {
            out.extend_from_slice(&self.body);
        }
        out
    }
}
